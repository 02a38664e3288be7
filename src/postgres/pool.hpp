// Connections that are open and not in use.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <source_location>
#include <vector>

#include "postgres/session.hpp"
#include "rowlock/database.hpp"

namespace rowlock {

struct Database::Pool {
    explicit Pool(DatabaseOptions options_in);

    /// An idle session that the server has not ended, or a new one while fewer than `connections_max` are open; else
    /// waits, up to `connect_wait_max`.
    std::unique_ptr<Session> acquire(std::source_location where);
    /// Takes a session back; one that can't be used again is closed.
    void give_back(std::unique_ptr<Session> session);
    /// Closes what is idle: after one lost link the others are likely lost as well.
    void forget_idle();

    const DatabaseOptions options;

  private:
    std::unique_ptr<Session> take_idle(std::source_location where);

    std::mutex mutex_;
    std::condition_variable freed_;
    std::vector<std::unique_ptr<Session>> idle_;
    std::size_t open_ = 0;  ///< Idle, in use and being made.
};

/// Holds a session for as long as a transaction runs on it.
class Lease {
  public:
    Lease(Database::Pool& pool, std::source_location where) : pool_(pool), session_(pool.acquire(where)) {}
    ~Lease() { pool_.give_back(std::move(session_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    [[nodiscard]] Session& session() noexcept { return *session_; }

  private:
    Database::Pool& pool_;
    std::unique_ptr<Session> session_;
};

}  // namespace rowlock
