// Who is in the way: asked of the server while a probe waits, since nobody waits any more once Busy is thrown.
#include <atomic>
#include <thread>

#include "postgres/pool.hpp"
#include "rowlock/database.hpp"

namespace rowlock {

namespace {

using namespace std::chrono_literals;

/// The probe waits this long. It is not cancelled once its blockers are known: by then its connection may be somebody
/// else's.
constexpr std::chrono::milliseconds blockers_wait_max = 200ms;
constexpr std::chrono::milliseconds poll_interval = 5ms;

/// Asked again and again in one transaction, so nothing of pg_stat_activity: that stands still until its end.
constexpr Statement ask_whether_blocked{"database.is_blocked", "SELECT cardinality(pg_blocking_pids($1)) > 0"};

/// Locks: none. The names and states of other roles' sessions are NULL for who is no member of pg_read_all_stats.
constexpr Statement ask_blockers{
    "database.blockers",
    "SELECT blocker.pid, coalesce(activity.application_name, ''), coalesce(activity.state, ''),"
    "       coalesce(extract(epoch FROM clock_timestamp() - activity.xact_start) * 1000, 0)::bigint"
    "  FROM (SELECT DISTINCT unnest(pg_blocking_pids($1)) AS pid) AS blocker"
    "  LEFT JOIN pg_stat_activity AS activity USING (pid)"
    // 0 stands for a prepared transaction, which has no session.
    " WHERE blocker.pid <> 0"
    " ORDER BY 4 DESC, 1"};

/// What the probe's body never gets past: nothing of it may be committed.
struct ProbeDone {};

struct Probe {
    std::atomic<int> pid = 0;
    std::atomic<bool> done = false;
};

/// Waits where `body` waits, and undoes what it did.
void run_probe(Database& database, const TransactionPolicy& policy, const std::function<void(Transaction&)>& body,
               Probe& probe) {
    try {
        database.transact(policy, [&](Transaction& transaction) {
            probe.pid =
                static_cast<int>(transaction.execute({"database.probe", "SELECT pg_backend_pid()"}).only().integer(0));
            body(transaction);
            throw ProbeDone{};
        });
    } catch (...) {
        // Free again, busy still, or whatever the body throws: none of it is news.
        probe.done = true;
    }
}

std::vector<Blocker> blockers_in(const Rows& rows) {
    std::vector<Blocker> blockers;
    for (const Row row : rows) {
        blockers.push_back({static_cast<int>(row.integer(0)), std::string(row.text(1)), std::string(row.text(2)),
                            std::chrono::milliseconds(row.integer(3))});
    }
    return blockers;
}

}  // namespace

std::vector<Blocker> Database::find_blockers(TransactionPolicy policy, const std::function<void(Transaction&)>& body) {
    if (pool_->options.connections_max < 2) return {};
    policy.attempts_max = 1;
    policy.lock_wait_max = blockers_wait_max;
    policy.name_blockers = false;
    std::vector<Blocker> found;
    // Whoever asks has its connection before the probe begins to wait: to open one may take longer than that wait.
    transact({.attempts_max = 1}, [&](Transaction& asking) {
        Probe probe;
        const std::jthread waiting([&] { run_probe(*this, policy, body, probe); });
        while (!probe.done && found.empty()) {
            if (probe.pid != 0 && asking.execute(ask_whether_blocked, {probe.pid.load()}).only().boolean(0)) {
                found = blockers_in(asking.execute(ask_blockers, {probe.pid.load()}));
            }
            if (found.empty()) std::this_thread::sleep_for(poll_interval);
        }
    });
    return found;
}

void Database::throw_with_blockers(const std::exception_ptr& busy, const TransactionPolicy& policy,
                                   const std::function<void(Transaction&)>& body) {
    try {
        std::rethrow_exception(busy);
    } catch (const Busy& fault) {
        std::vector<Blocker> blockers;
        try {
            blockers = find_blockers(policy, body);
        } catch (const Error&) {
            throw fault;  // that the question failed is not what the caller has to know
        }
        throw fault.with_blockers(std::move(blockers));
    }
}

}  // namespace rowlock
