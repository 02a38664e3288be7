#include "rowlock/database.hpp"

#include <fmt/format.h>

#include <random>
#include <thread>

#include "base/contract.hpp"
#include "postgres/pool.hpp"
#include "postgres/retry.hpp"
#include "postgres/transaction_state.hpp"

namespace rowlock {

namespace {

using Clock = std::chrono::steady_clock;

/// The pool whose transaction this thread is in. A second connection inside of a transaction can wait for a lock that
/// the first one holds, where no deadlock detector sees it, and drains the pool.
thread_local const Database::Pool* in_use = nullptr;

class InUse {
  public:
    InUse(const Database::Pool& pool, std::source_location where) : before_(in_use) {
        contract(in_use != &pool, "transact is not called inside of a transaction of the same database", where);
        in_use = &pool;
    }
    ~InUse() { in_use = before_; }
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;

  private:
    const Database::Pool* before_;
};

void require_limits(const TransactionPolicy& policy, std::source_location where) {
    using std::chrono::milliseconds;
    if (policy.lock_wait_max < milliseconds(1) || policy.idle_max < milliseconds(1)) {
        throw InvalidInput("lock_wait_max and idle_max are at least 1 ms: 0 would mean no limit to the server", where);
    }
    contract(policy.attempts_max >= 1, "a transaction is attempted at least once", where);
}

double chance() {
    thread_local std::minstd_rand dice{std::random_device{}()};
    return std::uniform_real_distribution<double>(0.0, 1.0)(dice);
}

/// Which backend ran the transaction whose COMMIT got no answer.
struct LostBackend {
    int pid = 0;
    std::string started;
};

constexpr Statement backend_is_there{"database.lost_backend",
                                     "SELECT count(*) FROM pg_stat_activity"
                                     " WHERE pid = $1 AND extract(epoch FROM backend_start) = $2::numeric"};

void attempt(Database::Pool& pool, const TransactionPolicy& policy, const std::function<void(Transaction&)>& body,
             std::source_location where, LostBackend* lost) {
    Lease lease(pool, where);
    if (lost != nullptr) *lost = {lease.session().backend_pid(), lease.session().backend_start()};
    Transaction::State state(lease.session(), policy, pool.options);
    const InUse guard(pool, where);
    try {
        Transaction transaction(state);
        body(transaction);
        state.commit(where);
    } catch (...) {
        state.rollback();
        throw;
    }
}

/// True once the backend has ended, and with it its transaction: only then does the absence of a row mean anything.
bool wait_for_end(Database::Pool& pool, const LostBackend& lost, const TransactionPolicy& policy,
                  std::source_location where) {
    constexpr auto poll_interval = std::chrono::milliseconds(20);
    const auto give_up_at = Clock::now() + policy.deadline;
    TransactionPolicy ask = policy;
    ask.tenant.reset();
    while (Clock::now() < give_up_at) {
        bool there = true;
        try {
            attempt(
                pool, ask,
                [&](Transaction& transaction) {
                    there = transaction.execute(backend_is_there, {lost.pid, lost.started}).only().integer(0) > 0;
                },
                where, nullptr);
        } catch (const ConnectionError&) {
            pool.forget_idle();  // the server may be on its way up again
        }
        if (!there) return true;
        std::this_thread::sleep_for(poll_interval);
    }
    return false;
}

bool settle(Database::Pool& pool, const TransactionPolicy& policy, const LostBackend& lost,
            std::source_location where) {
    pool.forget_idle();
    if (!wait_for_end(pool, lost, policy, where)) {
        throw CommitOutcomeUnknown("the connection was lost after COMMIT was sent, and the server still runs it",
                                   where);
    }
    bool committed = false;
    attempt(
        pool, policy, [&](Transaction& transaction) { committed = policy.was_committed(transaction); }, where, nullptr);
    return committed;
}

}  // namespace

Database::Database(DatabaseOptions options) : pool_(std::make_unique<Pool>(std::move(options))) {
    const Lease first(*pool_, std::source_location::current());
}

Database::~Database() = default;

void Database::run(const TransactionPolicy& policy, const std::function<void(Transaction&)>& body,
                   std::source_location where) {
    require_limits(policy, where);
    const auto started = Clock::now();
    for (int number = 1;; ++number) {
        FailedAttempt failed{number, {}, Recovery::give_up, false};
        LostBackend lost;
        std::exception_ptr fault;
        try {
            attempt(*pool_, policy, body, where, &lost);
            return;
        } catch (const CommitOutcomeUnknown&) {
            if (!policy.was_committed) throw;
            if (settle(*pool_, policy, lost, where)) return;
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
        if (!wait) std::rethrow_exception(fault);
        std::this_thread::sleep_for(*wait);
    }
}

}  // namespace rowlock
