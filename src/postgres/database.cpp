#include "rowlock/database.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <random>
#include <thread>

#include "base/contract.hpp"
#include "postgres/pool.hpp"
#include "postgres/retry.hpp"
#include "postgres/transaction_state.hpp"

namespace rowlock {

namespace {

using Clock = std::chrono::steady_clock;

class InUse;
/// The transactions that this thread is in, innermost first.
thread_local const InUse* innermost = nullptr;

/// A second connection inside of a transaction can wait for a lock that the first one holds, where no deadlock detector
/// sees it, and drains the pool.
class InUse {
  public:
    InUse(const Database::Pool& pool, std::source_location where) : pool_(pool), outer_(innermost) {
        for (const InUse* use = outer_; use != nullptr; use = use->outer_) {
            contract(&use->pool_ != &pool, "transact is not called inside of a transaction of the same database",
                     where);
        }
        innermost = this;
    }
    ~InUse() { innermost = outer_; }
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;

  private:
    const Database::Pool& pool_;
    const InUse* outer_;
};

void require_limits(const TransactionPolicy& policy, std::source_location where) {
    constexpr std::chrono::milliseconds limit_min{1};
    constexpr std::chrono::milliseconds limit_max{std::numeric_limits<std::int32_t>::max()};
    for (const auto limit : {policy.lock_wait_max.limit(), policy.idle_max}) {
        if (limit >= limit_min && limit <= limit_max) continue;
        throw InvalidInput("lock_wait_max and idle_max are 1 ms to 24 days: 0 would mean no limit to the server",
                           where);
    }
    contract(policy.attempts_max >= 1, "a transaction is attempted at least once", where);
}

double chance() {
    thread_local std::minstd_rand dice{std::random_device{}()};
    return std::uniform_real_distribution<double>(0.0, 1.0)(dice);
}

/// Which backend ran the transaction whose COMMIT got no answer.
struct LostBackend {
    int pid = 0;  ///< 0: behind a pooler, nobody knows.
    std::string started{};
    std::string asked{};  ///< When that was asked first, by the server's clock.
};

/// What is known of an attempt after its end, whatever that was.
struct AttemptTrace {
    LostBackend lost{};
    std::vector<std::function<void()>> effects{};  ///< Of a transaction whose COMMIT was sent.
};

/// The role of the options may not see the activity of the role that logged in; that one may.
constexpr Statement own_role{"database.own_role", "SET LOCAL ROLE NONE"};

/// A start that can't be seen, then or now, is no sign of an end. (Then: where the login's own settings give it a
/// role.)
constexpr Statement backend_is_there{
    "database.lost_backend",
    "SELECT count(*) FROM pg_stat_activity WHERE pid = $1"
    " AND coalesce(extract(epoch FROM backend_start) = NULLIF($2, '')::numeric, true)"};

/// Which backend it was is not known, so: every transaction of this role that began before the question.
constexpr Statement older_transactions{
    "database.older_transactions",
    "SELECT count(*) FILTER (WHERE extract(epoch FROM xact_start) <= asked.at), max(asked.at)"
    "  FROM (SELECT coalesce($1::numeric, extract(epoch FROM clock_timestamp())) AS at) AS asked"
    "  LEFT JOIN pg_stat_activity ON usename = session_user AND datname = current_database()"
    "                            AND pid <> pg_backend_pid()"};

void attempt(Database::Pool& pool, const TransactionPolicy& policy, const std::function<void(Transaction&)>& body,
             std::source_location where, AttemptTrace& trace) {
    const InUse guard(pool, where);
    Lease lease(pool, where);
    trace = {{lease.session().backend_pid(), lease.session().backend_start()}, {}};
    Transaction::State state(lease.session(), policy, pool.options);
    try {
        Transaction transaction(state);
        body(transaction);
        trace.effects = std::move(state.effects);
        state.commit(where);
    } catch (...) {
        state.rollback();
        throw;
    }
}

/// True once the transaction can't be going on any more: only then does the absence of a row mean anything.
bool has_ended(Database::Pool& pool, LostBackend& lost, std::source_location where) {
    bool ended = false;
    const auto ask = [&](Transaction& transaction) {
        transaction.enqueue(own_role);
        if (lost.pid != 0) {
            ended = transaction.execute(backend_is_there, {lost.pid, lost.started}).only().integer(0) == 0;
            return;
        }
        const Parameter asked = lost.asked.empty() ? Parameter(std::nullopt) : Parameter(lost.asked);
        const Rows rows = transaction.execute(older_transactions, {asked});
        ended = rows.only().integer(0) == 0;
        lost.asked = rows.only().text(1);
    };
    AttemptTrace trace;
    attempt(pool, {}, ask, where, trace);
    return ended;
}

/// Whether the transaction happened. Throws CommitOutcomeUnknown, or what `was_committed` throws of its own.
bool settle(Database::Pool& pool, const TransactionPolicy& policy, LostBackend lost, std::source_location where) {
    constexpr auto poll_interval = std::chrono::milliseconds(20);
    const auto give_up_at = Clock::now() + policy.deadline;
    bool ended = false;
    bool committed = false;
    const auto ask = [&](Transaction& transaction) { committed = policy.was_committed(transaction); };
    AttemptTrace trace;
    std::string reason;
    do {
        try {
            reason = "the server still runs it";
            ended = ended || has_ended(pool, lost, where);
            if (ended) {
                attempt(pool, policy, ask, where, trace);
                return committed;
            }
        } catch (const Error& fault) {
            reason = fault.what();
            if (fault.recovery() == Recovery::give_up) break;
            pool.forget_idle();  // the server may be on its way up again
        }
        std::this_thread::sleep_for(poll_interval);
    } while (Clock::now() < give_up_at);
    throw CommitOutcomeUnknown(
        "the connection was lost after COMMIT was sent, and what became of it can't be told: " + reason, where);
}

/// All of them run, whatever one throws: they do not know of each other. The first throw goes on up.
void run_effects(const std::vector<std::function<void()>>& effects) {
    std::exception_ptr first;
    for (const auto& effect : effects) {
        try {
            effect();
        } catch (...) {
            if (!first) first = std::current_exception();
        }
    }
    if (first) std::rethrow_exception(first);
}

}  // namespace

Database::Database(DatabaseOptions options) : pool_(std::make_unique<Pool>(std::move(options))) {
    const Lease first(*pool_, std::source_location::current());
}

Database::~Database() = default;

void Database::run(const TransactionPolicy& policy, const std::function<void(Transaction&)>& body,
                   std::source_location where) {
    require_limits(policy, where);
    run_effects(run_until_committed(policy, body, where));
}

Database::Effects Database::run_until_committed(const TransactionPolicy& policy,
                                                const std::function<void(Transaction&)>& body,
                                                std::source_location where) {
    // NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): it is read after every failed attempt
    const auto started = Clock::now();
    for (int number = 1;; ++number) {
        FailedAttempt failed{number, {}, Recovery::give_up, false};
        AttemptTrace trace;
        std::exception_ptr fault;
        try {
            attempt(*pool_, policy, body, where, trace);
            return std::move(trace.effects);
        } catch (const CommitOutcomeUnknown&) {
            if (!policy.was_committed) throw;
            if (settle(*pool_, policy, trace.lost, where)) return std::move(trace.effects);
            failed.recovery = Recovery::run_again;
            fault = std::current_exception();
        } catch (const Error& error) {
            failed.recovery = error.recovery();
            failed.busy = dynamic_cast<const Busy*>(&error) != nullptr;
            fault = std::current_exception();
        }
        if (failed.recovery == Recovery::reconnect_and_run_again) pool_->forget_idle();
        failed.elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started);
        const auto wait = wait_before_next(policy, failed, chance());
        if (!wait && failed.busy && policy.name_blockers) throw_with_blockers(fault, policy, body);
        if (!wait) std::rethrow_exception(fault);
        std::this_thread::sleep_for(*wait);
    }
}

}  // namespace rowlock
