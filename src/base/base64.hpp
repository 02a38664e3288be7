// Base 64 with padding (RFC 4648, section 4).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rowlock {

[[nodiscard]] std::string to_base64(std::span<const std::byte> bytes);

/// Nothing for any text that `to_base64` would not have written: no white space, no missing padding, no bits left over.
[[nodiscard]] std::optional<std::vector<std::byte>> from_base64(std::string_view text);

}  // namespace rowlock
