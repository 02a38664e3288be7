// Which single row a statement is about, where its text says so.
#pragma once

#include <optional>
#include <string_view>

#include "race/catalog.hpp"

namespace rowlock::race {

/// One row of a table. As resources the two are apart: its row locks, reads and writes belong to the row.
struct RowAccess {
    ResourceId table;
    ResourceId row;
};

/// For a statement that names one table, once, and runs no code: the row that it names by the equality of a key which
/// is the table's only unique or exclusion constraint (`… WHERE id = 7 AND …`, `INSERT INTO t VALUES (7, …)`). Nothing
/// where it may touch another row, or where two spellings of its key could mean one row.
[[nodiscard]] std::optional<RowAccess> row_access(std::string_view statement, const Reach& reach,
                                                  const Catalog& catalog);

}  // namespace rowlock::race
