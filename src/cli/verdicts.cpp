#include "cli/verdicts.hpp"

#include <fmt/format.h>

#include <algorithm>
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

std::string entries_words(std::int64_t first, std::int64_t last) {
    return last > first ? fmt::format("entries {} to {}", first, last) : fmt::format("entry {}", first);
}

/// What is no finding, and yet to be seen for ever.
void print_own_entries(const Verification& verification) {
    for (const Acknowledgement& each : verification.acknowledgements) print_line("  " + acknowledgement_line(each));
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
        case Verdict::acknowledged:
            return "ACKNOWLEDGED";
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
    return fmt::format("{}: {}: {}", entries_words(finding.seq, finding.last_seq), name_of(finding.kind),
                       shown(finding.detail));
}

std::string acknowledgement_line(const Acknowledgement& acknowledgement) {
    const std::string where = entries_words(acknowledgement.first_seq, acknowledgement.last_seq);
    const std::string_view kind = name_of(acknowledgement.kind);
    if (acknowledgement.found) {
        return fmt::format("{}: {}, and acknowledged by entry {}: {}", where, kind, acknowledgement.seq,
                           shown(acknowledgement.reason));
    }
    return fmt::format("entry {} acknowledges {}: {}, which is not found so any more: {}", acknowledgement.seq, where,
                       kind, shown(acknowledgement.reason));
}

std::string acknowledged_json(const TenantId& tenant, const Acknowledgement& acknowledgement) {
    JsonObject object;
    object.text("tenant", tenant.text()).number("seq", acknowledgement.seq).text("kind", name_of(acknowledgement.kind));
    object.number("first_seq", acknowledgement.first_seq).number("last_seq", acknowledgement.last_seq);
    object.boolean("found", acknowledgement.found).text("recorded_at", utc_time(acknowledgement.recorded_at));
    return object.text("actor", acknowledgement.actor).text("reason", acknowledgement.reason).str();
}

std::string verdict_on_screen(const Context& context, Verdict verdict, std::int64_t acknowledged) {
    if (verdict != Verdict::acknowledged) return tinted(context.style, tone_of(verdict), verdict_word(verdict));
    return tinted(context.style, tone_of(verdict),
                  fmt::format("INTACT BUT FOR {} ACKNOWLEDGED {}", grouped(acknowledged),
                              acknowledged == 1 ? "BREAK" : "BREAKS"));
}

Exit exit_of(Verdict verdict) {
    if (is_good(verdict)) return Exit::fine;
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
    std::vector<std::string> acknowledgements;
    for (const Acknowledgement& each : verification.acknowledgements) {
        acknowledgements.push_back(acknowledged_json(tenant, each));
    }
    object.raw("acknowledgements", json_array(acknowledgements));
    return object.raw("resumptions", json_array(resumptions)).str();
}

std::int64_t acknowledged_in(const Verification& verification) {
    return std::ranges::count_if(verification.acknowledgements, &Acknowledgement::found);
}

void print_verification(const Context& context, const TenantId& tenant, const Verification& verification) {
    print_line(fmt::format("{}: {}, {}", shown(tenant.text()),
                           verdict_on_screen(context, verification.verdict, acknowledged_in(verification)),
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
