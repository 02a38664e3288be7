#include "lifecycle/statements.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "postgres/advisory_namespace.hpp"
#include "postgres/identifier.hpp"

namespace rowlock {

namespace {

/// The placeholders of the patterns are fmt's; names come quoted.

/// Lock: the parent's row, in the mode that `{lock}` says. Its answer is what the row says once the lock is had: the
/// server looks again at a row that changed while it waited.
constexpr std::string_view lock_parent_pattern =
    "SELECT {status} IS NOT DISTINCT FROM ${next} AS retired FROM {parent} WHERE {is_parent} {lock}";

constexpr std::string_view lock_two_parents_pattern =
    "SELECT {is_second} AS is_second, {status} IS NOT DISTINCT FROM ${next} AS retired"
    "  FROM {parent} WHERE ({is_first}) OR ({is_second}) ORDER BY {key} FOR SHARE";

constexpr std::string_view find_parent_pattern = "SELECT FROM {parent} WHERE {is_parent}";

/// The target set is locked and looked at again before anything is written, so a child that changed its status or its
/// parent meanwhile is neither missed, nor counted with the status it had, nor taken along.
constexpr std::string_view retire_children_pattern = R"sql(WITH target AS MATERIALIZED (
    SELECT {identity}, {status} AS earlier
      FROM {child}
     WHERE {is_under_parent} AND {status} = ANY (${live})
     ORDER BY {key}
       FOR UPDATE)
UPDATE {child} AS child
   SET {status} = ${retired}
  FROM target
 WHERE {is_target}
RETURNING {child_key}, target.earlier)sql";

constexpr std::string_view set_parent_status_pattern = "UPDATE {parent} SET {status} = ${next} WHERE {is_parent}";

constexpr std::string_view confirm_child_pattern =
    "UPDATE {child} SET {status} = ${next} WHERE {is_child} AND {is_under_parent}";

constexpr std::string_view move_child_pattern = "UPDATE {child} SET {set_parent} WHERE {is_child} AND {is_under_from}";

constexpr std::array<std::string_view, parent_lock_count> lock_clauses{"FOR SHARE", "FOR NO KEY UPDATE", "FOR UPDATE"};
constexpr std::array<std::string_view, parent_lock_count> lock_names{
    "lifecycle.hold_open", "lifecycle.hold_open_to_write", "lifecycle.lock_parent"};

/// Locks: one transaction-scoped advisory lock, until the transaction ends.
constexpr Statement join_gate_shared{"lifecycle.gate", "SELECT pg_advisory_xact_lock_shared($1, hashtext($2))", true};
constexpr Statement join_gate{"lifecycle.gate", "SELECT pg_advisory_xact_lock($1, hashtext($2))", true};
constexpr Statement try_gate_shared{"lifecycle.gate", "SELECT pg_try_advisory_xact_lock_shared($1, hashtext($2))"};
constexpr Statement try_gate{"lifecycle.gate", "SELECT pg_try_advisory_xact_lock($1, hashtext($2))"};
constexpr Statement join_gate_of_two{
    "lifecycle.gate",
    "SELECT pg_advisory_xact_lock_shared($1, gate.key)"
    "  FROM (SELECT DISTINCT hashtext(parent) AS key FROM unnest($2::text[]) AS parent ORDER BY key) AS gate",
    true};

std::size_t index_of(LockWait wait) {
    if (wait.waits()) return 0;
    return wait.is_no_wait() ? 1 : 2;
}

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
    return fmt::format("{}", fmt::join(parts, separator));
}

/// `"tenant" = $4 AND "id" = $5`, counted from `first`.
std::string equal_to(const std::vector<std::string>& columns, std::size_t first, std::string_view separator = " AND ") {
    std::vector<std::string> conditions;
    for (std::size_t i = 0; i < columns.size(); ++i) {
        conditions.push_back(fmt::format("{} = ${}", columns[i], first + i));
    }
    return joined(conditions, separator);
}

void append(std::vector<Parameter>& parameters, const RowIdentity& identity) {
    parameters.insert(parameters.end(), identity.begin(), identity.end());
}

}  // namespace

