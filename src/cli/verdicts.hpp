// Verdicts and findings, as all commands that verify tell them.
#pragma once

#include <string>
#include <string_view>

#include "cli/context.hpp"
#include "cli/output.hpp"
#include "rowlock/audit_log.hpp"

namespace rowlock::cli {

[[nodiscard]] std::string_view verdict_word(Verdict verdict);
[[nodiscard]] Tone tone_of(Verdict verdict);
[[nodiscard]] Exit exit_of(Verdict verdict);

[[nodiscard]] std::string finding_json(const Finding& finding);
/// Without the tenant.
[[nodiscard]] std::string finding_line(const Finding& finding);

/// What an entry says of a break, and whether it is still there. Without the tenant.
[[nodiscard]] std::string acknowledgement_line(const Acknowledgement& acknowledgement);
[[nodiscard]] std::string acknowledged_json(const TenantId& tenant, const Acknowledgement& acknowledgement);
/// How many breaks are there and acknowledged.
[[nodiscard]] std::int64_t acknowledged_in(const Verification& verification);
/// The verdict for people; `acknowledged` is told where it is that.
[[nodiscard]] std::string verdict_on_screen(const Context& context, Verdict verdict, std::int64_t acknowledged);

[[nodiscard]] std::string verification_json(const TenantId& tenant, const Verification& verification);
/// For people, whatever --json says.
void print_verification(const Context& context, const TenantId& tenant, const Verification& verification);

}  // namespace rowlock::cli
