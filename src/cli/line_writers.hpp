// Appends lines through several connections at once and keeps the order of lines within a tenant.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "rowlock/audit_log.hpp"
#include "rowlock/database.hpp"

namespace rowlock::cli {

struct NumberedEntry {
    std::int64_t line;
    std::size_t bytes;
    TenantEntry entry;
    std::int64_t place = 0;  ///< Among all that were given, from 1; set by `add`.
};

struct RefusedLine {
    std::int64_t line;
    std::string reason;
};

/// How far the work came. What counts as done: appended, there already, or refused and to be skipped.
struct WrittenLines {
    std::int64_t appended = 0;
    std::int64_t already_there = 0;
    /// In the order of their numbers.
    std::vector<RefusedLine> refused;
    /// The first line that was given and is not done; every line before it is.
    std::optional<std::int64_t> first_undone;
    /// Lines behind that one which are done, since other writers had begun them.
    std::int64_t done_behind = 0;
    /// What ended the work early, other than a refused line.
    std::exception_ptr fault;
};

/// Lines of one tenant go to one writer, in order; a writer puts what is waiting into one transaction, so a slow source
/// has each line committed at once and a fast one is not held up by a commit a line.
/// What the server refuses is narrowed down to the line. Unless `skip_bad`, every line before the first bad one is
/// appended, and none behind it is begun once it is known.
class LineWriters {
  public:
    LineWriters(Database& database, const AuditLog& log, int writers, bool skip_bad);
    ~LineWriters();
    LineWriters(const LineWriters&) = delete;
    LineWriters& operator=(const LineWriters&) = delete;

    /// Waits while the writer is too far behind. False once the work has stopped: give no more lines.
    bool add(NumberedEntry entry);
    /// Waits until everything is written, or the work has stopped.
    WrittenLines finish();
    /// Lines that are done so far.
    [[nodiscard]] std::int64_t done() const;

  private:
    struct Writer {
        std::deque<NumberedEntry> waiting;
        std::size_t waiting_bytes = 0;
        std::thread thread;
    };
    void run(Writer& writer);
    std::vector<NumberedEntry> next_batch(Writer& writer);
    void write(std::vector<NumberedEntry> batch);
    /// Why the server did not take a batch; nothing of it is written then.
    struct Refusal {
        std::string reason;
        std::optional<std::size_t> at;  ///< Which line it is, where that is known.
    };
    std::optional<Refusal> try_write(const std::vector<NumberedEntry>& batch);
    std::vector<AppendOutcome> append(const std::vector<TenantEntry>& entries);
    void count(const std::vector<NumberedEntry>& batch, const std::vector<AppendOutcome>& outcomes);
    void refuse(const NumberedEntry& entry, std::string reason);
    [[nodiscard]] bool past_stop(const NumberedEntry& entry) const;

    Database& database_;
    const AuditLog& log_;
    const bool skip_bad_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::unique_ptr<Writer>> writers_;
    WrittenLines totals_;
    /// The lines that are given and not done, by place.
    std::map<std::int64_t, std::int64_t> undone_;
    bool no_more_ = false;
    std::int64_t given_ = 0;
    /// The place of the first line that was refused, unless bad lines are skipped.
    std::int64_t stop_at_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace rowlock::cli
