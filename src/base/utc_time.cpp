#include "base/utc_time.hpp"

#include <fmt/core.h>

#include <charconv>
#include <ctime>

namespace rowlock {

namespace {

constexpr std::int64_t microseconds_per_second = 1000000;
constexpr std::string_view shape = "0000-00-00T00:00:00.000000Z";

int digits_at(std::string_view text, std::size_t first, std::size_t count) {
    int value = 0;
    std::from_chars(text.data() + first, text.data() + first + count, value);
    return value;
}

}  // namespace

std::string utc_time_text(std::int64_t microseconds) {
    std::int64_t seconds = microseconds / microseconds_per_second;
    std::int64_t rest = microseconds % microseconds_per_second;
    if (rest < 0) {
        rest += microseconds_per_second;
        --seconds;
    }
    const std::time_t moment = seconds;
    std::tm parts{};
    gmtime_r(&moment, &parts);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                       parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, rest);
}

std::optional<std::int64_t> parse_utc_time(std::string_view text) {
    if (text.size() != shape.size()) return std::nullopt;
    for (std::size_t i = 0; i < shape.size(); ++i) {
        const bool digit = text[i] >= '0' && text[i] <= '9';
        if (shape[i] == '0' ? !digit : text[i] != shape[i]) return std::nullopt;
    }
    std::tm parts{};
    parts.tm_year = digits_at(text, 0, 4) - 1900;
    parts.tm_mon = digits_at(text, 5, 2) - 1;
    parts.tm_mday = digits_at(text, 8, 2);
    parts.tm_hour = digits_at(text, 11, 2);
    parts.tm_min = digits_at(text, 14, 2);
    parts.tm_sec = digits_at(text, 17, 2);
    const std::int64_t microseconds = std::int64_t{timegm(&parts)} * microseconds_per_second + digits_at(text, 20, 6);
    // A 30th of February has become a day of March.
    if (utc_time_text(microseconds) != text) return std::nullopt;
    return microseconds;
}

}  // namespace rowlock
