// Bytes as hexadecimal digits, and back.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rowlock {

/// Lower-case digits, two a byte.
[[nodiscard]] std::string to_hex(std::span<const std::byte> bytes);

/// Nothing for an odd number of digits or anything that is no digit. Takes either case.
[[nodiscard]] std::optional<std::vector<std::byte>> from_hex(std::string_view digits);

}  // namespace rowlock
