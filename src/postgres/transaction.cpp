#include "rowlock/transaction.hpp"

#include <fmt/format.h>

#include <exception>

#include "base/contract.hpp"
#include "postgres/sqlstate.hpp"
#include "postgres/transaction_state.hpp"

namespace rowlock {

namespace {

std::string_view begin_text(IsolationLevel isolation) {
    switch (isolation) {
        case IsolationLevel::read_committed:
            return "BEGIN ISOLATION LEVEL READ COMMITTED";
        case IsolationLevel::repeatable_read:
            return "BEGIN ISOLATION LEVEL REPEATABLE READ";
        case IsolationLevel::serializable:
            return "BEGIN ISOLATION LEVEL SERIALIZABLE";
    }
    return "BEGIN ISOLATION LEVEL SERIALIZABLE";
}

/// A lock's deadline; a limit of the user's own that is shorter stays. Without a deadline, what holds already.
#define ROWLOCK_STATEMENT_LIMIT(deadline)                             \
    "CASE WHEN current_setting('statement_timeout')::interval > '0'"  \
    " AND current_setting('statement_timeout')::interval < " deadline \
    "::text::interval THEN current_setting('statement_timeout')"      \
    " ELSE coalesce(" deadline ", current_setting('statement_timeout')) END"

/// The outer statement_timeout is kept in a setting of our own, so that a deadline can be lifted again without a round
/// trip to learn it.
#define ROWLOCK_KEEP_STATEMENT_LIMIT \
    "set_config('rowlock.statement_timeout', current_setting('statement_timeout'), true)"

#define ROWLOCK_SET_UP                                                                                       \
    "SELECT set_config('rowlock.tenant', $1, true), set_config('lock_timeout', $2, true),"                   \
    " set_config('idle_in_transaction_session_timeout', $3, true), set_config('bytea_output', 'hex', true)," \
    " " ROWLOCK_KEEP_STATEMENT_LIMIT ", set_config('statement_timeout', " ROWLOCK_STATEMENT_LIMIT("$4") ", true)"

/// Everything here is gone with the transaction.
constexpr Statement set_up{"transaction.set_up", ROWLOCK_SET_UP};
constexpr Statement set_up_with_role{"transaction.set_up", ROWLOCK_SET_UP ", set_config('role', $5, true)"};

/// set_config goes unseen by Citus, and the tenant would be set on this server alone.
constexpr Statement tell_nodes{"transaction.tell_nodes", "SELECT rowlock.tell_nodes($1, $2)"};

constexpr Statement set_lock_deadline_on{"transaction.set_lock_deadline",
                                         "SELECT " ROWLOCK_KEEP_STATEMENT_LIMIT
                                         ", set_config('statement_timeout', " ROWLOCK_STATEMENT_LIMIT("$1") ", true)"};
constexpr Statement set_lock_deadline_off{
    "transaction.lift_lock_deadline",
    "SELECT set_config('statement_timeout', current_setting('rowlock.statement_timeout'), true)"};
constexpr Statement commit_work{"transaction.commit", "COMMIT"};
constexpr Statement roll_back{"transaction.rollback", "ROLLBACK"};
constexpr Statement set_savepoint{"transaction.savepoint", "SAVEPOINT rowlock"};
constexpr Statement release{"transaction.release", "RELEASE SAVEPOINT rowlock"};
constexpr Statement roll_back_to{"transaction.rollback_to", "ROLLBACK TO SAVEPOINT rowlock"};

constexpr std::string_view lock_not_available = "55P03";
constexpr std::string_view query_canceled = "57014";

/// Before anything is queued, so that a body that catches this can go on.
void require_parameters(const std::vector<Parameter>& parameters, std::source_location where) {
    if (parameters.size() > Session::parameters_max) {
        throw InvalidInput(fmt::format("a statement has {} parameters; at most {} are possible: pass arrays",
                                       parameters.size(), Session::parameters_max),
                           where);
    }
    for (const Parameter& parameter : parameters) {
        if (!parameter.is_binary() && parameter.text() && parameter.text()->find('\0') != std::string::npos) {
            throw InvalidInput("a parameter has a NUL in it, which PostgreSQL can't hold as text: pass bytes", where);
        }
    }
}

/// 0 where nothing was waited for.
std::chrono::milliseconds busy_limit(const TransactionPolicy& policy) {
    return policy.lock_wait_max.waits() ? policy.lock_wait_max.limit() : std::chrono::milliseconds(0);
}

std::string milliseconds(std::chrono::milliseconds duration) {
    return fmt::format("{}ms", duration.count());
}

}  // namespace

void Transaction::State::require_open(std::source_location where) const {
    contract(!ended_, "a transaction is not used after its end", where);
}

void Transaction::State::queue_own(const Query& query) {
    session.queue(query.statement, query.parameters);
    pending_.push_back({Use::unread, false});
}

void Transaction::State::begin(bool first_waits_for_locks) {
    const std::string_view tenant_text = policy.tenant ? std::string_view(policy.tenant->text()) : "";
    lock_deadline_on_ = first_waits_for_locks;
    std::vector<Parameter> parameters{
        tenant_text, milliseconds(policy.lock_wait_max.limit()), milliseconds(policy.idle_max),
        first_waits_for_locks ? Parameter(milliseconds(policy.lock_wait_max.limit())) : Parameter(std::nullopt)};
    if (!options.role.empty()) parameters.emplace_back(options.role);
    queue_own({{"transaction.begin", begin_text(policy.isolation)}, {}});
    queue_own({options.role.empty() ? set_up : set_up_with_role, std::move(parameters)});
    if (distributed()) queue_own({tell_nodes, {tenant_text, milliseconds(policy.lock_wait_max.limit())}});
    begun_ = true;
}

void Transaction::State::set_lock_deadline(bool on) {
    if (lock_deadline_on_ == on) return;
    lock_deadline_on_ = on;
    if (on) {
        queue_own({set_lock_deadline_on, {milliseconds(policy.lock_wait_max.limit())}});
    } else {
        queue_own({set_lock_deadline_off, {}});
    }
}

void Transaction::State::queue(const Query& query, Use use, std::source_location where) {
    require_open(where);
    // Where nothing waits, a deadline would only cut short the work.
    const bool has_deadline = query.statement.waits_for_locks && policy.lock_wait_max.waits();
    if (!begun_) begin(has_deadline);
    set_lock_deadline(has_deadline);
    session.queue(query.statement, query.parameters);
    pending_.push_back({use, has_deadline});
}

std::vector<Rows> Transaction::State::flush(std::source_location where) {
    require_open(where);
    flushed_at_ = std::chrono::steady_clock::now();
    return take(session.flush(), where);
}

std::vector<Rows> Transaction::State::take(Session::Outcome outcome, std::source_location where) {
    if (outcome.failed) fail(*outcome.failed, where);
    contract(ended_ || !begun_ || session.in_transaction(), "a body does not end its transaction itself", where);
    std::vector<Rows> wanted;
    for (std::size_t i = 0; i < pending_.size(); ++i) {
        if (pending_[i].use == Use::wanted) wanted.push_back(std::move(outcome.rows[i]));
    }
    pending_.clear();
    return wanted;
}

void Transaction::State::fail(const FailedStatement& failed, std::source_location where) {
    const bool waited_for_locks = failed.index < pending_.size() && pending_[failed.index].waits_for_locks;
    pending_.clear();
    aborted_ = true;
    ServerReport report = failed.report;
    if (failed.session_over) {
        const std::string_view what = report.sqlstate.empty() ? "the connection was lost" : "the session is over";
        throw ConnectionError(fmt::format("{}: {}", what, report.message), failed.recovery, report.sqlstate, where);
    }
    if (report.sqlstate == lock_not_available) throw_busy(std::move(report), where);
    // statement_timeout stands in for the deadline of a locking statement. What else cancels comes earlier than that,
    // or says so, where the server's messages are English.
    const auto elapsed = std::chrono::steady_clock::now() - flushed_at_;
    if (report.sqlstate == query_canceled && waited_for_locks && elapsed >= policy.lock_wait_max.limit() &&
        !report.message.ends_with("user request")) {
        report.sqlstate = lock_not_available;
        throw_busy(std::move(report), where);
    }
    throw ServerError(std::move(report), failed.recovery, where);
}

void Transaction::State::throw_busy(ServerReport report, std::source_location where) const {
    const std::chrono::milliseconds limit = busy_limit(policy);
    if (report.hint.empty() && limit.count() > 0 && limit <= session.deadlock_timeout()) {
        report.hint = fmt::format(
            "it may have been a deadlock: the wait ended before the server's deadlock_timeout of {} ms, when it looks",
            session.deadlock_timeout().count());
    }
    throw Busy(report, limit, where);
}

void Transaction::State::advise_against(const Statement& statement) {
#ifndef NDEBUG
    if (wants_to_be_last.empty()) return;
    if (options.advice) {
        options.advice(
            fmt::format("{} follows {}, whose lock is now held for a further round trip: make that the last "
                        "thing in the transaction",
                        statement.name, wants_to_be_last));
    }
    wants_to_be_last = {};
#else
    static_cast<void>(statement);
#endif
}

void Transaction::State::report_lock_order(std::string_view what, std::source_location where) const {
    if (options.lock_order_broken) {
        options.lock_order_broken(what);
        return;
    }
#ifndef NDEBUG
    contract(false, what, where);
#else
    static_cast<void>(where);
#endif
}

void Transaction::State::commit(std::source_location where) {
    require_open(where);
    if (aborted_) {
        rollback();
        throw ServerError(
            {.sqlstate = "25P02",
             .message = "the transaction was aborted by an error that its body caught and did not pass on",
             .statement = "transaction.commit"},
            session.usable() ? Recovery::give_up : Recovery::reconnect_and_run_again, where);
    }
    ended_ = true;
    if (!begun_) return;
    // It would cut short the wait of the COMMIT for a synchronous standby.
    set_lock_deadline(false);
    session.queue(commit_work, {});
    pending_.push_back({Use::wanted, false});
    flushed_at_ = std::chrono::steady_clock::now();
    Session::Outcome outcome = session.flush();
    if (outcome.failed && outcome.failed->last_in_doubt) {
        throw CommitOutcomeUnknown(
            "the connection was lost after COMMIT was sent, so it may or may not have happened: " +
                outcome.failed->report.message,
            where);
    }
    ended_ = !outcome.failed;
    const auto rows = take(std::move(outcome), where);
    contract(rows.back().command_tag() == "COMMIT", "COMMIT of a transaction that did not fail commits it", where);
}

void Transaction::State::rollback() noexcept {
    if (ended_) return;
    ended_ = true;
    if (!begun_ || !session.usable()) return;
    try {
        // On its own: behind a queued statement that fails, ROLLBACK would not run.
        if (session.queued() > 0) session.flush();
        session.queue(roll_back, {});
        session.flush();
    } catch (...) {
        // Only memory can run out here. The session stays in its transaction; the pool sees that and closes it.
    }
}

void Transaction::State::roll_back_to_savepoint(std::size_t acquisitions_before, std::size_t effects_before) noexcept {
    if (ended_) return;
    aborted_ = true;  // until the server has undone it
    try {
        if (session.queued() > 0) session.flush();
        pending_.clear();
        session.queue(roll_back_to, {});
        session.queue(release, {});
        const Session::Outcome outcome = session.flush();
        if (outcome.failed) return;
        aborted_ = false;
        // No deadline is on where a savepoint is set, and ROLLBACK TO undoes set_config.
        lock_deadline_on_ = false;
        acquisitions.resize(acquisitions_before);
        effects.resize(effects_before);
        wants_to_be_last = {};
    } catch (...) {
        // Only memory can run out here.
    }
}

Rows Transaction::execute(const Statement& statement, std::vector<Parameter> parameters, std::source_location where) {
    std::vector<Query> queries;
    queries.push_back({statement, std::move(parameters)});
    return std::move(execute_all(queries, where).back());
}

std::vector<Rows> Transaction::execute_all(const std::vector<Query>& queries, std::source_location where) {
    for (const Query& query : queries) require_parameters(query.parameters, where);
    for (const Query& query : queries) {
        state_.advise_against(query.statement);
        state_.queue(query, State::Use::wanted, where);
    }
    return state_.flush(where);
}

void Transaction::enqueue(const Statement& statement, std::vector<Parameter> parameters, std::source_location where) {
    require_parameters(parameters, where);
    state_.advise_against(statement);
    state_.queue({statement, std::move(parameters)}, State::Use::unread, where);
}

void Transaction::execute_script(const Statement& script, std::source_location where) {
    execute_all({{{"transaction.before_script", "SELECT"}, {}}}, where);
    state_.take(state_.session.run_script(script), where);
}

void Transaction::copy_out(const Statement& statement, const std::function<void(std::span<const std::byte>)>& piece,
                           std::source_location where) {
    // COPY is not for the pipeline: what is under way in it has to be done first.
    execute_all({{{"transaction.before_copy", "SELECT"}, {}}}, where);
    try {
        state_.take(state_.session.copy_out(statement, piece), where);
    } catch (...) {
        state_.give_up();
        throw;
    }
}

void Transaction::after_commit(std::function<void()> effect, std::source_location where) {
    state_.require_open(where);
    state_.effects.push_back(std::move(effect));
}

const std::optional<TenantId>& Transaction::tenant() const noexcept {
    return state_.policy.tenant;
}

const TenantId& Transaction::required_tenant(std::source_location where) const {
    if (!state_.policy.tenant) {
        throw InvalidInput("this needs a tenant: set it in the policy of the transaction", where);
    }
    return *state_.policy.tenant;
}

IsolationLevel Transaction::isolation() const noexcept {
    return state_.policy.isolation;
}
LockWait Transaction::lock_wait_max() const noexcept {
    return state_.policy.lock_wait_max;
}
int Transaction::backend_pid() const noexcept {
    return state_.session.backend_pid();
}

Transaction::Savepoint::Savepoint(Transaction& transaction)
    : transaction_(transaction),
      exceptions_(std::uncaught_exceptions()),
      acquisitions_(transaction.state_.acquisitions.size()),
      effects_(transaction.state_.effects.size()) {
    transaction_.execute(set_savepoint);
}

Transaction::Savepoint::~Savepoint() {
    if (std::uncaught_exceptions() > exceptions_) transaction_.state_.roll_back_to_savepoint(acquisitions_, effects_);
}

void Transaction::release_savepoint() {
    execute(release);
}

}  // namespace rowlock