std::vector<std::string> quoted_columns(const std::string& tenant, const std::vector<std::string>& columns) {
    std::vector<std::string> names = quote_identifiers(columns);
    if (!tenant.empty()) names.insert(names.begin(), quote_identifier(tenant));
    return names;
}

LifecycleStatements::LifecycleStatements(const LifecycleDescription& description)
    : description_(description),
      parent_table_(quote_qualified_name(description.parent.schema, description.parent.table)),
      child_table_(quote_qualified_name(description.child.schema, description.child.table)),
      parent_identity_(quoted_columns(description.tenant_column, description.parent.key)),
      child_identity_(quoted_columns(description.tenant_column, description.child.key)),
      child_parent_(quoted_columns(description.tenant_column, description.child.parent)) {
    if (description_.retired_child.empty()) description_.retired_child = description_.retired;
    std::vector<std::optional<std::string>> live(description.live_children.begin(), description.live_children.end());
    live_children_ = *Parameter::array(live).text();
    build_parent_statements();
    build_child_statements();
}

void LifecycleStatements::build_parent_statements() {
    const std::size_t next = parent_identity_.size() + 1;
    const std::string status = quote_identifier(description_.parent.status);
    const std::string is_parent = equal_to(parent_identity_, 1);
    constexpr std::array<std::string_view, wait_count> wait_clauses{"", " NOWAIT", " SKIP LOCKED"};
    for (std::size_t lock = 0; lock < parent_lock_count; ++lock) {
        for (std::size_t wait = 0; wait < wait_count; ++wait) {
            const std::string clause = fmt::format("{}{}", lock_clauses.at(lock), wait_clauses.at(wait));
            lock_parent_.at(lock).at(wait) = fmt::format(lock_parent_pattern, fmt::arg("status", status),
                                                         fmt::arg("next", next), fmt::arg("parent", parent_table_),
                                                         fmt::arg("is_parent", is_parent), fmt::arg("lock", clause));
        }
    }
    lock_two_parents_ =
        fmt::format(lock_two_parents_pattern, fmt::arg("status", status), fmt::arg("parent", parent_table_),
                    fmt::arg("is_first", is_parent), fmt::arg("is_second", equal_to(parent_identity_, next)),
                    fmt::arg("next", 2 * parent_identity_.size() + 1), fmt::arg("key", joined(parent_identity_, ", ")));
    find_parent_ =
        fmt::format(find_parent_pattern, fmt::arg("parent", parent_table_), fmt::arg("is_parent", is_parent));
    set_parent_status_ =
        fmt::format(set_parent_status_pattern, fmt::arg("parent", parent_table_), fmt::arg("status", status),
                    fmt::arg("next", next), fmt::arg("is_parent", is_parent));
}

void LifecycleStatements::build_child_statements() {
    const std::string status = quote_identifier(description_.child.status);
    // The target's columns are all that joins the child to it. Were the tenant or the parent compared with its constant
    // once more, then a planner that does not know the value yet (statistics from before it) takes it for one row and
    // reads all children of the parent again for each of them.
    std::vector<std::string> aliases;
    std::vector<std::string> is_target;
    for (std::size_t i = 0; i < child_identity_.size(); ++i) {
        aliases.push_back(fmt::format("{} AS identity_{}", child_identity_[i], i + 1));
        is_target.push_back(fmt::format("child.{} = target.identity_{}", child_identity_[i], i + 1));
    }
    const std::vector<std::string> key = quoted_columns({}, description_.child.key);
    retire_children_ =
        fmt::format(retire_children_pattern, fmt::arg("identity", joined(aliases, ", ")), fmt::arg("status", status),
                    fmt::arg("child", child_table_), fmt::arg("is_under_parent", equal_to(child_parent_, 1)),
                    fmt::arg("live", child_parent_.size() + 1), fmt::arg("retired", child_parent_.size() + 2),
                    fmt::arg("key", joined(key, ", ")), fmt::arg("is_target", joined(is_target, " AND ")),
                    fmt::arg("child_key", "child." + joined(key, ", child.")));
    const std::size_t behind_child = child_identity_.size() + 1;
    const std::string is_child = equal_to(child_identity_, 1);
    confirm_child_ = fmt::format(confirm_child_pattern, fmt::arg("child", child_table_), fmt::arg("status", status),
                                 fmt::arg("next", behind_child + child_parent_.size()), fmt::arg("is_child", is_child),
                                 fmt::arg("is_under_parent", equal_to(child_parent_, behind_child)));
    move_child_ =
        fmt::format(move_child_pattern, fmt::arg("child", child_table_), fmt::arg("is_child", is_child),
                    fmt::arg("is_under_from", equal_to(child_parent_, behind_child)),
                    fmt::arg("set_parent", equal_to(child_parent_, behind_child + child_parent_.size(), ", ")));
}

