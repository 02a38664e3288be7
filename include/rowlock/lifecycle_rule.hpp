// The rule of a lifecycle in the database itself, for writers in any language: nothing live under a retired parent.
#pragma once

#include <cstdint>
#include <string>

#include "rowlock/lifecycle.hpp"

namespace rowlock {

enum class LifecycleRule {
    /// Triggers. An insert waits for a retirement that is under way, and is refused with RL101 under a retired parent
    /// (RL102: no such parent can be seen), the parent in DETAIL. An update that makes a child live, or moves a live
    /// one, does not wait: it holds the child by then, and waiting would deadlock with `retire`; 55P03, the parent in
    /// DETAIL. A parent that is retired with a live child under it fails at COMMIT with RL103.
    /// Locks: the parent's row FOR SHARE, until the writer's transaction ends.
    trigger,
    /// No code: a generated column on the parent, a composite foreign key with ON UPDATE CASCADE and a CHECK on the
    /// child. What breaks the rule fails with 23503 or 23514. It costs a column and an index on each table, and a write
    /// of every child when its parent is retired or revived.
    declarative,
};

/// A script that installs the rule; the description has every key (`Lifecycle::description`). Run it in a transaction:
/// it takes ACCESS EXCLUSIVE (declarative) or SHARE ROW EXCLUSIVE (trigger) on both tables. It refuses, by failing, a
/// table that breaks the rule by then.
[[nodiscard]] std::string lifecycle_rule_sql(const LifecycleDescription& description, LifecycleRule rule);
/// A script that takes it away again; does nothing where it is not there.
[[nodiscard]] std::string lifecycle_rule_removal_sql(const LifecycleDescription& description, LifecycleRule rule);

/// `SELECT key… FROM parent WHERE …`: the parents that are not retired and that a condition of the caller's own picks,
/// in the order of their keys. `$1` is the retired status, `$2` the tenant where there is a column for it. Lock: none.
[[nodiscard]] std::string open_parents_sql(const LifecycleDescription& description, const std::string& condition);

struct LifecycleStatus {
    bool has_trigger = false;
    bool has_declarative = false;
    std::int64_t open_parents = 0;
    std::int64_t retired_parents = 0;
    std::int64_t live_children = 0;
    std::int64_t violations = 0;  ///< Live children under a retired parent.
};

/// One snapshot. Reads both tables whole; takes no lock.
[[nodiscard]] LifecycleStatus lifecycle_status(Transaction& transaction, const LifecycleDescription& description);

}  // namespace rowlock
