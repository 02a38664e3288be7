#include "cli/verdicts.hpp"

#include <fmt/format.h>

#include <vector>

namespace rowlock::cli {

namespace {

std::string_view comparison_word(Comparison comparison) {
    switch (comparison) {
        case Comparison::none:
            return "none";
        case Comparison::agrees:
            return "agrees";
        case Comparison::resumed:
            return "resumed";
        case Comparison::retired:
            return "retired";
        case Comparison::rolled_back:
            return "rolled_back";
        case Comparison::diverged:
            return "diverged";
        case Comparison::unknown:
            return "unknown";
    }
    return "?";
}

std::string resumption_as_json(const Resumption& resumption) {
    JsonObject object;
    object.number("seq", resumption.seq).number("after", resumption.after).number("size", resumption.size);
    object.text("recorded_at", utc_time(resumption.recorded_at)).text("actor", resumption.actor);
    return object.text("reason", resumption.reason).str();
}

/// What is no finding, and yet to be seen for ever.
void print_own_entries(const Verification& verification) {
    if (verification.retired_through > 0) {
        print_line(fmt::format("  entries 1 to {} were retired: entry {} says so", verification.retired_through,
                               verification.retired_by));
    }
    for (const Resumption& each : verification.resumptions) {
        print_line(fmt::format("  entry {}: resumed after entry {}, where a checkpoint had counted {}: {}", each.seq,
                               each.after, counted(each.size, "entry", "entries"), shown(each.reason)));
    }
    const auto untold = verification.resumptions_total - static_cast<std::int64_t>(verification.resumptions.size());
    if (untold > 0) print_line(fmt::format("  … and {} resumptions more", grouped(untold)));
}

}  // namespace

std::string_view verdict_word(Verdict verdict) {
    switch (verdict) {
        case Verdict::intact:
            return "INTACT";
        case Verdict::tampered:
            return "TAMPERED";
        case Verdict::unverifiable:
            return "UNVERIFIABLE";
        case Verdict::empty:
            return "EMPTY";
        case Verdict::rolled_back:
            return "ROLLED BACK";
    }
    return "?";
}

Tone tone_of(Verdict verdict) {
    if (verdict == Verdict::intact) return Tone::good;
    return verdict == Verdict::tampered || verdict == Verdict::rolled_back ? Tone::bad : Tone::strong;
}

std::string finding_json(const Finding& finding) {
    JsonObject object;
    object.text("kind", name_of(finding.kind)).text("tenant", finding.tenant.text());
    object.number("seq", finding.seq).number("last_seq", finding.last_seq);
    if (finding.belongs_at) object.number("belongs_at", *finding.belongs_at);
    return object.text("detail", finding.detail).str();
}

std::string finding_line(const Finding& finding) {
    const std::string where = finding.last_seq > finding.seq
                                  ? fmt::format("entries {} to {}", finding.seq, finding.last_seq)
                                  : fmt::format("entry {}", finding.seq);
    return fmt::format("{}: {}: {}", where, name_of(finding.kind), shown(finding.detail));
}

Exit exit_of(Verdict verdict) {
    if (verdict == Verdict::intact) return Exit::fine;
    return verdict == Verdict::tampered || verdict == Verdict::rolled_back ? Exit::finding : Exit::undetermined;
}

std::string verification_json(const TenantId& tenant, const Verification& verification) {
    std::vector<std::string> findings;
    for (const Finding& finding : verification.findings) findings.push_back(finding_json(finding));
    std::vector<std::string> missing;
    for (const std::string& key : verification.missing_keys) missing.push_back(JsonObject().text("key", key).str());
    JsonObject object;
    object.text("tenant", tenant.text()).text("verdict", verdict_word(verification.verdict));
    object.number("entries", verification.entries).number("findings_total", verification.findings_total);
    object.raw("findings", json_array(findings)).number("unverifiable_entries", verification.unverifiable_entries);
    std::vector<std::string> resumptions;
    for (const Resumption& each : verification.resumptions) resumptions.push_back(resumption_as_json(each));
    object.raw("missing_keys", json_array(missing)).text("checkpoint", comparison_word(verification.checkpoint));
    object.number("retired_through", verification.retired_through);
    return object.raw("resumptions", json_array(resumptions)).str();
}

void print_verification(const Context& context, const TenantId& tenant, const Verification& verification) {
    print_line(fmt::format("{}: {}, {}", shown(tenant.text()),
                           tinted(context.style, tone_of(verification.verdict), verdict_word(verification.verdict)),
                           counted(verification.entries, "entry", "entries")));
    for (const Finding& finding : verification.findings) {
        print_line("  " + finding_line(finding));
    }
    const auto untold = verification.findings_total - static_cast<std::int64_t>(verification.findings.size());
    if (untold > 0) print_line(fmt::format("  … and {} findings more", grouped(untold)));
    print_own_entries(verification);
    if (!verification.missing_keys.empty()) {
        print_line(fmt::format("  {} could not be checked: not in the keyring: {}",
                               counted(verification.unverifiable_entries, "entry", "entries"),
                               shown(fmt::format("{}", fmt::join(verification.missing_keys, ", ")))));
    }
}

}  // namespace rowlock::cli
