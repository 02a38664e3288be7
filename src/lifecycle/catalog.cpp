#include "lifecycle/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rowlock {

namespace {

using Columns = std::vector<std::string>;

constexpr Statement read_columns{
    "lifecycle.read_columns",
    "SELECT attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid"
    " WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND relname = $2"
    "   AND relkind IN ('r', 'p') AND attnum > 0 AND NOT attisdropped"};

/// A column of an expression has no name.
constexpr Statement read_indexes{
    "lifecycle.read_indexes",
    "SELECT indexrelid::bigint, indisprimary, indisunique, coalesce(attname, '')"
    "  FROM pg_index JOIN pg_class ON pg_class.oid = indrelid"
    " CROSS JOIN LATERAL unnest(indkey[0:indnkeyatts - 1]) WITH ORDINALITY AS part (number, place)"
    "  LEFT JOIN pg_attribute ON attrelid = indrelid AND attnum = part.number"
    " WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND relname = $2"
    "   AND indpred IS NULL AND indisvalid"
    " ORDER BY indexrelid, place"};

constexpr Statement read_foreign_keys{
    "lifecycle.read_foreign_keys",
    "SELECT pg_constraint.oid::bigint, child_column.attname, parent_column.attname"
    "  FROM pg_constraint"
    "  JOIN pg_class AS child ON child.oid = conrelid"
    "   AND child.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1) AND child.relname = $2"
    "  JOIN pg_class AS parent ON parent.oid = confrelid"
    "   AND parent.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $3) AND parent.relname = $4"
    " CROSS JOIN LATERAL unnest(conkey, confkey) WITH ORDINALITY AS pair (child_number, parent_number, place)"
    "  JOIN pg_attribute AS child_column ON child_column.attrelid = child.oid AND child_column.attnum = child_number"
    "  JOIN pg_attribute AS parent_column ON parent_column.attrelid = parent.oid"
    "   AND parent_column.attnum = parent_number"
    " WHERE contype = 'f'"
    " ORDER BY pg_constraint.oid, place"};

std::string shown(const Columns& columns) {
    return fmt::format("({})", fmt::join(columns, ", "));
}

bool is_among(const std::string& column, const Columns& columns) {
    return std::ranges::find(columns, column) != columns.end();
}

Columns without(Columns columns, const std::string& column) {
    std::erase(columns, column);
    return columns;
}

/// Unique over these columns, whether or not the tenant's stands beside them.
bool is_unique(const TableFacts& table, const Columns& key, const std::string& tenant) {
    return std::ranges::any_of(table.unique_keys, [&](const Columns& unique) {
        return std::ranges::all_of(
            unique, [&](const std::string& column) { return column == tenant || is_among(column, key); });
    });
}

/// An index that begins with these columns, in any order, the tenant's among them or not.
bool has_index_on(const TableFacts& table, const Columns& columns, const std::string& tenant) {
    return std::ranges::any_of(table.indexes, [&](const Columns& index) {
        std::size_t found = 0;
        for (const std::string& column : index) {
            if (is_among(column, columns)) {
                ++found;
            } else if (column != tenant) {
                break;
            }
        }
        return found == columns.size();
    });
}

/// Leads from the child's columns to the parent's key, whether or not the tenant's stands beside them.
bool leads_to_key(const std::vector<std::pair<std::string, std::string>>& foreign_key,
                  const LifecycleDescription& description) {
    const std::string& tenant = description.tenant_column;
    std::size_t found = 0;
    for (const auto& pair : foreign_key) {
        if (!tenant.empty() && pair == std::pair(tenant, tenant)) continue;
        for (std::size_t i = 0; i < description.parent.key.size(); ++i) {
            if (pair == std::pair(description.child.parent[i], description.parent.key[i])) ++found;
        }
    }
    return found == description.parent.key.size();
}

std::optional<std::string> missing_column(const TableFacts& table, const std::string& name, const Columns& columns) {
    for (const std::string& column : columns) {
        if (!table.columns.contains(column)) return fmt::format("{} has no column {}", name, column);
    }
    return std::nullopt;
}

std::optional<std::string> problem_of_words(const LifecycleDescription& description) {
    if (description.retired.empty()) return "the status of a retired parent is not named (retired)";
    if (description.live_children.empty()) return "no status of live children is named (live_children)";
    const std::string& retired = description.retired_child.empty() ? description.retired : description.retired_child;
    if (is_among(retired, description.live_children)) {
        return fmt::format("\"{}\" is what a child becomes when its parent is retired, so it can't be a live status",
                           retired);
    }
    if (description.open == description.retired) {
        return fmt::format("\"{}\" can't be the status of an open parent and of a retired one", description.retired);
    }
    return std::nullopt;
}

void add_index(TableFacts& table, const Row& row, std::int64_t& last) {
    if (row.integer(0) != last) {
        last = row.integer(0);
        table.indexes.emplace_back();
        if (row.boolean(2)) table.unique_keys.emplace_back();
    }
    const std::string column(row.text(3));
    table.indexes.back().push_back(column);
    if (row.boolean(2)) table.unique_keys.back().push_back(column);
    if (row.boolean(1)) table.primary_key.push_back(column);
}

TableFacts facts_of(const Rows& columns, const Rows& indexes) {
    TableFacts table;
    for (const Row row : columns) table.columns.emplace(row.text(0));
    std::int64_t last = 0;
    for (const Row row : indexes) add_index(table, row, last);
    return table;
}

}  // namespace

