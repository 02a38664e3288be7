// One connection to a server, used in pipeline mode: what is queued goes out together and costs one round trip.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "rowlock/database.hpp"

// libpq's own names for its types; its header stays in src/postgres/*.cpp.
struct pg_conn;
struct pg_result;

namespace rowlock {

/// As server_version_num has it. Row-level security on views (security_invoker) came with it.
inline constexpr int server_version_min = 150000;

using DriverConnection = pg_conn;
using DriverResult = pg_result;

/// A statement that failed, before it is known what the failure means for the transaction.
struct FailedStatement {
    std::size_t index = 0;  ///< Among those of this flush.
    ServerReport report{};
    Recovery recovery = Recovery::give_up;
    bool session_over =
        false;  ///< The link is gone, the server ends the session, or its prepared statements are stale.
    /// The last statement of the flush may have been carried out all the same: it was sent, and no answer to it came.
    bool last_in_doubt = false;
};

class Session {
  public:
    /// Connects, within `connect_wait_max`. Throws ConnectionError, or SetupError for a server that is too old or whose
    /// encoding is not UTF8.
    Session(const DatabaseOptions& options, std::source_location where);
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    static constexpr std::size_t parameters_max = 65535;
    /// Adds a statement to the pipeline; what fits into libpq's buffer is not sent yet. At most `parameters_max`.
    void queue(const Statement& statement, const std::vector<Parameter>& parameters);
    [[nodiscard]] std::size_t queued() const noexcept { return queue_.size(); }

    struct Outcome {
        std::vector<Rows> rows;                 ///< Of the statements that succeeded, in order.
        std::optional<FailedStatement> failed;  ///< The first that did not; those behind it did not run.

        /// The rows, for those who take a failure as a fault: throws ServerError.
        std::vector<Rows> rows_or_throw() &&;
    };
    /// Sends what is queued, ends it with a Sync, and reads every answer.
    Outcome flush();

    /// Runs a script of several statements by the simple protocol. Nothing may be queued.
    Outcome run_script(const Statement& script);
    /// Runs COPY … TO STDOUT. Nothing may be queued.
    Outcome copy_out(const Statement& statement, const std::function<void(std::span<const std::byte>)>& piece);

    /// False once the link is lost or the server said that it closes it.
    [[nodiscard]] bool usable() const noexcept { return usable_; }
    /// The same, after reading what the server has said unasked. Waits for nothing.
    [[nodiscard]] bool still_usable();
    /// Also true where that is not known.
    [[nodiscard]] bool in_transaction() const noexcept;
    /// 0 behind a pooler: there every transaction may have another backend.
    [[nodiscard]] int backend_pid() const noexcept { return prepares_ ? backend_pid_ : 0; }
    /// When that backend started, in seconds: with the pid, it names a backend for good.
    [[nodiscard]] const std::string& backend_start() const noexcept { return backend_start_; }
    /// How long a session waits before the server looks for a deadlock, as it was at connect.
    [[nodiscard]] std::chrono::milliseconds deadlock_timeout() const noexcept { return deadlock_timeout_; }
    /// The schema's tables are spread over several servers (sql/distributed.sql), as it was at connect.
    [[nodiscard]] bool distributed() const noexcept { return distributed_; }

  private:
    struct Queued {
        Statement statement;
        bool prepares;
    };
    struct Closer {
        void operator()(DriverConnection* connection) const noexcept;
    };

    void connect(const DatabaseOptions& options, std::source_location where);
    void greet(const DatabaseOptions& options, std::source_location where);
    void take_greeting(const Row& row, std::source_location where);
    static void hear(void* session, const DriverResult* notice);
    void note_sent(int accepted);
    bool wait_for(short events);
    void send_all();
    DriverResult* next_result();
    void take_result(std::size_t index, DriverResult* result, Outcome& outcome);
    Outcome read_simple(const Statement& statement, const std::function<void(std::span<const std::byte>)>* piece);
    void read_copy(const std::function<void(std::span<const std::byte>)>& piece);
    /// `result` may be null: no answer came.
    FailedStatement failure(std::size_t index, const DriverResult* result, const Statement& statement);
    [[nodiscard]] bool is_last(std::size_t index) const;

    std::unique_ptr<DriverConnection, Closer> connection_;
    std::vector<Queued> queue_;
    std::unordered_set<std::string> prepared_;
    bool prepares_ = false;  ///< Not behind a pooler.
    bool usable_ = true;
    bool sent_ = false;      ///< Something of what is queued may have gone out.
    ServerReport farewell_;  ///< What the server said, unasked, when it ended the session.
    std::optional<std::chrono::steady_clock::time_point> reply_by_;  ///< While connecting.
    int backend_pid_ = 0;
    std::string backend_start_;
    std::chrono::milliseconds deadlock_timeout_{1000};
    bool distributed_ = false;
};

}  // namespace rowlock
