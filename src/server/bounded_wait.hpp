// The one way in which this layer waits.
#pragma once

#include <chrono>
#include <thread>

namespace rowlock {

/// Asks `done()` until it says yes, or until `limit` has passed: then the answer is no. Asks at least once.
template <class Done>
[[nodiscard]] bool wait_until(std::chrono::milliseconds limit, Done&& done) {
    constexpr std::chrono::milliseconds pause{3};
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!done()) {
        if (std::chrono::steady_clock::now() >= deadline) return false;
        std::this_thread::sleep_for(pause);
    }
    return true;
}

}  // namespace rowlock
