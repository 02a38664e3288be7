#include "rowlock/change_capture.hpp"

#include <fmt/format.h>

#include "capture/track_call.hpp"

namespace rowlock {

namespace {

/// As the server reads a name: folded to lower case unless quoted, looked up in the search_path unless qualified.
/// Lock: none.
constexpr Statement find_table{"capture.find_table", "SELECT to_regclass($1)::oid"};

/// Lock: SHARE ROW EXCLUSIVE on the table and its partitions.
constexpr Statement track_table{"capture.track", "SELECT rowlock.track($1::oid, $2, $3, $4, $5)", true};

/// Lock: ACCESS EXCLUSIVE on the table and its partitions.
constexpr Statement untrack_table{"capture.untrack", "SELECT rowlock.untrack($1::oid)", true};

/// Lock: none, nor the next.
constexpr Statement list_tables{
    "capture.list",
    "SELECT coalesce((SELECT format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_class AS c"
    "                   JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = t.table_name),"
    "                t.shown_name) AS name,"
    "       t.tenant_column, t.actor_setting, rowlock.capture_problem(t.table_name),"
    "       (extract(epoch FROM t.tracked_at) * 1000000)::bigint, t.table_name::oid::bigint"
    "  FROM rowlock.tracked_table AS t ORDER BY 1"};
constexpr Statement list_columns{
    "capture.list_columns",
    "SELECT t.table_name::oid::bigint, false, c.name FROM rowlock.tracked_table AS t, unnest(t.excluded) AS c (name)"
    " UNION ALL "
    "SELECT t.table_name::oid::bigint, true, c.name FROM rowlock.tracked_table AS t, unnest(t.masked) AS c (name)"
    " ORDER BY 3"};

std::string oid_of(Transaction& transaction, const std::string& table) {
    const Rows rows = transaction.execute(find_table, {table});
    if (rows.only().is_null(0)) throw SetupError(fmt::format("there is no table {}", table));
    return std::string(rows.only().text(0));
}

}  // namespace

TrackOutcome track(Transaction& transaction, const TrackedTable& table) {
    require_column_names(table);
    const std::string oid = oid_of(transaction, table.table);
    const Rows rows = transaction.execute(track_table, {oid, table.tenant_column, names_array(table.excluded),
                                                        names_array(table.masked), table.actor_setting});
    const std::string_view outcome = rows.only().text(0);
    if (outcome == "unchanged") return TrackOutcome::unchanged;
    return outcome == "tracked" ? TrackOutcome::tracked : TrackOutcome::retracked;
}

bool untrack(Transaction& transaction, const std::string& table) {
    const std::string oid = oid_of(transaction, table);
    return transaction.execute(untrack_table, {oid}).only().boolean(0);
}

std::vector<TrackedState> tracked_tables(Transaction& transaction) {
    const std::vector<Rows> answers = transaction.execute_all({{list_tables, {}}, {list_columns, {}}});
    std::vector<TrackedState> tables;
    for (const Row row : answers[0]) {
        TrackedState state;
        state.description.table = row.text(0);
        state.description.tenant_column = row.text(1);
        state.description.actor_setting = row.text(2);
        state.problem = row.optional_text(3).value_or("");
        state.tracked_at = row.integer(4);
        for (const Row column : answers[1]) {
            if (column.integer(0) != row.integer(5)) continue;
            auto& names = column.boolean(1) ? state.description.masked : state.description.excluded;
            names.emplace_back(column.text(2));
        }
        tables.push_back(std::move(state));
    }
    return tables;
}

}  // namespace rowlock
