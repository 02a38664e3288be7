#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "cli/commands/commands.hpp"
#include "cli/connection.hpp"
#include "cli/crowd.hpp"
#include "cli/explain.hpp"
#include "cli/idle_wait.hpp"
#include "cli/interruption.hpp"
#include "cli/output.hpp"
#include "rowlock/error.hpp"
#include "rowlock/sealer.hpp"

namespace rowlock::cli {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

/// A server that is gone is tried again this often, and given up after `outage_max`, for the service manager to tell.
constexpr std::chrono::milliseconds outage_wait = 1s;
constexpr std::chrono::minutes outage_max{5};
/// How often the main thread looks for a signal and shows how far the others are.
constexpr std::chrono::milliseconds look_around = 50ms;

/// What the threads of this process have done, and what went wrong.
class SealingTotals {
  public:
    void add(const SealRound& round) {
        const std::lock_guard lock(mutex_);
        sealed_.appended += round.sealed.appended;
        sealed_.already_there += round.sealed.already_there;
        sealed_.quarantined += round.sealed.quarantined;
        for (const SealFault& fault : round.faults) tell(fault);
    }
    void tell_outage(std::string_view what) {
        const std::lock_guard lock(mutex_);
        print_note(fmt::format("rowlock: {}; trying again for {} min", what, outage_max.count()));
    }
    [[nodiscard]] Sealed sealed() const {
        const std::lock_guard lock(mutex_);
        return sealed_;
    }
    [[nodiscard]] bool has_faults() const {
        const std::lock_guard lock(mutex_);
        return !told_.empty();
    }

  private:
    /// The same of the same tenant once, or a log would hold nothing else.
    void tell(const SealFault& fault) {
        std::string& last = told_[fault.tenant.text()];
        if (last == fault.what) return;
        last = fault.what;
        print_note(fmt::format("rowlock: tenant {} can't be sealed: {}; the other tenants are sealed",
                               shown(fault.tenant.text()), shown(fault.what)));
    }

    mutable std::mutex mutex_;
    Sealed sealed_;
    std::map<std::string, std::string> told_;
};

/// One thread's work: rounds until it is told to stop, or, once, until a round leaves nothing.
class SealingThread {
  public:
    SealingThread(Database& database, const AuditLog& log, const SealCommandOptions& options, SealingTotals& totals,
                  const std::atomic<bool>& stop)
        : options_(options), totals_(totals), stop_(stop), sealer_(database, log, sealer_options(options)) {}

    void run() {
        IdleWait idle{std::chrono::milliseconds(options_.poll_ms)};
        while (!stop_) {
            const auto round = try_round();
            if (round && (round->sealed.more || round->tenants > round->faults.size())) idle.worked();
            if (round && round->sealed.more) continue;
            if (round && options_.once) return;
            pause(round ? idle.next() : outage_wait);
        }
    }

  private:
    static SealerOptions sealer_options(const SealCommandOptions& options) {
        SealerOptions sealer;
        sealer.limits.entries_max = options.batch;
        return sealer;
    }

    /// Nothing: the server is gone. Throws when it has been gone for too long.
    std::optional<SealRound> try_round() {
        try {
            SealRound round = sealer_.round([&] { return stop_.load(); });
            gone_since_.reset();
            totals_.add(round);
            return round;
        } catch (const ConnectionError& lost) {
            if (options_.once) throw;
            if (!gone_since_) {
                gone_since_ = Clock::now();
                totals_.tell_outage(explain(lost).line);
            }
            if (Clock::now() - *gone_since_ > outage_max) throw;
            return std::nullopt;
        }
    }

    void pause(std::chrono::milliseconds time) const {
        for (const auto end = Clock::now() + time; Clock::now() < end && !stop_;) {
            std::this_thread::sleep_for(std::min<Clock::duration>(end - Clock::now(), look_around));
        }
    }

    const SealCommandOptions& options_;
    SealingTotals& totals_;
    const std::atomic<bool>& stop_;
    Sealer sealer_;
    std::optional<Clock::time_point> gone_since_;
};

void print_totals(const Context& context, const Sealed& sealed, const StagedCount& left, double seconds) {
    if (context.globals.json) {
        JsonObject object;
        object.number("sealed", sealed.appended).number("already_there", sealed.already_there);
        object.number("quarantined", sealed.quarantined).number("staged", left.entries);
        object.real("seconds", seconds).number("per_second", per_second(sealed.appended, seconds));
        return print_line(object.str());
    }
    std::string line = fmt::format("sealed {} in {:.1f} s ({}/s)", counted(sealed.appended, "entry", "entries"),
                                   seconds, grouped(per_second(sealed.appended, seconds)));
    if (sealed.already_there > 0) line += fmt::format(", {} were there already", grouped(sealed.already_there));
    line += left.entries == 0 ? "; nothing is staged now"
                              : fmt::format("; {} staged", counted(left.entries, "entry is", "entries are"));
    print_line(line);
    if (sealed.quarantined == 0) return;
    print_note(
        fmt::format("rowlock: {} quarantined: their entry ids stand in the log with other content; "
                    "look at rowlock.audit_quarantined",
                    counted(sealed.quarantined, "staged entry was", "staged entries were")));
}

/// Runs `work` in so many threads; this one looks for a signal meanwhile, and tells them to stop.
void run_sealing_threads(const Context& context, Interruption& interruption, const SealingTotals& totals,
                         const std::function<void(const std::atomic<bool>&)>& work, std::size_t threads) {
    std::atomic<bool> stop{false};
    std::atomic<std::size_t> running{threads};
    struct Ending {
        std::atomic<std::size_t>& running;
        ~Ending() { --running; }
    };
    Progress progress(context.style);
    run_crowd(threads + 1, [&](std::size_t number) {
        if (number < threads) {
            const Ending ending{running};
            return work(stop);
        }
        while (running > 0) {
            if (interruption.has_come()) stop = true;
            progress.show(fmt::format("sealed {}", counted(totals.sealed().appended, "entry", "entries")));
            std::this_thread::sleep_for(look_around);
        }
    });
}

}  // namespace

Exit seal(const Context& context, const SealCommandOptions& options) {
    const std::size_t threads = static_cast<std::size_t>(options.writers);
    const auto database = open_database(context, Access::sealer, threads + 1);
    const AuditLog log(open_keyring(context));
    const auto started = Clock::now();
    SealingTotals totals;
    Interruption interruption;
    if (!options.once) print_note("rowlock: sealing what is staged, until SIGTERM or Ctrl-C");
    run_sealing_threads(
        context, interruption, totals,
        [&](const std::atomic<bool>& stop) { SealingThread(*database, log, options, totals, stop).run(); }, threads);
    const StagedCount left = database->transact({}, count_staged);
    print_totals(context, totals.sealed(), left, seconds_since(started));
    return totals.sealed().quarantined > 0 || totals.has_faults() ? Exit::finding : Exit::fine;
}

}  // namespace rowlock::cli
