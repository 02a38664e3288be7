// Whole numbers as bytes, the highest first: the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rowlock {

inline std::byte* put_u32(std::byte* to, std::uint32_t value) {
    for (unsigned shift = 32; shift != 0; shift -= 8) *to++ = static_cast<std::byte>(value >> (shift - 8U));
    return to;
}

inline std::byte* put_u64(std::byte* to, std::uint64_t value) {
    for (unsigned shift = 64; shift != 0; shift -= 8) *to++ = static_cast<std::byte>(value >> (shift - 8U));
    return to;
}

/// Two's complement.
inline std::byte* put_i64(std::byte* to, std::int64_t value) {
    return put_u64(to, static_cast<std::uint64_t>(value));
}

}  // namespace rowlock
