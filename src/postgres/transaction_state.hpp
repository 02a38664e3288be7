// What an open transaction knows of itself; for src/postgres and the features, not installed.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "postgres/session.hpp"
#include "rowlock/database.hpp"
#include "rowlock/transaction.hpp"

namespace rowlock {

/// A lock that a feature took, for checking the order of locks.
struct Acquisition {
    std::string_view lock_class;  ///< Such as "audit head".
    std::string key;
    std::source_location where;
    std::string relation{};              ///< Where a class has several, such as the tables of the user's own.
    int strength = 0;                    ///< Among the modes of its class.
    std::shared_ptr<const void> life{};  ///< Gone with the lock: who holds a weak_ptr to it can tell.
};

struct Transaction::State {
    State(Session& session_in, const TransactionPolicy& policy_in, const DatabaseOptions& options_in)
        : session(session_in), policy(policy_in), options(options_in) {}

    /// Commits, or throws. CommitOutcomeUnknown if the link was lost after COMMIT was sent.
    void commit(std::source_location where);
    /// Never throws: whatever happens, the server undoes the transaction.
    void rollback() noexcept;

    /// Nothing that the body still does is kept.
    void give_up() noexcept { aborted_ = true; }

    enum class Use { wanted, unread };
    void queue(const Query& query, Use use, std::source_location where);
    std::vector<Rows> flush(std::source_location where);
    std::vector<Rows> take(Session::Outcome outcome, std::source_location where);
    void require_open(std::source_location where) const;
    void advise_against(const Statement& statement);
    void roll_back_to_savepoint(std::size_t acquisitions_before, std::size_t effects_before) noexcept;
    /// Tells of an order of locks that can deadlock; in debug builds with nobody to tell, stops the program.
    void report_lock_order(std::string_view what, std::source_location where) const;

    /// Are the schema's tables spread over several servers? Some statements are others there.
    [[nodiscard]] bool distributed() const noexcept { return session.distributed(); }

    Session& session;
    const TransactionPolicy& policy;
    const DatabaseOptions& options;

    std::vector<Acquisition> acquisitions;
    std::vector<std::function<void()>> effects;  ///< For after the commit.
    /// What should have been the last statement, such as "an audit append"; empty if nothing minds.
    std::string_view wants_to_be_last;

  private:
    struct Pending {
        Use use;
        bool waits_for_locks;
    };
    void begin(bool first_waits_for_locks);
    void set_lock_deadline(bool on);
    void queue_own(const Query& query);
    [[noreturn]] void throw_busy(ServerReport report, std::source_location where) const;
    [[noreturn]] void fail(const FailedStatement& failed, std::source_location where);

    std::vector<Pending> pending_;
    std::chrono::steady_clock::time_point flushed_at_;
    bool begun_ = false;
    bool aborted_ = false;
    bool ended_ = false;
    bool lock_deadline_on_ = false;
};

}  // namespace rowlock
