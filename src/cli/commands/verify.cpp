#include <fmt/format.h>

#include <chrono>

#include "cli/commands/commands.hpp"
#include "cli/connection.hpp"
#include "cli/output.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/error.hpp"
#include "rowlock/sealer.hpp"

namespace rowlock::cli {

namespace {

struct Totals {
    std::int64_t tenants = 0;
    std::int64_t entries = 0;
    std::int64_t findings = 0;
    bool tampered = false;
    bool undetermined = false;
};

std::string verdict_word(Verdict verdict) {
    switch (verdict) {
        case Verdict::intact:
            return "INTACT";
        case Verdict::tampered:
            return "TAMPERED";
        case Verdict::unverifiable:
            return "UNVERIFIABLE";
        case Verdict::empty:
            return "EMPTY";
    }
    return "?";
}

Tone tone_of(Verdict verdict) {
    return verdict == Verdict::intact ? Tone::good : verdict == Verdict::tampered ? Tone::bad : Tone::strong;
}

constexpr std::size_t uncut = Style::unlimited;

/// A tenant's name may hold anything but a zero byte, and a terminal obeys some of it.
std::string shown(const TenantId& tenant) {
    return one_line(tenant.text(), uncut);
}

std::string finding_json(const Finding& finding) {
    JsonObject object;
    object.text("kind", name_of(finding.kind)).text("tenant", finding.tenant.text());
    object.number("seq", finding.seq).number("last_seq", finding.last_seq);
    if (finding.belongs_at) object.number("belongs_at", *finding.belongs_at);
    return object.text("detail", finding.detail).str();
}

std::string as_json(const TenantId& tenant, const Verification& verification) {
    std::vector<std::string> findings;
    for (const Finding& finding : verification.findings) findings.push_back(finding_json(finding));
    std::vector<std::string> missing;
    for (const std::string& key : verification.missing_keys) missing.push_back(JsonObject().text("key", key).str());
    JsonObject object;
    object.text("tenant", tenant.text()).text("verdict", verdict_word(verification.verdict));
    object.number("entries", verification.entries).number("findings_total", verification.findings_total);
    object.raw("findings", json_array(findings)).number("unverifiable_entries", verification.unverifiable_entries);
    return object.raw("missing_keys", json_array(missing)).str();
}

void print_for_people(const Context& context, const TenantId& tenant, const Verification& verification) {
    print_line(fmt::format("{}: {}, {}", shown(tenant),
                           tinted(context.style, tone_of(verification.verdict), verdict_word(verification.verdict)),
                           counted(verification.entries, "entry", "entries")));
    for (const Finding& finding : verification.findings) {
        const std::string where = finding.last_seq > finding.seq
                                      ? fmt::format("entries {} to {}", finding.seq, finding.last_seq)
                                      : fmt::format("entry {}", finding.seq);
        print_line(fmt::format("  {}: {}: {}", where, name_of(finding.kind), one_line(finding.detail, uncut)));
    }
    const auto untold = verification.findings_total - static_cast<std::int64_t>(verification.findings.size());
    if (untold > 0) print_line(fmt::format("  … and {} findings more", grouped(untold)));
    if (!verification.missing_keys.empty()) {
        print_line(fmt::format("  {} could not be checked: not in the keyring: {}",
                               counted(verification.unverifiable_entries, "entry", "entries"),
                               one_line(fmt::format("{}", fmt::join(verification.missing_keys, ", ")), uncut)));
    }
}

void add(Totals& totals, const Verification& verification) {
    ++totals.tenants;
    totals.entries += verification.entries;
    totals.findings += verification.findings_total;
    totals.tampered |= verification.verdict == Verdict::tampered;
    totals.undetermined |= verification.verdict == Verdict::unverifiable || verification.verdict == Verdict::empty;
}

Exit exit_of(const Totals& totals) {
    if (totals.tampered) return Exit::finding;
    // Nothing looked at proves nothing.
    if (totals.undetermined || totals.tenants == 0) return Exit::undetermined;
    return Exit::fine;
}

std::string overall_word(const Context& context, const Totals& totals) {
    const Exit exit = exit_of(totals);
    const Verdict verdict = exit == Exit::fine      ? Verdict::intact
                            : exit == Exit::finding ? Verdict::tampered
                                                    : Verdict::unverifiable;
    return tinted(context.style, tone_of(verdict), verdict_word(verdict));
}

std::string about_nothing(const VerifyCommandOptions& options) {
    return options.all
               ? "rowlock: nothing was looked at, which proves nothing: the log is empty, or this login may not "
                 "see other tenants; GRANT rowlock_auditor lets it"
               : "rowlock: nothing was looked at, which proves nothing: this tenant has no entries; check its name";
}

}  // namespace

Exit verify(const Context& context, const VerifyCommandOptions& options) {
    if (options.all != options.tenant.empty()) throw InvalidInput("name one tenant with --tenant, or say --all");
    const auto database = open_database(context, Access::auditor);
    const AuditLog log(open_keyring(context));
    std::vector<TenantId> tenants;
    if (options.all) {
        tenants = database->transact({}, [](Transaction& transaction) { return AuditLog::tenants(transaction); });
    } else {
        tenants.emplace_back(options.tenant);
    }
    Totals totals;
    Progress progress(context.style);
    const auto started = std::chrono::steady_clock::now();
    for (const TenantId& tenant : tenants) {
        VerifyOptions verify_options;
        verify_options.progress = [&](std::int64_t done, std::int64_t all) {
            progress.show(fmt::format("{}: {} of {} entries", shown(tenant), grouped(done), grouped(all)));
        };
        const Verification verification = database->transact({.tenant = tenant}, [&](Transaction& transaction) {
            return log.verify(transaction, tenant, verify_options);
        });
        progress.clear();
        add(totals, verification);
        if (context.globals.json) {
            print_line(as_json(tenant, verification));
        } else if (!options.all || verification.verdict != Verdict::intact) {
            print_for_people(context, tenant, verification);
        }
    }
    const double seconds = seconds_since(started);
    if (!context.globals.json) {
        const std::string overall = options.all && totals.tenants > 0 ? overall_word(context, totals) + ": " : "";
        print_line(fmt::format("{}{}, {}, {}, in {:.1f} s", overall, counted(totals.tenants, "tenant", "tenants"),
                               counted(totals.entries, "entry", "entries"),
                               counted(totals.findings, "finding", "findings"), seconds));
    }
    if (totals.entries == 0) print_note(about_nothing(options));
    TransactionPolicy looking;
    if (!options.all) looking.tenant = tenants.front();
    const StagedCount staged = database->transact(looking, count_staged);
    if (staged.entries > 0) {
        print_note(fmt::format("rowlock: {} staged and not in the log yet, so nothing protects them: run rowlock seal",
                               counted(staged.entries, "entry is", "entries are")));
    }
    return exit_of(totals);
}

}  // namespace rowlock::cli
