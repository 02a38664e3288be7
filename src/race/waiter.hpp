// Who waits for whom.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

namespace rowlock::race {

/// A session that waits.
struct Waiter {
    std::size_t session;
    std::chrono::steady_clock::time_point since;
    std::vector<std::size_t> blocked_by{};
};

/// Sessions from which a walk along "waits for" comes back to where it started, in order.
[[nodiscard]] std::vector<std::size_t> in_cycles(std::span<const Waiter> waiters);

}  // namespace rowlock::race
