// The statements that look at a table of the user's own, and what their rows mean. Nothing here talks to a server.
#pragma once

#include <cstdint>
#include <string>

#include "rowlock/gapless_sequence.hpp"

namespace rowlock {

/// `LOCK TABLE … IN SHARE ROW EXCLUSIVE MODE`. Throws InvalidInput for what can't be a name.
[[nodiscard]] std::string lock_table_sql(const NumberedTable& table);

/// What a row of the statement below tells of.
enum class NumberRow : std::int64_t {
    total = 0,      ///< One row: first, last, rows.
    hole = 1,       ///< first and last missing number.
    duplicate = 2,  ///< A number that stands there more than once.
};

/// One statement, so one snapshot: rows of (kind, first, last, rows), in order. `$1` is the tenant, `$2` the value of
/// the series if the table names one. Rows without a number do not count. Takes no lock.
[[nodiscard]] std::string check_numbers_sql(const NumberedTable& table);

/// Adds one such row to the report, up to `findings_max` of a kind.
void add_to_report(NumberReport& report, NumberRow kind, const NumberReport::Hole& span, std::int64_t rows);

}  // namespace rowlock
