// One line of `append --jsonl` as an entry; no I/O.
#pragma once

#include <optional>
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

struct JsonlEntry : TenantEntry {
    std::optional<std::string> subject;  ///< Under whose key the data is to be encrypted before it is appended.
};

/// Reads `{"tenant":…,"actor":…,"action":…,"object":…,"data":…,"entry_id":…,"subject":…}`. Only `tenant` must be there;
/// any other member is refused, so that a misspelt one is not lost. `data` is any JSON value, kept byte for byte; null
/// in a place means the same as its absence. Without `entry_id` one is made. A `subject` needs `data`.
[[nodiscard]] std::variant<JsonlEntry, BadLine> parse_line(std::string_view line);

}  // namespace rowlock::cli
