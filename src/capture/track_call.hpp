// What `track` sends, decided without a server.
#pragma once

#include <string>
#include <vector>

#include "rowlock/change_capture.hpp"

namespace rowlock {

/// Throws InvalidInput for what can't be the name of a column.
void require_column_names(const TrackedTable& table);

/// As a parameter.
[[nodiscard]] Parameter names_array(const std::vector<std::string>& names);

}  // namespace rowlock
