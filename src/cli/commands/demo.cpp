#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>

#include "cli/commands/commands.hpp"
#include "cli/crowd.hpp"
#include "cli/demo_races.hpp"
#include "cli/git_log.hpp"
#include "cli/output.hpp"
#include "cli/scratch_database.hpp"
#include "json/json.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

using Clock = std::chrono::steady_clock;

/// Enough for a rate that means something, little enough for the two minutes that the tour may take.
constexpr std::size_t commits_max = 20000;
/// The tampering needs a first, a last and some entries between.
constexpr std::int64_t entries_min = 5;

std::string rate(std::int64_t count, double seconds) {
    return grouped(per_second(count, seconds)) + "/s";
}

/// Old histories hold names in other encodings, and names that are no text at all.
std::string clean(std::string_view name) {
    return one_line(name, Style::unlimited);
}

TenantId tenant_of(const Commit& commit) {
    constexpr std::size_t columns_max = 60;  // of 4 bytes at most
    const std::string name = one_line(clean(commit.author), columns_max);
    return TenantId(name.empty() ? "unknown" : name);
}

TenantEntry entry_of(const Commit& commit) {
    std::vector<std::string> files;
    for (const std::string& file : commit.files) files.push_back(quote_json(file));
    AuditEntry entry;
    entry.actor = clean(commit.author);
    entry.action = "commit";
    entry.object = commit.hash;
    entry.data =
        JsonObject().text("date", commit.date).text("subject", commit.subject).raw("files", json_array(files)).str();
    return {tenant_of(commit), std::move(entry)};
}

/// Before anything is made: a history that is too short for the tour is refused.
std::vector<TenantEntry> entries_of(const std::string& repository) {
    std::vector<TenantEntry> entries;
    std::map<std::string, std::int64_t> by_author;
    for (const Commit& commit : read_git_log(repository, commits_max)) {
        entries.push_back(entry_of(commit));
        ++by_author[entries.back().tenant.text()];
    }
    const bool enough = std::ranges::any_of(by_author, [](const auto& one) { return one.second >= entries_min; });
    if (!enough) {
        throw InvalidInput(
            fmt::format("the tour needs a repository in which one author has at least {} commits; name one with "
                        "--repository DIR",
                        entries_min));
    }
    return entries;
}

/// Gives each entry to whichever of the writers is free: all of them work on the same tenants at once.
void write_at_once(int writers, const std::vector<TenantEntry>& entries,
                   const std::function<void(const TenantEntry&)>& write) {
    std::atomic<std::size_t> next{0};
    run_crowd(static_cast<std::size_t>(writers), [&](std::size_t) {
        try {
            for (std::size_t i = next++; i < entries.size(); i = next++) write(entries[i]);
        } catch (...) {
            next = entries.size();
            throw;
        }
    });
}

constexpr Statement count_numbers{
    "demo.count",
    "SELECT count(*), count(DISTINCT (tenant_id, seq)),"
    "       coalesce((SELECT sum(longest - numbers) FROM (SELECT max(seq) AS longest, count(DISTINCT seq) AS numbers"
    "                 FROM rowlock.audit_log GROUP BY tenant_id) AS tenant), 0)"
    "  FROM rowlock.audit_log"};

constexpr Statement make_naive_table{
    "demo.naive_table", "CREATE TABLE naive_log (tenant_id text NOT NULL, seq bigint NOT NULL, data json)"};
constexpr Statement naive_index{"demo.naive_index", "CREATE INDEX ON naive_log (tenant_id, seq)"};
constexpr Statement naive_read{"demo.naive_read",
                               "SELECT coalesce(max(seq), 0) + 1 FROM naive_log WHERE tenant_id = $1"};
constexpr Statement naive_write{"demo.naive_write", "INSERT INTO naive_log (tenant_id, seq, data) VALUES ($1, $2, $3)"};
constexpr Statement count_naive{
    "demo.count_naive",
    "SELECT coalesce(sum(uses - 1), 0), count(*) FILTER (WHERE uses > 1), coalesce(max(uses), 0)"
    "  FROM (SELECT count(*) AS uses FROM naive_log GROUP BY tenant_id, seq) AS number"};

struct Tampering {
    std::string_view what;
    std::string_view sql;  ///< $1 is the tenant, $2 the number of its entries.
};

/// Each done in a transaction that is rolled back once verify has looked. The middle is entry $2 / 2.
constexpr Tampering tamperings[] = {
    {"change what an entry says",
     "UPDATE rowlock.audit_log SET actor = 'nobody' WHERE tenant_id = $1 AND seq = $2::bigint / 2"},
    {"remove an entry in the middle", "DELETE FROM rowlock.audit_log WHERE tenant_id = $1 AND seq = $2::bigint / 2"},
    {"swap two entries",
     "UPDATE rowlock.audit_log SET seq = CASE seq WHEN 2 THEN $2::bigint - 1 ELSE 2 END"
     " WHERE tenant_id = $1 AND seq IN (2, $2::bigint - 1)"},
    {"move an entry to another tenant",
     "UPDATE rowlock.audit_log SET tenant_id = tenant_id || ' (moved)' WHERE tenant_id = $1 AND seq = $2::bigint / 2"},
    {"cut off the newest entry", "DELETE FROM rowlock.audit_log WHERE tenant_id = $1 AND seq = $2::bigint"},
};

