// The open transaction that every write path of rowlock is a plain function on.
#pragma once

#include <chrono>
#include <functional>
#include <initializer_list>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "rowlock/error.hpp"
#include "rowlock/identifiers.hpp"
#include "rowlock/rows.hpp"

namespace rowlock {

/// Source: https://www.postgresql.org/docs/15/transaction-iso.html
enum class IsolationLevel { read_committed, repeatable_read, serializable };

/// How long to wait for a lock that somebody else holds. Any duration becomes one: `.lock_wait_max = 3s`.
/// Source: https://www.postgresql.org/docs/15/sql-select.html#SQL-FOR-UPDATE-SHARE
class LockWait {
  public:
    /// Up to this long, then Busy. Less than 1 ms is refused by `transact`: 0 would mean no limit to the server.
    template <class Number, class Period>
    constexpr LockWait(std::chrono::duration<Number, Period> limit)
        : limit_(std::chrono::duration_cast<std::chrono::milliseconds>(limit)) {}
    /// Busy at once, and the transaction is undone (NOWAIT).
    [[nodiscard]] static constexpr LockWait no_wait() { return {Mode::no_wait}; }
    /// The same; but where one row is locked by its key, the transaction goes on: a body may take the next (SKIP LOCKED).
    [[nodiscard]] static constexpr LockWait skip_locked() { return {Mode::skip_locked}; }

    [[nodiscard]] constexpr bool is_no_wait() const noexcept { return mode_ == Mode::no_wait; }
    [[nodiscard]] constexpr bool is_skip_locked() const noexcept { return mode_ == Mode::skip_locked; }
    [[nodiscard]] constexpr bool waits() const noexcept { return mode_ == Mode::up_to; }
    /// 1 ms, the least there is, for what knows no NOWAIT: the check of a foreign key, a plain UPDATE.
    [[nodiscard]] constexpr std::chrono::milliseconds limit() const noexcept { return limit_; }

  private:
    enum class Mode { up_to, no_wait, skip_locked };
    constexpr LockWait(Mode mode) : mode_(mode), limit_(1) {}
    Mode mode_ = Mode::up_to;
    std::chrono::milliseconds limit_;
};

/// SQL text with a name for error messages. Both must outlive the program's use of them: make them constants.
struct Statement {
    std::string_view name;
    std::string_view sql;
    /// It may wait for locks: then all of its waits together are bounded by the policy's `lock_wait_max`, not each of
    /// them
    /// (`lock_timeout` alone starts again for every holder and every row).
    bool waits_for_locks = false;
};

/// A statement with its values, for sending several in one round trip.
struct Query {
    Statement statement;
    std::vector<Parameter> parameters;
};

/// An open transaction. Only `Database::transact` makes one, commits it or rolls it back; a body that throws rolls it
/// back. Using it after that is a contract failure. Not for use by two threads at once.
class Transaction {
  public:
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;

    /// Sends the statement with everything enqueued before it, and waits: one round trip.
    /// Throws ServerError or Busy, after which the transaction is aborted (unless a savepoint holds), or
    /// ConnectionError; InvalidInput, with nothing sent, for more than 65535 parameters or a NUL in one.
    ///
    /// What a statement changes beyond the transaction (SET without LOCAL, LISTEN, temporary tables, session-level
    /// advisory locks) meets the next user of the pooled connection. A statement that ends the transaction (COMMIT,
    /// ROLLBACK) is a contract failure.
    Rows execute(const Statement& statement, std::vector<Parameter> parameters = {},
                 std::source_location where = std::source_location::current());

    /// The same for several statements: still one round trip. The first one that fails is thrown; those behind it did
    /// not run.
    std::vector<Rows> execute_all(const std::vector<Query>& queries,
                                  std::source_location where = std::source_location::current());

    /// Sends the statement with the next `execute`, or with the COMMIT: no round trip of its own. If it fails, that
    /// call throws, and nothing of the transaction is kept.
    void enqueue(const Statement& statement, std::vector<Parameter> parameters = {},
                 std::source_location where = std::source_location::current());

    /// Runs `body` in a savepoint. A throw undoes what the body did, gives back the row locks it took, and goes on up.
    template <class Body>
    auto savepoint(Body&& body) -> std::invoke_result_t<Body&> {
        const Savepoint guard(*this);
        if constexpr (std::is_void_v<std::invoke_result_t<Body&>>) {
            body();
            release_savepoint();
        } else {
            auto result = body();
            release_savepoint();
            return result;
        }
    }

    /// Runs a script of several statements, without parameters, within this transaction.
    void execute_script(const Statement& script, std::source_location where = std::source_location::current());

    /// Runs `COPY … TO STDOUT` and hands over each piece as it comes. What is handed over is valid during the call.
    /// A throw from `piece` costs the connection: the transaction can't go on, not even from a savepoint.
    /// COPY takes no `$n`: what varies goes in through `set_config`, with parameters.
    void copy_out(const Statement& statement, const std::function<void(std::span<const std::byte>)>& piece,
                  std::source_location where = std::source_location::current());

    /// Runs `effect` once, after the transaction has been committed and its connection given back: the place for what
    /// can't be undone, such as a mail or a message. Not run where the transaction, this run of the body, or the
    /// savepoint that it was asked in is rolled back; nor where the outcome stays unknown. A throw goes on up to the
    /// caller of `transact`, when all effects have run: what is committed stays. A process that dies between the two
    /// loses the effect: what must not be lost is a row of the transaction.
    void after_commit(std::function<void()> effect, std::source_location where = std::source_location::current());

    /// The tenant of the policy; nothing is visible under row-level security without one.
    [[nodiscard]] const std::optional<TenantId>& tenant() const noexcept;
    /// The same, where one is needed: throws InvalidInput if the policy named none.
    [[nodiscard]] const TenantId& required_tenant(std::source_location where = std::source_location::current()) const;
    [[nodiscard]] IsolationLevel isolation() const noexcept;
    [[nodiscard]] LockWait lock_wait_max() const noexcept;
    /// The process id of the server's backend, for pg_locks and pg_stat_activity; 0 behind a pooler such as PgBouncer,
    /// which gives every transaction another one.
    [[nodiscard]] int backend_pid() const noexcept;

    struct State;
    /// For src/postgres.
    explicit Transaction(State& state) : state_(state) {}
    [[nodiscard]] State& state() noexcept { return state_; }

  private:
    class Savepoint {
      public:
        explicit Savepoint(Transaction& transaction);
        Savepoint(const Savepoint&) = delete;
        Savepoint& operator=(const Savepoint&) = delete;
        ~Savepoint();

      private:
        Transaction& transaction_;
        int exceptions_;
        std::size_t acquisitions_;
        std::size_t effects_;
    };
    void release_savepoint();

    State& state_;
};

/// What is of no use after its transaction, such as a guard, derives from this: it can't be a body's result.
struct BoundToTransaction {};

template <class Type>
struct HoldsBound : std::is_base_of<BoundToTransaction, Type> {};
template <template <class...> class Holder, class... Types>
struct HoldsBound<Holder<Types...>>
    : std::bool_constant<std::is_base_of_v<BoundToTransaction, Holder<Types...>> || (HoldsBound<Types>::value || ...)> {
};

}  // namespace rowlock
