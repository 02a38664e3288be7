#include <fmt/format.h>

#include "base/hash.hpp"
#include "lifecycle/statements.hpp"
#include "postgres/identifier.hpp"
#include "rowlock/lifecycle_rule.hpp"

namespace rowlock {

namespace {

/// What the patterns below are filled with: names come quoted, words as literals.
struct RuleParts {
    std::string parent;
    std::string child;
    std::string child_schema;
    std::string suffix;  ///< Of the names of what is made, so that two rules in a schema do not meet.
    std::string parent_status;
    std::string child_status;
    std::string retired;
    std::string live;                ///< An array.
    std::string parent_key;          ///< "tenant", "id"
    std::string child_parent;        ///< "tenant", "document_id"
    std::string is_parent_of_new;    ///< parent."id" = NEW."document_id"
    std::string is_parent_of_child;  ///< parent."id" = child."document_id"
    std::string is_new_parent;       ///< parent."id" = NEW."id"
    std::string has_no_parent;       ///< NEW."document_id" IS NULL
    std::string parent_changes;      ///< NEW."document_id" IS DISTINCT FROM OLD."document_id"
    std::string shown_parent;        ///< What DETAIL says.
    std::string shown_new_parent;
};

constexpr std::string_view trigger_pattern = R"sql(
-- Refuses a child that comes to life under a parent that is not open. SECURITY DEFINER, since FOR SHARE asks for UPDATE
-- on the parent; and under row-level security with a policy for SELECT alone it gives no row, which must not let the child
-- in.
CREATE OR REPLACE FUNCTION {child_schema}."rowlock_open_{suffix}"() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS {quote}
DECLARE
    rowlock_is_retired boolean;
BEGIN
    IF {has_no_parent} THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'INSERT' THEN
        SELECT parent.{parent_status} IS NOT DISTINCT FROM {retired} INTO rowlock_is_retired
          FROM {parent} AS parent WHERE {is_parent_of_new} FOR SHARE;
    ELSE
        -- The child is locked by now. To wait for its parent would be the wrong order: it deadlocks with a retirement.
        BEGIN
            SELECT parent.{parent_status} IS NOT DISTINCT FROM {retired} INTO rowlock_is_retired
              FROM {parent} AS parent WHERE {is_parent_of_new} FOR SHARE NOWAIT;
        EXCEPTION WHEN lock_not_available THEN
            RAISE EXCEPTION 'the parent is locked by another transaction: try again'
                USING ERRCODE = 'lock_not_available', DETAIL = {shown_parent};
        END;
    END IF;
    IF rowlock_is_retired IS NULL THEN
        RAISE EXCEPTION 'there is no such parent, or it can not be seen' USING ERRCODE = 'RL102', DETAIL = {shown_parent};
    END IF;
    IF rowlock_is_retired THEN
        RAISE EXCEPTION 'the parent is retired' USING ERRCODE = 'RL101', DETAIL = {shown_parent};
    END IF;
    RETURN NEW;
END
{quote};

-- Refuses, at the end of its transaction, a parent that was retired with a live child under it. By then the parent is
-- locked, so every child that came in before is committed and seen, and none comes in after.
CREATE OR REPLACE FUNCTION {child_schema}."rowlock_empty_{suffix}"() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS {quote}
BEGIN
    IF current_setting('transaction_isolation') = 'repeatable read' THEN
        RAISE EXCEPTION 'a parent is not retired at REPEATABLE READ: the snapshot is older than the lock'
            USING ERRCODE = 'RL103', DETAIL = {shown_new_parent}, HINT = 'Use READ COMMITTED.';
    END IF;
    IF EXISTS (SELECT FROM {parent} AS parent WHERE {is_new_parent} AND parent.{parent_status} = {retired})
       AND EXISTS (SELECT FROM {parent} AS parent JOIN {child} AS child ON {is_parent_of_child}
                    WHERE {is_new_parent} AND child.{child_status} = ANY ({live})) THEN
        RAISE EXCEPTION 'the retired parent has live children' USING ERRCODE = 'RL103', DETAIL = {shown_new_parent};
    END IF;
    RETURN NULL;
END
{quote};
REVOKE ALL ON FUNCTION {child_schema}."rowlock_open_{suffix}"(), {child_schema}."rowlock_empty_{suffix}"() FROM PUBLIC;

CREATE TRIGGER "rowlock_open_on_insert_{suffix}" BEFORE INSERT ON {child} FOR EACH ROW
    EXECUTE FUNCTION {child_schema}."rowlock_open_{suffix}"();
CREATE TRIGGER "rowlock_open_on_update_{suffix}" BEFORE UPDATE ON {child} FOR EACH ROW
    WHEN (NEW.{child_status} = ANY ({live})
          AND (NEW.{child_status} IS DISTINCT FROM OLD.{child_status} OR {parent_changes}))
    EXECUTE FUNCTION {child_schema}."rowlock_open_{suffix}"();
CREATE CONSTRAINT TRIGGER "rowlock_empty_{suffix}" AFTER UPDATE ON {parent} DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.{parent_status} = {retired} AND OLD.{parent_status} IS DISTINCT FROM NEW.{parent_status})
    EXECUTE FUNCTION {child_schema}."rowlock_empty_{suffix}"();

-- What is there already must keep the rule. The triggers hold back writers by now.
DO {quote}
BEGIN
    IF EXISTS (SELECT FROM {parent} AS parent JOIN {child} AS child ON {is_parent_of_child}
                WHERE parent.{parent_status} = {retired} AND child.{child_status} = ANY ({live})) THEN
        RAISE EXCEPTION 'there are live children under retired parents already: retire them first'
            USING ERRCODE = 'RL103';
    END IF;
END
{quote};
)sql";

