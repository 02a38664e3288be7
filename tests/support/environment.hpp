// What a developer asks of a test through the environment.
#pragma once

#include <cstdlib>

namespace rowlock::test {

/// The number in a variable, or `otherwise` where it is not set.
inline int number_from(const char* variable, int otherwise) {
    const char* const text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
    return text == nullptr ? otherwise : std::atoi(text);
}

/// How much a crowd does: all of it in a build that is meant to be fast, a part in one that looks for bugs in each
/// step. ROWLOCK_TEST_FULL=1 or 0 asks for the one or the other.
inline int full_or(int full, int reduced) {
#ifdef NDEBUG
    constexpr int is_full = 1;
#else
    constexpr int is_full = 0;
#endif
    return number_from("ROWLOCK_TEST_FULL", is_full) != 0 ? full : reduced;
}

}  // namespace rowlock::test
