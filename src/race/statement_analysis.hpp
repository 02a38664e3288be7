// What can be told of a step from its text, before it runs.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "race/catalog.hpp"
#include "race/row_access.hpp"
#include "race/scenario.hpp"

namespace rowlock::race {

/// What a statement does to the transaction it runs in.
enum class StatementKind {
    begin,
    commit,
    rollback,
    rollback_to,  ///< Gives back what was locked since the savepoint.
    setting,      ///< SET, SHOW, SAVEPOINT, RELEASE …: touches no table and takes no snapshot.
    lock_table,   ///< Takes no snapshot either.
    query,        ///< SELECT, INSERT, UPDATE, DELETE, MERGE, VALUES, TABLE, WITH: may be wrapped in BEGIN … COMMIT.
    other,        ///< DDL, CALL, DO, FETCH, VACUUM …
};

[[nodiscard]] StatementKind kind_of_statement(std::string_view statement);

struct Analysis {
    std::vector<StatementKind> statements{};
    Reach reach{};
    /// Depends on more than tables and locks: clocks, NOWAIT, SKIP LOCKED, DDL …
    bool everything = false;
    bool unlocks_advisory = false;
    bool names_advisory = false;
    bool handles_exceptions = false;  ///< What it runs may undo part of itself.
    /// Row locks that its text may take; what foreign keys take is not in it.
    LockModes row_locks = 0;
    /// A table into which plain VALUES are inserted, and which nothing that runs could read; else 0.
    ResourceId inserted_only = 0;
    /// Which tables it locks, and how, is settled by its text and does not depend on rows: no code, no foreign key.
    bool has_fixed_locks = false;
    bool only_inserts = false;       ///< It changes no row that was there.
    std::optional<RowAccess> row{};  ///< The only row that it may touch.

    [[nodiscard]] bool is_single(StatementKind kind) const { return statements.size() == 1 && statements[0] == kind; }
};

[[nodiscard]] Analysis analyse(std::string_view text, const Catalog& catalog);

/// The tables to which every step goes by one row at a time: only there are two rows two resources. One look at the
/// whole table, a setup's or an `invariant always`'s too, meets every row.
[[nodiscard]] std::set<ResourceId> tables_by_row(const Scenario& scenario, const Catalog& catalog);

/// What a statement's reads, writes and row locks on a table belong to: one row, where rows are apart, or the table.
[[nodiscard]] ResourceId rows_of(ResourceId table, const Analysis& analysis, const Catalog& catalog);

/// True where rows are apart and yet the statement may touch any of them: a variable's value was not foreseen.
[[nodiscard]] bool meets_every_row(const Analysis& analysis, const Catalog& catalog);

/// True for text whose value depends on the clock, ids of transactions or backends, or other sessions' locks.
[[nodiscard]] bool reads_surroundings(const Reach& reach);

/// True for text after which the tables can't be put back as data: DDL, TRUNCATE, roles, statistics.
[[nodiscard]] bool changes_more_than_rows(std::string_view text);

}  // namespace rowlock::race