constexpr std::string_view trigger_removal_pattern = R"sql(
DROP TRIGGER IF EXISTS "rowlock_open_on_insert_{suffix}" ON {child};
DROP TRIGGER IF EXISTS "rowlock_open_on_update_{suffix}" ON {child};
DROP TRIGGER IF EXISTS "rowlock_empty_{suffix}" ON {parent};
DROP FUNCTION IF EXISTS {child_schema}."rowlock_open_{suffix}"();
DROP FUNCTION IF EXISTS {child_schema}."rowlock_empty_{suffix}"();
)sql";

/// The flag and not the status word itself: a word that is NULL passes a foreign key, and every change of status would
/// write all children.
constexpr std::string_view declarative_pattern = R"sql(
ALTER TABLE {parent}
    ADD COLUMN IF NOT EXISTS "rowlock_retired" boolean NOT NULL
        GENERATED ALWAYS AS (coalesce({parent_status} = {retired}, false)) STORED,
    ADD CONSTRAINT "rowlock_parent_{suffix}" UNIQUE ({parent_key}, "rowlock_retired");
ALTER TABLE {child} ADD COLUMN "rowlock_parent_retired" boolean NOT NULL DEFAULT false;
UPDATE {child} AS child SET "rowlock_parent_retired" = true
  FROM {parent} AS parent WHERE {is_parent_of_child} AND parent."rowlock_retired";
ALTER TABLE {child}
    ADD CONSTRAINT "rowlock_live_{suffix}"
        CHECK (NOT ("rowlock_parent_retired" AND {child_status} = ANY ({live}))),
    ADD CONSTRAINT "rowlock_child_{suffix}" FOREIGN KEY ({child_parent}, "rowlock_parent_retired")
        REFERENCES {parent} ({parent_key}, "rowlock_retired") ON UPDATE CASCADE;
)sql";

/// The parent's column stays while another child's rule leans on it.
constexpr std::string_view declarative_removal_pattern = R"sql(
ALTER TABLE {child} DROP CONSTRAINT IF EXISTS "rowlock_child_{suffix}";
ALTER TABLE {child} DROP CONSTRAINT IF EXISTS "rowlock_live_{suffix}";
ALTER TABLE {child} DROP COLUMN IF EXISTS "rowlock_parent_retired";
ALTER TABLE {parent} DROP CONSTRAINT IF EXISTS "rowlock_parent_{suffix}";
DO {quote}
BEGIN
    ALTER TABLE {parent} DROP COLUMN IF EXISTS "rowlock_retired";
EXCEPTION WHEN dependent_objects_still_exist THEN
    NULL;
END
{quote};
)sql";

constexpr std::string_view status_pattern = R"sql(
SELECT EXISTS (SELECT FROM pg_trigger WHERE tgname = 'rowlock_open_on_insert_{suffix}'),
       EXISTS (SELECT FROM pg_constraint WHERE conname = 'rowlock_child_{suffix}'),
       (SELECT count(*) FROM {parent} AS parent WHERE parent.{parent_status} IS DISTINCT FROM {retired}),
       (SELECT count(*) FROM {parent} AS parent WHERE parent.{parent_status} = {retired}),
       (SELECT count(*) FROM {child} AS child WHERE child.{child_status} = ANY ({live})),
       (SELECT count(*) FROM {parent} AS parent JOIN {child} AS child ON {is_parent_of_child}
         WHERE parent.{parent_status} = {retired} AND child.{child_status} = ANY ({live}))
)sql";

using Columns = std::vector<std::string>;

/// `{0}` and `{1}` of the pattern are the columns of a pair.
std::string for_pairs(std::string_view pattern, const Columns& left, const Columns& right, std::string_view separator) {
    std::string text;
    for (std::size_t i = 0; i < left.size(); ++i) {
        if (i > 0) text += separator;
        text += fmt::format(fmt::runtime(pattern), left[i], right[i]);
    }
    return text;
}

