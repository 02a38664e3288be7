// Values that the server makes up by a column's default: numbers of a sequence, times, uuids, transaction ids. They
// differ from one serial order to the next, so two end states are compared without them.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "postgres/session.hpp"
#include "race/catalog.hpp"

namespace rowlock::race {

/// Columns by their place in a row's text.
struct TableShape {
    /// A foreign key to a row that is told apart by a value that was made up.
    struct Link {
        std::vector<std::size_t> columns;
        std::string table;
        std::vector<std::size_t> target_columns;
    };
    std::vector<bool> invented;  ///< Made up, or copied from such a value by a foreign key.
    std::vector<Link> links;
    /// Column by column, what was there before the first step: the same in every execution, so no invention.
    std::vector<std::set<std::string, std::less<>>> known{};
    std::vector<std::string> defaulted{};  ///< Names of the columns whose default makes values up.
    std::vector<std::string> code{};  ///< What makes them up: defaults, and the sequences that belong to the columns.
};

/// By the table's name, quoted and with its schema. Only with a column that is made up somewhere, else empty.
using TableShapes = std::map<std::string, TableShape, std::less<>>;

[[nodiscard]] TableShapes read_table_shapes(Session& session);

/// Notes what the setup has left.
void note_known_values(TableShapes& shapes, std::string_view state);

/// What is left of the catalog's code when the defaults that make values up are taken out.
[[nodiscard]] Catalog without_inventing_code(Catalog catalog, const TableShapes& shapes);

/// An end state as Arena tells it, without what was made up: rows are named by their other values and by the rows that
/// they refer to and that refer to them. Two states that differ only in made-up values come out the same. The converse
/// holds but for states that colour refinement can't tell apart, and such a difference is not reported.
/// Source: Weisfeiler and Lehman, "The reduction of a graph to canonical form", 1968
[[nodiscard]] std::string without_invented_values(std::string_view state, const TableShapes& shapes);

}  // namespace rowlock::race