std::string LifecycleStatements::gate_text(const RowKey& parent) const {
    // Joined so that no two keys of a table give the same text; that two hashes meet only costs a wait.
    std::string text = parent_table_;
    for (const std::string& value : parent.values()) text += fmt::format(" {}:{}", value.size(), value);
    return text;
}

Query LifecycleStatements::gate(ParentLock lock, LockWait wait, const RowKey& parent) const {
    const bool shared = lock == ParentLock::share;
    const Statement& statement =
        wait.waits() ? (shared ? join_gate_shared : join_gate) : (shared ? try_gate_shared : try_gate);
    return {statement, {lifecycle_gate_namespace.id, gate_text(parent)}};
}

Query LifecycleStatements::gate_of_two(const RowKey& one, const RowKey& other) const {
    const std::vector<std::optional<std::string>> texts{gate_text(one), gate_text(other)};
    return {join_gate_of_two, {lifecycle_gate_namespace.id, Parameter::array(texts)}};
}

Query LifecycleStatements::lock_parent(ParentLock lock, LockWait wait, const RowIdentity& parent) const {
    const auto at = static_cast<std::size_t>(lock);
    RowIdentity parameters = parent;
    parameters.emplace_back(description_.retired);
    return {{lock_names.at(at), lock_parent_.at(at).at(index_of(wait)), true}, std::move(parameters)};
}

Query LifecycleStatements::lock_two_parents(const RowIdentity& from, const RowIdentity& to) const {
    RowIdentity parameters = from;
    append(parameters, to);
    parameters.emplace_back(description_.retired);
    return {{"lifecycle.hold_two_open", lock_two_parents_, true}, std::move(parameters)};
}

Query LifecycleStatements::find_parent(const RowIdentity& parent) const {
    return {{"lifecycle.find_parent", find_parent_}, parent};
}

Query LifecycleStatements::retire_children(const RowIdentity& parent) const {
    RowIdentity parameters = parent;
    parameters.emplace_back(live_children_);
    parameters.emplace_back(description_.retired_child);
    // No deadline for the whole: it may have much to write, and a writer that holds its parent holds none of these.
    return {{"lifecycle.retire_children", retire_children_}, std::move(parameters)};
}

Query LifecycleStatements::set_parent_status(const RowIdentity& parent, const std::string& status) const {
    RowIdentity parameters = parent;
    parameters.emplace_back(status);
    return {{"lifecycle.set_parent_status", set_parent_status_}, std::move(parameters)};
}

Query LifecycleStatements::confirm_child(const RowIdentity& child, const RowIdentity& parent) const {
    RowIdentity parameters = child;
    append(parameters, parent);
    parameters.emplace_back(description_.confirmed);
    return {{"lifecycle.confirm", confirm_child_, true}, std::move(parameters)};
}

Query LifecycleStatements::move_child(const RowIdentity& child, const RowIdentity& from, const RowIdentity& to) const {
    RowIdentity parameters = child;
    append(parameters, from);
    append(parameters, to);
    return {{"lifecycle.move", move_child_, true}, std::move(parameters)};
}

std::string LifecycleStatements::add_child_sql(const std::vector<ColumnValue>& columns) const {
    std::vector<std::string> names = child_parent_;
    for (const ColumnValue& column : columns) names.push_back(quote_identifier(column.column));
    std::vector<std::string> places;
    for (std::size_t i = 1; i <= names.size(); ++i) places.push_back(fmt::format("${}", i));
    return fmt::format("INSERT INTO {} ({}) VALUES ({}) RETURNING {}", child_table_, joined(names, ", "),
                       joined(places, ", "), joined(quoted_columns({}, description_.child.key), ", "));
}

}  // namespace rowlock
