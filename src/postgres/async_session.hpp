// A connection that never waits: statements are sent and looked after while others run. The race checker watches
// several at once, some of which wait for a lock.
#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rowlock/error.hpp"
#include "rowlock/rows.hpp"

namespace rowlock {

/// What one statement of a script gave: rows (perhaps none) and its tag, or how it failed.
struct AsyncResult {
    std::optional<Rows> rows{};
    std::optional<ServerReport> failure{};
};

struct Notice {
    std::string severity;
    std::string message;
};

class AsyncSession {
  public:
    /// Connects, within `wait_max`; `settings` are sent with the connection, so that DISCARD ALL returns to them.
    /// Throws ConnectionError.
    AsyncSession(const std::string& connection, const std::vector<std::pair<std::string, std::string>>& settings,
                 std::chrono::milliseconds wait_max);

    /// Starts a script by the simple protocol: several statements are one implicit transaction, as psql's -c and
    /// isolationtester send them. Nothing else may be under way.
    /// Source: https://www.postgresql.org/docs/15/protocol-flow.html#id-1.10.6.7.4
    void send(const std::string& script);
    /// Takes in what has arrived, without waiting; true once the answer is whole (or the link is lost).
    bool advance();
    /// A script was sent, and its answer is not whole yet.
    [[nodiscard]] bool is_busy() const noexcept { return busy_; }

    /// The answers to the script since they were last taken.
    std::vector<AsyncResult> take_results() { return std::exchange(results_, {}); }
    std::vector<Notice> take_notices() { return std::exchange(notices_, {}); }

    [[nodiscard]] bool is_lost() const noexcept { return lost_; }
    /// Reads what the server says unasked, until nothing has come for so long: that it ends the session, for one.
    void notice_loss(std::chrono::microseconds wait_max);
    [[nodiscard]] bool in_transaction() const noexcept;
    [[nodiscard]] bool in_failed_transaction() const noexcept;
    [[nodiscard]] int backend_pid() const noexcept { return backend_pid_; }
    [[nodiscard]] int socket() const noexcept;
    /// Ends the connection; the backend may live a moment longer.
    void close();
    /// Asks the server to give up what is running; the answer comes by `advance`.
    void cancel();

  private:
    struct Closer {
        void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
    };

    static void keep_notice(void* session, const PGresult* result);
    void take_result(PGresult* result);

    std::unique_ptr<PGconn, Closer> connection_;
    std::vector<AsyncResult> results_;
    std::unique_ptr<std::vector<Notice>> arrived_;
    std::vector<Notice> notices_;
    int backend_pid_ = 0;
    bool busy_ = false;
    bool lost_ = false;
};

/// Waits until one of the sessions has something to read, at most `wait_max`; false where none had.
bool wait_for_any(std::span<const AsyncSession* const> sessions, std::chrono::microseconds wait_max);

}  // namespace rowlock
