#include "claim/description.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "claim/claim_sql.hpp"

namespace rowlock {

/// Lock: none, nor the next.
const Statement columns_statement{"claim.columns",
                                  "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull"
                                  "  FROM pg_catalog.pg_class AS c"
                                  "  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
                                  "  JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid"
                                  " WHERE n.nspname = $1 AND c.relname = ANY ($2::text[]) AND c.relkind IN ('r', 'p')"
                                  "   AND a.attnum > 0 AND NOT a.attisdropped"};

/// A partial index, one on expressions and one that is checked late make nobody the first.
const Statement unique_indexes_statement{
    "claim.unique_indexes",
    "SELECT c.relname, string_agg(a.attname, E'\\x1f' ORDER BY a.attname COLLATE \"C\")"
    "  FROM pg_catalog.pg_index AS i"
    "  JOIN pg_catalog.pg_class AS c ON c.oid = i.indrelid"
    "  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
    "  JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)"
    " WHERE n.nspname = $1 AND c.relname = ANY ($2::text[]) AND c.relkind IN ('r', 'p') AND i.indisunique"
    "   AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL"
    "   AND i.indnkeyatts = i.indnatts"
    " GROUP BY i.indexrelid, c.relname"};

namespace {

struct OwnColumn {
    std::string_view name;
    std::string_view type;
    bool not_null;
};
constexpr std::array<OwnColumn, 5> own_columns{{{"owner", "text", true},
                                                {"epoch", "bigint", true},
                                                {"claimed_at", "timestamp with time zone", true},
                                                {"leased_until", "timestamp with time zone", true},
                                                {"completed_at", "timestamp with time zone", false}}};

const CatalogColumn* find(const ClaimCatalog& catalog, std::string_view table, std::string_view column) {
    const auto found = std::ranges::find_if(
        catalog.columns, [&](const CatalogColumn& one) { return one.table == table && one.column == column; });
    return found == catalog.columns.end() ? nullptr : &*found;
}

bool has_table(const ClaimCatalog& catalog, std::string_view table) {
    return std::ranges::any_of(catalog.columns, [&](const CatalogColumn& one) { return one.table == table; });
}

bool are_unique(const ClaimCatalog& catalog, std::string_view table, std::vector<std::string> columns) {
    std::ranges::sort(columns);
    return std::ranges::any_of(catalog.uniques,
                               [&](const CatalogUnique& one) { return one.table == table && one.columns == columns; });
}

/// Wide enough for 32 digits: uuid, text, bytea, or varchar from 32 on.
bool holds_a_key(const std::string& type) {
    if (type == "uuid" || type == "text" || type == "bytea" || type == "character varying") return true;
    constexpr std::string_view limited = "character varying(";
    return type.starts_with(limited) && std::stol(type.substr(limited.size())) >= 32;
}

std::string named(const std::vector<std::string>& columns) {
    return fmt::format("({})", fmt::join(columns, ", "));
}

std::string objection_to_table(const ClaimedTable& table, const ClaimCatalog& catalog) {
    if (!has_table(catalog, table.table)) return "there is no such table";
    for (const std::string& column : row_columns(table)) {
        if (find(catalog, table.table, column) == nullptr) return fmt::format("it has no column {}", column);
    }
    if (!are_unique(catalog, table.table, row_columns(table))) {
        return fmt::format("{} is not unique: name the columns of its primary key, or of a unique constraint",
                           named(row_columns(table)));
    }
    const CatalogColumn* const key = find(catalog, table.table, table.key);
    if (key == nullptr)
        return fmt::format("it has no column {}: ADD COLUMN {} uuid NOT NULL DEFAULT gen_random_uuid()", table.key,
                           table.key);
    if (!holds_a_key(key->type)) {
        return fmt::format("the key {} is of type {}, where keys could come twice: make it uuid, text or bytea",
                           table.key, key->type);
    }
    if (!key->not_null) return fmt::format("the key {} may be NULL, which equals nothing: SET NOT NULL", table.key);
    return {};
}

std::string objection_to_used_keys(const ClaimedTable& table, const ClaimCatalog& catalog) {
    if (!has_table(catalog, table.used_keys)) return "there is no such table";
    std::vector<std::string> columns = row_columns(table);
    columns.push_back(table.key);
    for (const std::string& column : columns) {
        const CatalogColumn* const used = find(catalog, table.used_keys, column);
        if (used == nullptr) return fmt::format("it has no column {}", column);
        const std::string& type = find(catalog, table.table, column)->type;
        if (used->type != type) {
            return fmt::format("{} is of type {}, but {} in {}", column, used->type, type, table.table);
        }
        if (!used->not_null) return fmt::format("{} may be NULL, which is never a duplicate: SET NOT NULL", column);
    }
    if (!are_unique(catalog, table.used_keys, columns)) {
        return fmt::format("{} is not unique, so two could claim: make it the primary key", named(columns));
    }
    for (const OwnColumn& own : own_columns) {
        const CatalogColumn* const column = find(catalog, table.used_keys, own.name);
        if (column != nullptr && column->type == own.type && column->not_null >= own.not_null) continue;
        return fmt::format("it has no column {} {}{}", own.name, own.type, own.not_null ? " NOT NULL" : "");
    }
    return {};
}

}  // namespace

std::string objection_to(const ClaimedTable& table, const ClaimCatalog& catalog) {
    for (const OwnColumn& own : own_columns) {
        const std::vector<std::string> columns = row_columns(table);
        if (table.key == own.name || std::ranges::find(columns, own.name) != columns.end()) {
            return fmt::format("column {} of {} can't be in the id or the key: {} has one of that name of its own",
                               own.name, table.table, table.used_keys);
        }
    }
    std::string objection = objection_to_table(table, catalog);
    if (!objection.empty()) return fmt::format("table {}.{}: {}", table.schema, table.table, objection);
    objection = objection_to_used_keys(table, catalog);
    if (objection.empty()) return {};
    return fmt::format("table {}.{} of used keys: {}; KeyClaim::used_keys_sql(), or rowlock claim sql, makes one",
                       table.schema, table.used_keys, objection);
}

bool key_is_bytea(const ClaimedTable& table, const ClaimCatalog& catalog) {
    const CatalogColumn* const key = find(catalog, table.table, table.key);
    return key != nullptr && key->type == "bytea";
}

}  // namespace rowlock
