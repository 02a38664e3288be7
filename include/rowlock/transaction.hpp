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

    /// The tenant of the policy; nothing is visible under row-level security without one.
    [[nodiscard]] const std::optional<TenantId>& tenant() const noexcept;
    /// The same, where one is needed: throws InvalidInput if the policy named none.
    [[nodiscard]] const TenantId& required_tenant(std::source_location where = std::source_location::current()) const;
    [[nodiscard]] IsolationLevel isolation() const noexcept;
    [[nodiscard]] std::chrono::milliseconds lock_wait_max() const noexcept;
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
    };
    void release_savepoint();

    State& state_;
};

}  // namespace rowlock
