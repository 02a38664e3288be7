// What a developer asks of a test through the environment.
#pragma once

#include <cstdlib>

namespace rowlock::test {

/// The number in a variable, or `otherwise` where it is not set.
inline int number_from(const char* variable, int otherwise) {
    const char* const text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
    return text == nullptr ? otherwise : std::atoi(text);
}

}  // namespace rowlock::test
