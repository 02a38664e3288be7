// The faults of rowlock, sorted by what the caller can do about them.
//
// A refusal (somebody else won, the entry is already there) is not a fault: it is a value that the call returns.
#pragma once

#include <chrono>
#include <optional>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace rowlock {

/// What may be done after a fault. `Database::transact` acts on it; so may a caller with a loop of its own.
enum class Recovery {
    run_again,                ///< The server undid the transaction for a passing reason: run the whole of it again.
    reconnect_and_run_again,  ///< The link was lost before COMMIT was sent: nothing was committed.
    ask_server_first,         ///< COMMIT was sent and no answer came: only a row that it wrote can tell.
    give_up,                  ///< Running the same again would end the same way.
};

/// The root of every fault that rowlock throws.
class Error : public std::runtime_error {
  public:
    Error(const std::string& message, Recovery recovery, std::source_location where = std::source_location::current())
        : std::runtime_error(message), recovery_(recovery), where_(where) {}

    [[nodiscard]] Recovery recovery() const noexcept { return recovery_; }
    /// The call in the program that asked for the work.
    [[nodiscard]] const std::source_location& where() const noexcept { return where_; }

  private:
    Recovery recovery_;
    std::source_location where_;
};

/// Something that the caller passed in can't be used: an empty tenant, a malformed uuid, a bad line. Nothing was sent.
class InvalidInput : public Error {
  public:
    explicit InvalidInput(const std::string& message, std::source_location where = std::source_location::current())
        : Error(message, Recovery::give_up, where) {}
};

/// The surroundings are not as they must be: no schema or another version of it, a role that bypasses row-level
/// security, a keyring that is missing, readable by others, or lacks a key, a server that is too old.
class SetupError : public Error {
  public:
    explicit SetupError(const std::string& message, std::source_location where = std::source_location::current())
        : Error(message, Recovery::give_up, where) {}
};

/// No connection could be had, or it was lost before COMMIT was sent.
class ConnectionError : public Error {
  public:
    ConnectionError(const std::string& message, Recovery recovery, std::string sqlstate = {},
                    std::source_location where = std::source_location::current())
        : Error(message, recovery, where), sqlstate_(std::move(sqlstate)) {}

    /// Empty where the server never answered.
    [[nodiscard]] const std::string& sqlstate() const noexcept { return sqlstate_; }

  private:
    std::string sqlstate_;
};

/// What the server said of a statement that failed; empty strings where it said nothing.
struct ServerReport {
    std::string sqlstate{};
    std::string message{};
    std::string detail{};
    std::string hint{};
    std::string constraint{};
    std::string table{};
    std::string column{};
    std::string statement{};   ///< The name of the rowlock statement, such as "audit.lock_head".
    std::size_t position = 0;  ///< The character of the statement that the server points at, from 1; 0: none.
};

/// The server refused a statement.
/// Source: https://www.postgresql.org/docs/15/errcodes-appendix.html
class ServerError : public Error {
  public:
    ServerError(ServerReport report, Recovery recovery, std::source_location where = std::source_location::current());

    [[nodiscard]] const ServerReport& report() const noexcept { return report_; }
    [[nodiscard]] const std::string& sqlstate() const noexcept { return report_.sqlstate; }

  protected:
    ServerError(const std::string& what, ServerReport report, Recovery recovery, std::source_location where)
        : Error(what, recovery, where), report_(std::move(report)) {}

  private:
    ServerReport report_;
};

/// A session that somebody else waits for.
struct Blocker {
    int pid = 0;
    std::string application_name{};  ///< Empty where this role may not see it.
    std::string state{};             ///< Such as "idle in transaction"; empty likewise.
    std::chrono::milliseconds transaction_age{};
};

/// A lock could not be had within its limit; the transaction is undone. Its SQLSTATE is 55P03.
/// Busy is an answer: tell a person to try again, let a batch skip the row. It is thrown, not returned, from inside a
/// transaction, because the server has already aborted that transaction and nothing more can be done in it;
/// `Database::try_transact` turns it into a value.
class Busy : public ServerError {
  public:
    Busy(const ServerReport& report, std::chrono::milliseconds limit,
         std::source_location where = std::source_location::current());

    /// How long the statement was allowed to wait.
    [[nodiscard]] std::chrono::milliseconds limit() const noexcept { return limit_; }
    /// Who was in the way, where `TransactionPolicy::name_blockers` asked and the server could still tell: whoever was
    /// gone by then is not among them.
    [[nodiscard]] const std::vector<Blocker>& blockers() const noexcept { return blockers_; }
    [[nodiscard]] Busy with_blockers(std::vector<Blocker> blockers) const;

  private:
    std::chrono::milliseconds limit_;
    std::vector<Blocker> blockers_;
};

/// The link was lost after COMMIT was sent. The transaction may or may not have happened, so it is never run again
/// blindly: look for a row that it wrote (an entry id, a number), and decide by that.
/// Deliberately not a ConnectionError, which may be retried.
class CommitOutcomeUnknown : public Error {
  public:
    explicit CommitOutcomeUnknown(const std::string& message,
                                  std::source_location where = std::source_location::current())
        : Error(message, Recovery::ask_server_first, where) {}
};

}  // namespace rowlock
