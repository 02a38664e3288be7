// FNV-1a, for names that must come out the same everywhere; not for secrets.
// Source: https://datatracker.ietf.org/doc/html/draft-eastlake-fnv
#pragma once

#include <cstdint>
#include <string_view>

namespace rowlock {

[[nodiscard]] constexpr std::uint64_t fnv1a_64(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325U;
    for (const char c : text) {
        hash ^= static_cast<unsigned char>(c);
        hash *= 0x100000001b3U;
    }
    return hash;
}

}  // namespace rowlock
