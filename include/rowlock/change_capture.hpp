// Change capture: a tracked table leaves an entry for every row that a statement really changes.
//
// The entries are staged (rowlock.audit_staged) in the transaction that changes the row, by triggers, so writers in any
// language are captured; `rowlock seal` numbers and signs them later. What is captured, and what is not, stands in
// docs/change-capture.md. The same from SQL: `SELECT rowlock.track(…)`, to keep it in a migration.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rowlock/transaction.hpp"

namespace rowlock {

/// Which table, and how. Columns are named as they are, without quotes.
struct TrackedTable {
    std::string table{};                  ///< As in SQL: shop.invoice, shop."Invoice", or found in the search_path.
    std::string tenant_column{};          ///< Whose entry it is; NOT NULL.
    std::vector<std::string> excluded{};  ///< Left out altogether: a change in these alone leaves no entry.
    std::vector<std::string> masked{};    ///< Shows that it changed, but neither value.
    /// A setting of the transaction (`set_config(…, true)`) that names who acts; where it is not set, the login does.
    std::string actor_setting = "rowlock.actor";
};

enum class TrackOutcome {
    tracked,
    retracked,  ///< It was tracked otherwise, or its columns had changed.
    unchanged,
};

/// Captures the table's changes from now on; those of all partitions, of a partitioned table. The login owns the table
/// and is a member of rowlock_owner, or is a superuser.
/// Lock: SHARE ROW EXCLUSIVE on the table and its partitions (readers go on, writers wait), until the transaction ends.
/// Throws SetupError where there is no such table, ServerError RL008 where it can't be tracked so, with what to do.
[[nodiscard]] TrackOutcome track(Transaction& transaction, const TrackedTable& table);

/// `track` as SQL, for a migration. Asks no server.
[[nodiscard]] std::string track_sql(const TrackedTable& table);

/// Takes triggers and function away; what was captured stays. False where the table was not tracked.
/// Lock: ACCESS EXCLUSIVE on the table and its partitions, until the transaction ends.
/// Throws SetupError where there is no such table.
[[nodiscard]] bool untrack(Transaction& transaction, const std::string& table);

struct TrackedState {
    TrackedTable description{};  ///< Its table is qualified.
    /// Empty where the capture is as `track` left it. Else what has changed since; `track` again makes it good.
    std::string problem{};
    std::int64_t tracked_at = 0;  ///< Microseconds since 1970.
};

/// All tracked tables, by name. Lock: none.
[[nodiscard]] std::vector<TrackedState> tracked_tables(Transaction& transaction);

}  // namespace rowlock
