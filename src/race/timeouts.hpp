// Time-outs are choices of the explorer, so the scenario's own settings are kept from firing by the clock.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "race/scenario.hpp"

namespace rowlock::race {

/// The text with lock_timeout, statement_timeout, deadlock_timeout and the idle time-outs renamed to settings of that
/// name that nothing reads: `SET lock_timeout = '2s'` becomes `SET rowlock.lock_timeout = '2s'`, and so do set_config
/// and the SET of a function.
[[nodiscard]] std::string without_timeouts(std::string_view sql);

/// Which time-out of its own a session may run into when it waits for a lock.
enum class OwnTimeout { none, lock, statement };
[[nodiscard]] OwnTimeout own_timeout_of(const SessionScript& session);

/// The deadlock_timeout that a session sets for itself, as isolationtester's specs do to name the victim; else the
/// server's default of one second.
[[nodiscard]] std::chrono::milliseconds deadlock_timeout_of(const SessionScript& session);

}  // namespace rowlock::race
