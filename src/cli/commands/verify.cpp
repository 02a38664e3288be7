#include <fmt/format.h>

#include <chrono>

#include "cli/commands/commands.hpp"
#include "cli/connection.hpp"
#include "cli/output.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

struct Totals {
    std::int64_t tenants = 0;
    std::int64_t entries = 0;
    std::int64_t findings = 0;
    bool tampered = false;
    bool unverifiable = false;
    std::vector<std::string> results;
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
    print_line(fmt::format("{}: {}, {} entries", tenant.text(),
                           tinted(context.style, tone_of(verification.verdict), verdict_word(verification.verdict)),
                           grouped(verification.entries)));
    for (const Finding& finding : verification.findings) {
        const std::string where = finding.last_seq > finding.seq
                                      ? fmt::format("entries {} to {}", finding.seq, finding.last_seq)
                                      : fmt::format("entry {}", finding.seq);
        print_line(fmt::format("  {}: {}: {}", where, name_of(finding.kind), finding.detail));
    }
    const auto untold = verification.findings_total - static_cast<std::int64_t>(verification.findings.size());
    if (untold > 0) print_line(fmt::format("  … and {} findings more", grouped(untold)));
    for (const std::string& key : verification.missing_keys) {
        print_line(fmt::format("  key {} is not in the keyring: {} entries could not be checked", key,
                               grouped(verification.unverifiable_entries)));
    }
}

void add(Totals& totals, const Verification& verification) {
    ++totals.tenants;
    totals.entries += verification.entries;
    totals.findings += verification.findings_total;
    totals.tampered |= verification.verdict == Verdict::tampered;
    totals.unverifiable |= verification.verdict == Verdict::unverifiable;
}

Exit exit_of(const Totals& totals) {
    if (totals.tampered) return Exit::finding;
    // Nothing looked at proves nothing.
    if (totals.unverifiable || totals.entries == 0) return Exit::undetermined;
    return Exit::fine;
}

}  // namespace

Exit verify(const Context& context, const VerifyCommandOptions& options) {
    if (options.all != options.tenant.empty()) throw InvalidInput("name one tenant with --tenant, or say --all");
    const auto database = open_database(context, Access::auditor);
    const AuditLog log(open_keyring(context, *database));
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
            progress.show(fmt::format("{}: {} of {} entries", tenant.text(), grouped(done), grouped(all)));
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
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    if (!context.globals.json) {
        print_line(fmt::format("{} tenants, {} entries, {} findings, in {:.1f} s", grouped(totals.tenants),
                               grouped(totals.entries), grouped(totals.findings), seconds));
        if (totals.entries == 0) print_note("nothing was looked at, which proves nothing");
    }
    return exit_of(totals);
}

}  // namespace rowlock::cli