class Tour {
  public:
    Tour(const Context& context, const DemoOptions& options)
        : context_(context),
          options_(options),
          entries_(entries_of(options.repository)),
          scratch_(context, "rowlock_demo"),
          app_(scratch_.as_app(static_cast<std::size_t>(options.writers))),
          owner_(scratch_.as_owner(static_cast<std::size_t>(options.writers))),
          log_(Keyring::generate()) {}

    Exit run() {
        say(fmt::format("Real input: {} of the git repository in {}; the tenant is the author.",
                        counted(count(), "commit", "commits"), options_.repository));
        append_with_rowlock();
        append_with_max();
        const bool intact = verify_all();
        const bool all_found = tamper();
        cost();
        const bool races_shown = show_races();
        say("");
        say(tinted(context_.style, Tone::strong, "Try next:"));
        say("  rowlock append --tenant acme --actor ann --action invoice.paid --data '{\"invoice\":1}'");
        say("  rowlock list --tenant acme");
        say("  rowlock verify --all");
        say("  rowlock race --help");
        if (context_.globals.json) print_json(intact);
        return intact && all_found && races_shown && gaps_ == 0 && duplicates_ == 0 ? Exit::fine : Exit::finding;
    }

  private:
    [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(entries_.size()); }

    /// For people; with --json all of it is one object at the end.
    void say(std::string_view line) const {
        if (!context_.globals.json) print_line(line);
    }

    void print_json(bool intact) const {
        JsonObject object;
        object.number("commits", count()).number("duplicates", duplicates_).number("gaps", gaps_);
        object.number("max_plus_one_duplicates", naive_duplicates_).boolean("intact", intact);
        object.raw("tamperings", json_array(tamperings_json_));
        object.raw("races", json_array(races_json_)).text("race_report", race_report_);
        object.number("appends_per_second", per_second(count(), ours_seconds_));
        object.number("max_plus_one_per_second", per_second(count(), naive_seconds_));
        print_line(object.number("verified_per_second", per_second(count(), verify_seconds_)).str());
    }

    void heading(int number, std::string_view text) {
        say("");
        say(tinted(context_.style, Tone::strong, fmt::format("{}. {}", number, text)));
    }

    void append_with_rowlock() {
        heading(
            1, fmt::format("{} writers append all of them at once, numbered per tenant and chained", options_.writers));
        const auto start = Clock::now();
        write_at_once(options_.writers, entries_, [&](const TenantEntry& given) {
            app_.transact({.tenant = given.tenant}, [&](Transaction& transaction) {
                if (!std::holds_alternative<Appended>(log_.append(transaction, given.entry))) {
                    throw InvalidInput("an entry id came twice");
                }
            });
        });
        ours_seconds_ = seconds_since(start);
        const Rows rows =
            owner_.transact({}, [](Transaction& transaction) { return transaction.execute(count_numbers); });
        duplicates_ = rows[0].integer(0) - rows[0].integer(1);
        gaps_ = rows[0].integer(2);
        say(fmt::format("   {} entries in {:.1f} s ({}), each one its own durable commit", grouped(rows[0].integer(0)),
                        ours_seconds_, rate(count(), ours_seconds_)));
        const bool good = duplicates_ == 0 && gaps_ == 0;
        say("   " + tinted(context_.style, good ? Tone::good : Tone::bad,
                           fmt::format("{} duplicate numbers, {} gaps", duplicates_, gaps_)));
    }

    void append_with_max() {
        heading(2, fmt::format("{} writers do the same with SELECT max(seq) + 1, then INSERT", options_.writers));
        owner_.transact({}, [](Transaction& transaction) {
            transaction.execute(make_naive_table);
            transaction.execute(naive_index);
        });
        const auto start = Clock::now();
        write_at_once(options_.writers, entries_, [&](const TenantEntry& given) {
            owner_.transact({}, [&](Transaction& transaction) {
                const std::int64_t next = transaction.execute(naive_read, {given.tenant}).only().integer(0);
                transaction.enqueue(naive_write, {given.tenant, next, given.entry.data});
            });
        });
        naive_seconds_ = seconds_since(start);
        const Rows rows =
            owner_.transact({}, [](Transaction& transaction) { return transaction.execute(count_naive); });
        naive_duplicates_ = rows[0].integer(0);
        say(fmt::format("   {} entries in {:.1f} s ({})", grouped(count()), naive_seconds_,
                        rate(count(), naive_seconds_)));
        say("   " +
            tinted(context_.style, rows[0].integer(0) == 0 ? Tone::plain : Tone::bad,
                   naive_duplicates_ == 0
                       ? "no duplicate this time, by luck alone: run it again, or give it a longer history"
                       : fmt::format("{} duplicates: {} numbers were given more than once, one of them {} times",
                                     grouped(naive_duplicates_), grouped(rows[0].integer(1)), rows[0].integer(2))));
    }

