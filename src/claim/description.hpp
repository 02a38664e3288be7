// Is the description of the user's tables true? Decided from rows of the catalog, which come in as values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rowlock/key_claim.hpp"

namespace rowlock {

/// Rows of the catalog that say what there is of the two tables.
extern const Statement columns_statement;         ///< $1 schema, $2 names of tables.
extern const Statement unique_indexes_statement;  ///< The same.

struct CatalogColumn {
    std::string table;
    std::string column;
    std::string type;  ///< As format_type writes it, with a length if there is one.
    bool not_null = false;
};

/// Columns that are unique together: at once, for all rows, by the columns alone.
struct CatalogUnique {
    std::string table;
    std::vector<std::string> columns;  ///< In the order of the alphabet.
};

struct ClaimCatalog {
    std::vector<CatalogColumn> columns;
    std::vector<CatalogUnique> uniques;
};

/// What is wrong with the description, and what to do; empty if nothing is.
[[nodiscard]] std::string objection_to(const ClaimedTable& table, const ClaimCatalog& catalog);

/// Fresh keys go into a bytea as "\x…", into anything else as plain digits.
[[nodiscard]] bool key_is_bytea(const ClaimedTable& table, const ClaimCatalog& catalog);

}  // namespace rowlock