RuleParts parts_of(const LifecycleDescription& description) {
    RuleParts parts;
    const Columns key = quoted_columns(description.tenant_column, description.parent.key);
    const Columns child_parent = quoted_columns(description.tenant_column, description.child.parent);
    parts.child_schema = quote_identifier(description.child.schema);
    parts.parent = quote_qualified_name(description.parent.schema, description.parent.table);
    parts.child = quote_qualified_name(description.child.schema, description.child.table);
    parts.suffix = fmt::format("{:016x}", fnv1a_64(parts.parent + " " + parts.child));
    parts.parent_status = quote_identifier(description.parent.status);
    parts.child_status = quote_identifier(description.child.status);
    parts.retired = quote_literal(description.retired);
    const std::vector<std::optional<std::string>> live(description.live_children.begin(),
                                                       description.live_children.end());
    parts.live = quote_literal(*Parameter::array(live).text());
    parts.parent_key = fmt::format("{}", fmt::join(key, ", "));
    parts.child_parent = fmt::format("{}", fmt::join(child_parent, ", "));
    parts.is_parent_of_new = for_pairs("parent.{0} = NEW.{1}", key, child_parent, " AND ");
    parts.is_parent_of_child = for_pairs("parent.{0} = child.{1}", key, child_parent, " AND ");
    parts.is_new_parent = for_pairs("parent.{0} = NEW.{0}", key, key, " AND ");
    parts.has_no_parent = for_pairs("NEW.{0} IS NULL", child_parent, child_parent, " OR ");
    parts.parent_changes = for_pairs("NEW.{0} IS DISTINCT FROM OLD.{0}", child_parent, child_parent, " OR ");
    const std::string table = quote_literal(parts.parent + " (" + parts.parent_key + ") = (");
    const auto shown = [&](const Columns& columns) {
        return fmt::format("concat({}, {}, ')')", table, for_pairs("NEW.{0}", columns, columns, ", ', ', "));
    };
    parts.shown_parent = shown(child_parent);
    parts.shown_new_parent = shown(key);
    return parts;
}

std::string filled(std::string_view pattern, const RuleParts& parts) {
    std::string quote = "$rowlock$";
    const auto is_taken = [&](const std::string& text) { return text.find(quote) != std::string::npos; };
    while (is_taken(parts.shown_parent) || is_taken(parts.child_parent) || is_taken(parts.child + parts.child_status) ||
           is_taken(parts.parent_status + parts.retired + parts.live)) {
        quote.insert(quote.size() - 1, "_");
    }
    return fmt::format(
        fmt::runtime(pattern), fmt::arg("quote", quote), fmt::arg("parent", parts.parent),
        fmt::arg("child", parts.child), fmt::arg("child_schema", parts.child_schema), fmt::arg("suffix", parts.suffix),
        fmt::arg("parent_status", parts.parent_status), fmt::arg("child_status", parts.child_status),
        fmt::arg("retired", parts.retired), fmt::arg("live", parts.live), fmt::arg("parent_key", parts.parent_key),
        fmt::arg("child_parent", parts.child_parent), fmt::arg("is_parent_of_new", parts.is_parent_of_new),
        fmt::arg("is_parent_of_child", parts.is_parent_of_child), fmt::arg("is_new_parent", parts.is_new_parent),
        fmt::arg("has_no_parent", parts.has_no_parent), fmt::arg("parent_changes", parts.parent_changes),
        fmt::arg("shown_parent", parts.shown_parent), fmt::arg("shown_new_parent", parts.shown_new_parent));
}

}  // namespace

std::string lifecycle_rule_sql(const LifecycleDescription& description, LifecycleRule rule) {
    return filled(rule == LifecycleRule::trigger ? trigger_pattern : declarative_pattern, parts_of(description));
}

std::string lifecycle_rule_removal_sql(const LifecycleDescription& description, LifecycleRule rule) {
    return filled(rule == LifecycleRule::trigger ? trigger_removal_pattern : declarative_removal_pattern,
                  parts_of(description));
}

std::string open_parents_sql(const LifecycleDescription& description, const std::string& condition) {
    const RuleParts parts = parts_of(description);
    const std::string key = fmt::format("{}", fmt::join(quoted_columns({}, description.parent.key), ", "));
    std::string sql = fmt::format("SELECT {} FROM {} WHERE {} IS DISTINCT FROM $1 AND (\n{}\n)", key, parts.parent,
                                  parts.parent_status, condition);
    if (!description.tenant_column.empty()) {
        sql += fmt::format(" AND {} = $2", quote_identifier(description.tenant_column));
    }
    return sql + " ORDER BY " + key;
}

LifecycleStatus lifecycle_status(Transaction& transaction, const LifecycleDescription& description) {
    const std::string sql = filled(status_pattern, parts_of(description));
    const Rows rows = transaction.execute({"lifecycle.status", sql});
    const Row row = rows.only();
    return {row.boolean(0), row.boolean(1), row.integer(2), row.integer(3), row.integer(4), row.integer(5)};
}

}  // namespace rowlock
