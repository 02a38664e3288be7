// Text seen as bytes.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace rowlock {

[[nodiscard]] inline std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

}  // namespace rowlock
