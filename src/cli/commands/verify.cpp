#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "cli/commands/commands.hpp"
#include "cli/connection.hpp"
#include "cli/crowd.hpp"
#include "cli/output.hpp"
#include "cli/trust.hpp"
#include "cli/verdicts.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/error.hpp"
#include "rowlock/sealer.hpp"

namespace rowlock::cli {

namespace {

struct Totals {
    std::int64_t tenants = 0;
    std::int64_t entries = 0;
    std::int64_t findings = 0;
    std::int64_t acknowledged = 0;
    bool tampered = false;
    bool rolled_back = false;
    bool undetermined = false;
};

void add(Totals& totals, const Verification& verification) {
    ++totals.tenants;
    totals.entries += verification.entries;
    totals.findings += verification.findings_total;
    totals.acknowledged += acknowledged_in(verification);
    totals.tampered |= verification.verdict == Verdict::tampered;
    totals.rolled_back |= verification.verdict == Verdict::rolled_back;
    totals.undetermined |= verification.verdict == Verdict::unverifiable || verification.verdict == Verdict::empty;
}

Exit exit_of(const Totals& totals) {
    if (totals.tampered || totals.rolled_back) return Exit::finding;
    // Nothing looked at proves nothing.
    if (totals.undetermined || totals.tenants == 0) return Exit::undetermined;
    return Exit::fine;
}

std::string overall_word(const Context& context, const Totals& totals) {
    const Exit exit = exit_of(totals);
    const Verdict bad = totals.tampered ? Verdict::tampered : Verdict::rolled_back;
    const Verdict good = totals.acknowledged > 0 ? Verdict::acknowledged : Verdict::intact;
    const Verdict verdict = exit == Exit::fine ? good : exit == Exit::finding ? bad : Verdict::unverifiable;
    return verdict_on_screen(context, verdict, totals.acknowledged);
}

std::string about_nothing(const VerifyCommandOptions& options) {
    return options.all
               ? "rowlock: nothing was looked at, which proves nothing: the log is empty, or this login may not "
                 "see other tenants; GRANT rowlock_auditor lets it"
               : "rowlock: nothing was looked at, which proves nothing: this tenant has no entries; check its name";
}

void print_summary(const Context& context, const Totals& totals, double seconds, bool all) {
    const std::string overall = all && totals.tenants > 0 ? overall_word(context, totals) + ": " : "";
    print_line(fmt::format("{}{}, {}, {}, in {:.1f} s", overall, counted(totals.tenants, "tenant", "tenants"),
                           counted(totals.entries, "entry", "entries"), counted(totals.findings, "finding", "findings"),
                           seconds));
}

/// Hands out tenants to several threads, and tells what they found in the order of the tenants.
class TenantQueue {
  public:
    using Tell = std::function<void(const TenantId&, const Verification&)>;

    TenantQueue(const std::vector<TenantId>& tenants, Tell tell) : tenants_(tenants), tell_(std::move(tell)) {}

    /// The place of a tenant that nobody has begun; their number behind the last.
    std::size_t take() {
        const std::scoped_lock lock(mutex_);
        return next_ < tenants_.size() ? next_++ : next_;
    }
    void take_all() {
        const std::scoped_lock lock(mutex_);
        next_ = tenants_.size();
    }
    void add(std::size_t place, Verification verification) {
        const std::scoped_lock lock(mutex_);
        untold_.emplace(place, std::move(verification));
        for (auto first = untold_.begin(); first != untold_.end() && first->first == next_told_; ++next_told_) {
            tell_(tenants_[next_told_], first->second);
            first = untold_.erase(first);
        }
    }

  private:
    const std::vector<TenantId>& tenants_;
    const Tell tell_;
    std::mutex mutex_;
    std::size_t next_ = 0;
    std::size_t next_told_ = 0;
    std::map<std::size_t, Verification> untold_;
};

void verify_each(const std::vector<TenantId>& tenants, std::size_t jobs,
                 const std::function<Verification(const TenantId&)>& verify_one, TenantQueue::Tell tell) {
    TenantQueue queue(tenants, std::move(tell));
    run_crowd(std::min(jobs, tenants.size()), [&](std::size_t) {
        try {
            for (std::size_t mine = queue.take(); mine < tenants.size(); mine = queue.take()) {
                queue.add(mine, verify_one(tenants[mine]));
            }
        } catch (...) {
            queue.take_all();  // the others need not begin another one
            throw;
        }
    });
}

}  // namespace

Exit verify(const Context& context, const VerifyCommandOptions& options) {
    if (!options.bundle.empty()) return verify_bundle_file(context, options);
    if (options.all != options.tenant.empty()) throw InvalidInput("name one tenant with --tenant, or say --all");
    auto opened = read_checkpoint_if_named(options.trust);
    if (const auto* const forged = std::get_if<Forged>(&opened)) return tell_forged(*forged);
    const auto& checkpoint = std::get<std::optional<Checkpoint>>(opened);
    const auto database = open_database(context, Access::auditor, std::max<std::size_t>(options.jobs, 2));
    const AuditLog log(open_keyring(context));
    std::vector<TenantId> tenants;
    if (options.all) {
        tenants = tenants_of(*database, checkpoint ? &*checkpoint : nullptr);
    } else {
        tenants.emplace_back(options.tenant);
    }
    Totals totals;
    Progress progress(context.style);
    std::mutex screen;
    const auto started = std::chrono::steady_clock::now();
    const auto verify_one = [&](const TenantId& tenant) {
        VerifyOptions verify_options;
        if (checkpoint) verify_options.checkpoint = &*checkpoint;
        verify_options.gives_way = !options.full_speed;
        verify_options.progress = [&](std::int64_t done, std::int64_t all) {
            const std::scoped_lock lock(screen);
            progress.show(fmt::format("{}: {} of {} entries", shown(tenant.text()), grouped(done), grouped(all)));
        };
        return database->transact({.tenant = tenant}, [&](Transaction& transaction) {
            return log.verify(transaction, tenant, verify_options);
        });
    };
    const auto tell = [&](const TenantId& tenant, const Verification& verification) {
        const std::scoped_lock lock(screen);
        progress.clear();
        add(totals, verification);
        if (context.globals.json) {
            print_line(verification_json(tenant, verification));
        } else if (!options.all || verification.verdict != Verdict::intact || verification.resumptions_total > 0 ||
                   !verification.acknowledgements.empty()) {
            print_verification(context, tenant, verification);
        }
    };
    verify_each(tenants, options.jobs, verify_one, tell);
    const double seconds = seconds_since(started);
    if (!context.globals.json) print_summary(context, totals, seconds, options.all);
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
