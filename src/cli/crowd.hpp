// Several threads that do the same.
#pragma once

#include <cstddef>
#include <functional>

namespace rowlock::cli {

/// Runs `work(0)` … `work(count - 1)` at once, each in a thread of its own, and waits for all of them. Then throws what
/// the first of them threw, if any did.
void run_crowd(std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace rowlock::cli
