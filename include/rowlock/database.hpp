// The one place that begins, commits and retries.
#pragma once

#include <chrono>
#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "rowlock/transaction.hpp"

namespace rowlock {

/// How a transaction is run. Every wait in it has a limit.
struct TransactionPolicy {
    /// Set for the transaction alone (`set_config('rowlock.tenant', …, true)`), so that nothing of it is left for the
    /// next user of a pooled connection.
    std::optional<TenantId> tenant{};
    IsolationLevel isolation = IsolationLevel::read_committed;
    /// The longest wait for any one lock (`lock_timeout`); then the transaction ends as Busy. For a statement that
    /// says `waits_for_locks`, the longest that it runs. 1 ms to 24 days.
    LockWait lock_wait_max = std::chrono::seconds(3);
    /// The server ends a transaction whose client has been silent for this long, so that a vanished client does not
    /// hold its locks for ever (`idle_in_transaction_session_timeout`). 1 ms to 24 days.
    std::chrono::milliseconds idle_max{30000};
    /// How often the body may run in all: on 40001, 40P01 and a link lost before COMMIT.
    int attempts_max = 5;
    /// The wait before a further attempt: random, up to `backoff_first`, doubling, never above `backoff_max`.
    std::chrono::milliseconds backoff_first{5};
    std::chrono::milliseconds backoff_max{1000};
    /// No further attempt starts after this long.
    std::chrono::milliseconds deadline{30000};
    /// Treat Busy like a serialization failure: run again.
    bool retry_busy = false;
    /// When it ends as Busy, ask the server who is in the way (`Busy::blockers`): the body runs once more, is always
    /// rolled back, while another connection looks whom it waits for. Takes 0.2 s, and two connections of the pool.
    bool name_blockers = false;
    /// Asked, in a transaction of its own, when the link was lost after COMMIT was sent: did the transaction happen?
    /// Answer by a row that it wrote. It is asked once the transaction can't be going on any more, and again, up to
    /// `deadline`, while the server can't be reached. Without it, and without an answer, CommitOutcomeUnknown is
    /// thrown.
    std::function<bool(Transaction&)> was_committed{};
};

struct DatabaseOptions {
    /// A URI or keyword string of libpq. Empty means libpq's own environment variables (PGHOST, PGSERVICE, …).
    /// Source: https://www.postgresql.org/docs/15/libpq-connect.html#LIBPQ-CONNSTRING
    std::string connection{};
    /// A role to take on in every transaction (`SET LOCAL ROLE`); empty for the role that logged in.
    std::string role{};
    std::string application_name = "rowlock";
    std::size_t connections_max = 16;
    std::chrono::seconds connect_wait_max{10};
    /// Told of advice in debug builds, such as a statement that follows an append in one transaction.
    std::function<void(std::string_view)> advice{};
    /// Told of a lock that was taken in an order that can deadlock, with both places, although no deadlock happened.
    /// Without it, debug builds of rowlock stop the program there.
    std::function<void(std::string_view)> lock_order_broken{};
};

/// A PostgreSQL, with a pool of connections to it. Safe for use by many threads.
class Database {
  public:
    /// Connects once, so that a wrong address or password is known at once. Throws ConnectionError, or SetupError for a
    /// server older than 15 or an encoding that is not UTF8.
    explicit Database(DatabaseOptions options);
    /// The same with a connection string alone. (A template, since g++ takes a std::string for a rival of
    /// `Database({.connection = …})`.)
    template <std::convertible_to<std::string> Text>
    explicit Database(Text connection) : Database(DatabaseOptions{.connection = std::string(std::move(connection))}) {}
    ~Database();
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    /// Runs `body(Transaction&)` in a transaction, commits it, and gives back what the body gave.
    ///
    /// The contract with the body: it may run more than once (Recovery::run_again and reconnect_and_run_again, within
    /// the policy), so nothing outside of the transaction happens in it: `Transaction::after_commit` is the
    /// place for that. A body that throws rolls back. A commit in
    /// doubt is never run again blindly: see `was_committed`. Throws Busy, ServerError, ConnectionError,
    /// CommitOutcomeUnknown, and whatever the body throws.
    template <class Body>
    auto transact(const TransactionPolicy& policy, Body&& body,
                  std::source_location where = std::source_location::current())
        -> std::invoke_result_t<Body&, Transaction&> {
        using Result = std::invoke_result_t<Body&, Transaction&>;
        static_assert(!HoldsBound<Result>::value,
                      "a guard is of no use after its transaction: it can't leave the body");
        if constexpr (std::is_void_v<Result>) {
            run(policy, [&](Transaction& transaction) { body(transaction); }, where);
        } else {
            std::optional<Result> result;
            run(policy, [&](Transaction& transaction) { result.emplace(body(transaction)); }, where);
            return std::move(*result);
        }
    }

    /// The same, with "busy" as a value.
    template <class Body>
    [[nodiscard]] auto try_transact(const TransactionPolicy& policy, Body&& body,
                                    std::source_location where = std::source_location::current()) {
        using Result = std::invoke_result_t<Body&, Transaction&>;
        using Value = std::conditional_t<std::is_void_v<Result>, std::monostate, Result>;
        try {
            if constexpr (std::is_void_v<Result>) {
                transact(policy, body, where);
                return std::variant<Value, Busy>(std::monostate{});
            } else {
                return std::variant<Value, Busy>(transact(policy, body, where));
            }
        } catch (const Busy& busy) {
            return std::variant<Value, Busy>(busy);
        }
    }

    struct Pool;

  private:
    void run(const TransactionPolicy& policy, const std::function<void(Transaction&)>& body,
             std::source_location where);
    using Effects = std::vector<std::function<void()>>;
    Effects run_until_committed(const TransactionPolicy& policy, const std::function<void(Transaction&)>& body,
                                std::source_location where);
    std::vector<Blocker> find_blockers(TransactionPolicy policy, const std::function<void(Transaction&)>& body);
    [[noreturn]] void throw_with_blockers(const std::exception_ptr& busy, const TransactionPolicy& policy,
                                          const std::function<void(Transaction&)>& body);
    std::unique_ptr<Pool> pool_;
};

}  // namespace rowlock