    bool verify_all() {
        heading(3, "verify reads every chain");
        const auto start = Clock::now();
        std::map<std::int64_t, TenantId> by_size;
        bool intact = true;
        std::int64_t tenants = 0;
        owner_.transact({}, [&](Transaction& transaction) {
            for (const TenantId& tenant : AuditLog::tenants(transaction)) {
                const Verification verification = log_.verify(transaction, tenant);
                intact = intact && verification.verdict == Verdict::intact;
                by_size.insert_or_assign(verification.entries, tenant);
                ++tenants;
            }
        });
        verify_seconds_ = seconds_since(start);
        say(fmt::format("   {}, {} entries in {:.2f} s ({}): {}", counted(tenants, "tenant", "tenants"),
                        grouped(count()), verify_seconds_, rate(count(), verify_seconds_),
                        tinted(context_.style, intact ? Tone::good : Tone::bad, intact ? "INTACT" : "TAMPERED")));
        victim_entries_ = by_size.rbegin()->first;
        victim_.emplace(by_size.rbegin()->second);
        return intact;
    }

    bool tamper() {
        heading(4, fmt::format("A superuser turns the triggers off and tampers with the {} entries of {}",
                               grouped(victim_entries_), one_line(victim_->text(), Style::unlimited)));
        bool all_found = true;
        for (const Tampering& tampering : tamperings) {
            const Verification verification = verify_after(tampering);
            all_found = all_found && verification.verdict == Verdict::tampered;
            tell_findings(tampering.what, verification);
        }
        return all_found;
    }

    void tell_findings(std::string_view what, const Verification& verification) {
        say(fmt::format("   {}:", what));
        std::vector<std::string> elements;
        for (const Finding& finding : verification.findings) {
            const std::string line = fmt::format("entry {} {}: {}", finding.seq, name_of(finding.kind), finding.detail);
            say("     " + tinted(context_.style, Tone::good,
                                 one_line(line, std::max<std::size_t>(context_.style.width, 40) - 6)));
            elements.push_back(JsonObject().text("kind", name_of(finding.kind)).number("seq", finding.seq).str());
        }
        if (elements.empty()) say("     " + tinted(context_.style, Tone::bad, "not found"));
        tamperings_json_.push_back(JsonObject().text("what", what).raw("findings", json_array(elements)).str());
    }

    /// Tampers, verifies and rolls back.
    Verification verify_after(const Tampering& tampering) {
        struct RollBack {};
        Verification verification;
        try {
            owner_.transact({}, [&](Transaction& transaction) {
                transaction.execute({"demo.triggers_off", "ALTER TABLE rowlock.audit_log DISABLE TRIGGER ALL"});
                transaction.execute({"demo.key_off", "ALTER TABLE rowlock.audit_log DROP CONSTRAINT audit_log_pkey"});
                transaction.execute({"demo.tamper", tampering.sql}, {*victim_, victim_entries_});
                verification = log_.verify(transaction, *victim_);
                throw RollBack{};
            });
        } catch (const RollBack&) {
            // As intended: the next tampering begins with the true log again.
        }
        return verification;
    }

    /// The second act: not by luck, but by playing every distinct schedule.
    bool show_races() {
        heading(6, "The race checker plays every distinct schedule of three scenarios, on a server of its own");
        DemoRaces races = play_demo_races(context_.style);
        for (const std::string& line : races.lines) say(line.empty() ? "" : "   " + line);
        say("   As a page, with every lock at every step: " + races.report.string());
        races_json_ = std::move(races.json);
        race_report_ = races.report.string();
        return races.as_expected;
    }

    void cost() {
        heading(5, "What it cost");
        say(fmt::format("   numbers, chain, row-level security and audit: {}; MAX+1 without any of it: {} ({:.2f}×)",
                        rate(count(), ours_seconds_), rate(count(), naive_seconds_),
                        naive_seconds_ / std::max(ours_seconds_, 1e-6)));
        say(fmt::format("   verify: {}", rate(count(), verify_seconds_)));
        say("   (rowlock bench append compares them properly)");
    }

    const Context& context_;
    const DemoOptions& options_;
    std::vector<TenantEntry> entries_;
    ScratchDatabase scratch_;
    Database app_;
    Database owner_;
    AuditLog log_;
    double ours_seconds_ = 0;
    double naive_seconds_ = 0;
    double verify_seconds_ = 0;
    std::int64_t duplicates_ = 0;
    std::int64_t gaps_ = 0;
    std::int64_t naive_duplicates_ = 0;
    std::vector<std::string> tamperings_json_;
    std::vector<std::string> races_json_;
    std::string race_report_;
    std::int64_t victim_entries_ = 0;
    std::optional<TenantId> victim_;
};

}  // namespace

Exit demo(const Context& context, const DemoOptions& options) {
    if (!context.globals.db.empty()) {
        throw InvalidInput(
            "the demo tampers with tables as a superuser, so it runs on the private server alone; leave out "
            "--db and ROWLOCK_DB");
    }
    return Tour(context, options).run();
}

}  // namespace rowlock::cli
