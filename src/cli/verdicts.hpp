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

[[nodiscard]] std::string verification_json(const TenantId& tenant, const Verification& verification);
/// For people, whatever --json says.
void print_verification(const Context& context, const TenantId& tenant, const Verification& verification);

}  // namespace rowlock::cli