LifecycleDescription completed(LifecycleDescription description, const LifecycleFacts& facts) {
    const std::string& tenant = description.tenant_column;
    if (description.parent.key.empty()) description.parent.key = without(facts.parent.primary_key, tenant);
    if (description.child.key.empty()) description.child.key = without(facts.child.primary_key, tenant);
    if (!description.child.parent.empty() || facts.foreign_keys.size() != 1) return description;
    for (const std::string& column : description.parent.key) {
        for (const auto& [child, parent] : facts.foreign_keys.front()) {
            if (parent == column) description.child.parent.push_back(child);
        }
    }
    return description;
}

std::optional<std::string> first_problem(const LifecycleDescription& description, const LifecycleFacts& facts) {
    const auto& [parent, child] = std::tie(description.parent, description.child);
    const std::string& tenant = description.tenant_column;
    const std::string parent_name = fmt::format("table {}.{}", parent.schema, parent.table);
    const std::string child_name = fmt::format("table {}.{}", child.schema, child.table);
    if (auto problem = problem_of_words(description)) return problem;
    for (const auto& [table, name] : {std::tie(facts.parent, parent_name), std::tie(facts.child, child_name)}) {
        if (table.columns.empty()) return fmt::format("there is no {}, or this role may not see it", name);
        if (tenant.empty()) continue;
        if (auto problem = missing_column(table, name, {tenant})) return problem;
    }
    if (auto problem = missing_column(facts.parent, parent_name, {parent.status})) return problem;
    if (auto problem = missing_column(facts.parent, parent_name, parent.key)) return problem;
    if (auto problem = missing_column(facts.child, child_name, {child.status})) return problem;
    if (auto problem = missing_column(facts.child, child_name, child.key)) return problem;
    if (auto problem = missing_column(facts.child, child_name, child.parent)) return problem;
    if (parent.key.empty() || !is_unique(facts.parent, parent.key, tenant)) {
        return fmt::format("{} has no unique index on {}", parent_name,
                           parent.key.empty() ? "a key: name its columns" : shown(parent.key));
    }
    if (child.key.empty() || !is_unique(facts.child, child.key, tenant)) {
        return fmt::format("{} has no unique index on {}", child_name,
                           child.key.empty() ? "a key: name its columns" : shown(child.key));
    }
    const bool can_lead = child.parent.size() == parent.key.size();
    if (!can_lead ||
        std::ranges::none_of(facts.foreign_keys, [&](const auto& key) { return leads_to_key(key, description); })) {
        return fmt::format("{} has no foreign key from {} to {} {}: without one a child can have no parent at all",
                           child_name, shown(child.parent), parent_name, shown(parent.key));
    }
    if (!has_index_on(facts.child, child.parent, tenant)) {
        return fmt::format("{} has no index on {}: retiring a parent would read the whole table", child_name,
                           shown(child.parent));
    }
    return std::nullopt;
}

LifecycleFacts read_facts(Transaction& transaction, const LifecycleDescription& description) {
    const auto& [parent, child] = std::tie(description.parent, description.child);
    const std::vector<Rows> answers =
        transaction.execute_all({{read_columns, {parent.schema, parent.table}},
                                 {read_indexes, {parent.schema, parent.table}},
                                 {read_columns, {child.schema, child.table}},
                                 {read_indexes, {child.schema, child.table}},
                                 {read_foreign_keys, {child.schema, child.table, parent.schema, parent.table}}});
    LifecycleFacts facts{facts_of(answers[0], answers[1]), facts_of(answers[2], answers[3]), {}};
    std::int64_t last = 0;
    for (const Row row : answers[4]) {
        if (row.integer(0) != last) facts.foreign_keys.emplace_back();
        last = row.integer(0);
        facts.foreign_keys.back().emplace_back(row.text(1), row.text(2));
    }
    return facts;
}

}  // namespace rowlock
