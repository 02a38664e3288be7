// Who writes a column: its default, or the text of a statement.
#pragma once

#include <string>
#include <string_view>

#include "race/invented_values.hpp"

namespace rowlock::race {

/// The first column whose default makes values up, and into which a text writes a value of its own; empty where none
/// does.
[[nodiscard]] std::string column_written_by(std::string_view sql, const TableShapes& shapes);

}  // namespace rowlock::race
