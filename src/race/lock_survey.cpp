#include "race/lock_survey.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rowlock/error.hpp"

namespace rowlock::race {

namespace {

/// In a schema of its own, since a scenario may drop the one called public.
constexpr std::string_view install_pgrowlocks =
    "CREATE SCHEMA IF NOT EXISTS rowlock_race_locks;"
    "CREATE EXTENSION IF NOT EXISTS pgrowlocks SCHEMA rowlock_race_locks";

/// Relations, rows that are waited for (a lock on the tuple is held meanwhile) and advisory keys.
constexpr Statement survey_sql{
    "race.lock_survey",
    "SELECT l.pid, l.locktype, coalesce(quote_ident(n.nspname) || '.' || quote_ident(c.relname), ''),"
    " coalesce(c.relname, ''),"
    " format('(%s,%s)', l.page, l.tuple), l.mode, l.granted,"
    " CASE l.objsubid WHEN 2 THEN format('%s, %s', l.classid::int8, l.objid::int8)"
    "  ELSE (l.classid::int8 << 32 | l.objid::int8)::text END"
    " FROM pg_locks l LEFT JOIN pg_class c ON c.oid = l.relation LEFT JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE l.pid = ANY ($1::int[]) AND (l.locktype = 'advisory' OR l.locktype IN ('relation', 'tuple')"
    " AND c.oid >= 16384 AND c.relkind IN ('r', 'p', 'm'))"};

/// Tables whose rows these backends may have locked, and that can be read without waiting.
constexpr Statement locked_tables_sql{
    "race.locked_tables",
    "SELECT DISTINCT format('%I.%I', n.nspname, c.relname), c.relname FROM pg_locks l"
    " JOIN pg_class c ON c.oid = l.relation JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE l.pid = ANY ($1::int[]) AND l.locktype = 'relation' AND c.oid >= 16384 AND c.relkind = 'r'"
    " AND l.mode <> 'AccessShareLock' AND NOT EXISTS (SELECT 1 FROM pg_locks x WHERE x.relation = l.relation"
    "  AND x.mode = 'AccessExclusiveLock') ORDER BY 1"};

/// An expression that writes the primary key as "id=1"; of a table without one, the whole row.
constexpr Statement key_expression_sql{
    "race.key_expression",
    "SELECT coalesce((SELECT string_agg(format('%L || t.%I', a.attname || '=', a.attname), ' || '', '' || '"
    "   ORDER BY a.attnum) FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)"
    "  WHERE i.indrelid = $1::regclass AND i.indisprimary), 't::text')"};

Parameter array_of_pids(const std::vector<int>& pids) {
    std::vector<std::optional<std::string>> elements;
    for (const int pid : pids) elements.emplace_back(std::to_string(pid));
    return Parameter::array(elements);
}

/// "RowExclusiveLock" as "ROW EXCLUSIVE", the way SQL and the manual write it.
std::string mode_in_sql(std::string_view mode) {
    if (mode.ends_with("Lock")) mode.remove_suffix(4);
    if (mode == "SIRead") return "SIREAD";
    std::string words;
    for (const char c : mode) {
        const bool is_upper = c >= 'A' && c <= 'Z';
        if (is_upper && !words.empty()) words += ' ';
        words += is_upper ? c : static_cast<char>(c - 'a' + 'A');
    }
    return words;
}

/// pgrowlocks says "For Update" of a lock and "Update" of a row that was changed.
std::string row_mode_in_sql(std::string_view mode) {
    std::string words = mode.starts_with("For ") ? "" : "for ";
    words += mode;
    std::ranges::transform(words, words.begin(),
                           [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    return words;
}

std::optional<std::size_t> session_of(const std::vector<int>& pids, std::string_view pid) {
    const auto at = std::ranges::find_if(pids, [&](int own) { return std::to_string(own) == pid; });
    if (at == pids.end()) return std::nullopt;
    return static_cast<std::size_t>(at - pids.begin());
}

}  // namespace

void LockSurvey::prepare() {
    if (std::exchange(prepared_, true)) return;
    try {
        watch_->run_script(std::string(install_pgrowlocks));
        shows_rows_ = true;
    } catch (const ServerError&) {
        // Not installed, or not ours to install: tables and advisory keys are shown all the same.
    }
}

std::vector<LockSurvey::Table> LockSurvey::locked_tables(const std::vector<int>& pids) {
    std::vector<Table> tables;
    if (!shows_rows_) return tables;
    for (const Row row : query(watch_->session(), locked_tables_sql, {array_of_pids(pids)})) {
        tables.push_back({std::string(row.text(0)), std::string(row.text(1))});
    }
    return tables;
}

std::string LockSurvey::key_of(const Table& table) {
    return std::string(query(watch_->session(), key_expression_sql, {table.name}).only().text(0));
}

void LockSurvey::add_rows(const Table& table, const std::vector<int>& pids, std::vector<LockLine>& lines) {
    const std::string sql = fmt::format(
        "SELECT holder.pid, holder.mode, (SELECT {} FROM ONLY {} t WHERE t.ctid = locked.locked_row)"
        " FROM rowlock_race_locks.pgrowlocks($1) locked, unnest(locked.pids, locked.modes) holder(pid, mode)",
        key_of(table), table.name);
    for (const Row row : query(watch_->session(), {"race.row_locks", sql}, {table.name})) {
        const auto session = session_of(pids, row.text(0));
        if (!session) continue;
        lines.push_back({LockLine::Kind::row, *session, table.shown, row.optional_text(2).value_or("?"),
                         row_mode_in_sql(row.text(1)), true});
    }
}

std::vector<LockLine> LockSurvey::look(const std::vector<int>& pids) {
    prepare();
    std::vector<LockLine> lines;
    for (const Row row : query(watch_->session(), survey_sql, {array_of_pids(pids)})) {
        const std::size_t session = session_of(pids, row.text(0)).value_or(0);
        const std::string mode = mode_in_sql(row.text(5));
        if (row.text(1) == "advisory") {
            lines.push_back(
                {LockLine::Kind::advisory, session, "advisory", std::string(row.text(7)), mode, row.boolean(6)});
        } else if (row.text(1) == "relation") {
            lines.push_back({LockLine::Kind::table, session, std::string(row.text(3)), "", mode, row.boolean(6)});
        } else {
            const Table table{std::string(row.text(2)), std::string(row.text(3))};
            const std::string sql =
                fmt::format("SELECT {} FROM ONLY {} t WHERE ctid = $1::tid", key_of(table), table.name);
            const Rows key = query(watch_->session(), {"race.waited_row", sql}, {row.text(4)});
            lines.push_back({LockLine::Kind::row, session, table.shown,
                             key.empty() ? "?" : key[0].optional_text(0).value_or("?"), "", false});
        }
    }
    for (const Table& table : locked_tables(pids)) add_rows(table, pids, lines);
    std::ranges::sort(lines);
    const auto repeated = std::ranges::unique(lines);
    lines.erase(repeated.begin(), repeated.end());
    return lines;
}

}  // namespace rowlock::race
