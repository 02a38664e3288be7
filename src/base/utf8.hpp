// UTF-8, as RFC 3629 defines it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rowlock {

/// The offset of the first sequence that is not UTF-8; nothing if all of it is.
[[nodiscard]] std::optional<std::size_t> first_invalid_utf8(std::string_view text);

/// Appends a code point that is no surrogate and not above U+10FFFF.
void append_utf8(std::string& text, std::uint32_t code_point);

}  // namespace rowlock
