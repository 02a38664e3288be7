// Moments as text: microseconds since 1970-01-01 UTC as "2026-11-30T15:04:05.123456Z".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rowlock {

[[nodiscard]] std::string utc_time_text(std::int64_t microseconds);

/// Nothing for any text that `utc_time_text` would not have written.
[[nodiscard]] std::optional<std::int64_t> parse_utc_time(std::string_view text);

}  // namespace rowlock
