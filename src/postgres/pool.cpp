#include "postgres/pool.hpp"

#include <fmt/format.h>

#include "base/contract.hpp"

namespace rowlock {

Database::Pool::Pool(DatabaseOptions options_in) : options(std::move(options_in)) {
    contract(options.connections_max >= 1, "a database has at least one connection");
    idle_.reserve(options.connections_max);
}

/// Null for the right to make a new one.
std::unique_ptr<Session> Database::Pool::take_idle(std::source_location where) {
    std::unique_lock lock(mutex_);
    const bool free = freed_.wait_for(lock, options.connect_wait_max,
                                      [&] { return !idle_.empty() || open_ < options.connections_max; });
    if (!free) {
        throw ConnectionError(fmt::format("all {} connections stayed in use for {} s: raise connections_max, or hold "
                                          "transactions for less long",
                                          options.connections_max, options.connect_wait_max.count()),
                              Recovery::give_up, {}, where);
    }
    if (idle_.empty()) {
        ++open_;
        return nullptr;
    }
    auto session = std::move(idle_.back());
    idle_.pop_back();
    return session;
}

std::unique_ptr<Session> Database::Pool::acquire(std::source_location where) {
    auto session = take_idle(where);
    if (session != nullptr && session->still_usable()) return session;
    session.reset();
    try {
        return std::make_unique<Session>(options, where);
    } catch (...) {
        const std::lock_guard lock(mutex_);
        --open_;
        freed_.notify_one();
        throw;
    }
}

void Database::Pool::give_back(std::unique_ptr<Session> session) {
    const bool reusable = session->usable() && !session->in_transaction() && session->queued() == 0;
    if (!reusable) session.reset();
    const std::lock_guard lock(mutex_);
    if (reusable) {
        idle_.push_back(std::move(session));
    } else {
        --open_;
    }
    freed_.notify_one();
}

void Database::Pool::forget_idle() {
    std::vector<std::unique_ptr<Session>> closing;
    {
        const std::lock_guard lock(mutex_);
        closing.swap(idle_);
        open_ -= closing.size();
    }
    freed_.notify_all();
}

}  // namespace rowlock
