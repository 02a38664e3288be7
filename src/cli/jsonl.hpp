// One line of `append --jsonl` as an entry; no I/O.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "rowlock/audit_log.hpp"

namespace rowlock::cli {

/// Why a line can't be used. `column` counts bytes from 1.
struct BadLine {
    std::size_t column;
    std::string reason;
};

/// Reads `{"tenant":…,"actor":…,"action":…,"object":…,"data":…,"entry_id":…}`. Only `tenant` must be there; any other
/// member is refused, so that a misspelt one is not lost. `data` is any JSON value, kept byte for byte; null in a place
/// means the same as its absence. Without `entry_id` one is made.
[[nodiscard]] std::variant<TenantEntry, BadLine> parse_line(std::string_view line);

}  // namespace rowlock::cli
