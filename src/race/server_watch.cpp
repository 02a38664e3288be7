#include "race/server_watch.hpp"

#include <fmt/format.h>

#include <array>

namespace rowlock::race {

namespace {

/// pg_blocking_pids sees heavy-weight locks, the soft edges of their queues too; a READ ONLY DEFERRABLE transaction
/// waits for a safe snapshot instead.
/// Source: https://www.postgresql.org/docs/15/functions-info.html, table 9.65
constexpr Statement blockers_sql{"race.blockers",
                                 "SELECT pid, array_to_string(pg_blocking_pids(pid)"
                                 " || pg_safe_snapshot_blocking_pids(pid), ' ') FROM unnest($1::int[]) pid"};

/// The function under the view pg_locks: no join, no sort.
constexpr Statement locks_sql{
    "race.locks",
    "SELECT locktype = 'advisory', coalesce(relation, 0)::int8, classid::int8, objid::int8, objsubid::int8, mode,"
    " granted FROM pg_lock_status() WHERE pid = $1 AND locktype IN ('relation', 'advisory')"
    " AND (relation >= 16384 OR relation IS NULL)"};

constexpr Statement backend_sql{"race.backend", "SELECT 1 FROM pg_stat_get_activity($1)"};

constexpr Statement relations_sql{
    "race.relations",
    "SELECT c.oid::int8, c.relname, c.relkind = 'S', coalesce((SELECT string_agg(f.oid::text, ' ') FROM ("
    "   SELECT confrelid AS oid FROM pg_constraint WHERE contype = 'f' AND conrelid = c.oid UNION"
    "   SELECT conrelid FROM pg_constraint WHERE contype = 'f' AND confrelid = c.oid) f), ''),"
    " concat_ws(E'\\n',"
    "   (SELECT string_agg(CASE WHEN t.tgqual IS NULL THEN p.proname ELSE pg_get_triggerdef(t.oid) END, E'\\n')"
    "    FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid WHERE t.tgrelid = c.oid AND NOT t.tgisinternal),"
    "   (SELECT string_agg(pg_get_ruledef(r.oid), E'\\n') FROM pg_rewrite r WHERE r.ev_class = c.oid),"
    "   (SELECT string_agg(pg_get_expr(d.adbin, d.adrelid), E'\\n') FROM pg_attrdef d WHERE d.adrelid = c.oid),"
    "   (SELECT string_agg(s.relname, E'\\n') FROM pg_depend d JOIN pg_class s ON s.oid = d.objid"
    "    AND d.classid = 'pg_class'::regclass WHERE d.refobjid = c.oid AND s.relkind = 'S'),"
    "   (SELECT string_agg(pg_get_constraintdef(k.oid), E'\\n') FROM pg_constraint k"
    "    WHERE k.conrelid = c.oid AND k.contype IN ('c', 'x')),"
    "   (SELECT string_agg(concat_ws(E'\\n', pg_get_expr(p.polqual, p.polrelid),"
    "    pg_get_expr(p.polwithcheck, p.polrelid)), E'\\n') FROM pg_policy p WHERE p.polrelid = c.oid),"
    "   (SELECT string_agg(concat_ws(E'\\n', pg_get_expr(i.indexprs, i.indrelid),"
    "    pg_get_expr(i.indpred, i.indrelid)), E'\\n') FROM pg_index i WHERE i.indrelid = c.oid),"
    "   (SELECT string_agg(k.relname, E'\\n') FROM pg_inherits h JOIN pg_class k ON k.oid = h.inhrelid"
    "    WHERE h.inhparent = c.oid)),"
    " format('%I.%I', c.relnamespace::regnamespace, c.relname),"
    " k.type, k.place, k.name"
    " FROM pg_class c LEFT JOIN LATERAL ("
    "   SELECT t.typname AS type, a.attname AS name, (SELECT count(*) FROM pg_attribute b WHERE b.attrelid = c.oid"
    "    AND b.attnum BETWEEN 1 AND a.attnum AND NOT b.attisdropped) AS place"
    "   FROM pg_index i JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0]"
    "   JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_collation l ON l.oid = a.attcollation"
    "   WHERE i.indrelid = c.oid AND i.indisprimary AND i.indimmediate AND i.indnkeyatts = 1 AND c.relkind = 'r'"
    "    AND t.oid IN ('int2'::regtype, 'int4'::regtype, 'int8'::regtype, 'text'::regtype, 'uuid'::regtype)"
    "    AND a.attgenerated = '' AND coalesce(l.collisdeterministic, true)"
    "    AND NOT EXISTS (SELECT FROM pg_index o WHERE o.indrelid = c.oid AND o.indexrelid <> i.indexrelid"
    "     AND (o.indisunique OR o.indisexclusion))"
    "    AND NOT EXISTS (SELECT FROM pg_inherits h WHERE c.oid IN (h.inhrelid, h.inhparent))) k ON true"
    " WHERE c.oid >= 16384 AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')"
    " AND c.relpersistence <> 't' AND c.relnamespace <> 'pg_toast'::regnamespace ORDER BY c.oid"};

constexpr Statement functions_sql{
    "race.functions",
    "SELECT proname, concat_ws(E'\\n', prosrc, pg_get_function_sqlbody(oid)) FROM pg_proc WHERE oid >= 16384"};

constexpr Statement traits_sql{
    "race.traits",
    "SELECT EXISTS (SELECT 1 FROM pg_constraint WHERE condeferrable AND oid >= 16384)"
    " OR EXISTS (SELECT 1 FROM pg_trigger WHERE tgdeferrable AND oid >= 16384),"
    " EXISTS (SELECT 1 FROM pg_operator WHERE oid >= 16384) OR EXISTS (SELECT 1 FROM pg_cast WHERE oid >= 16384)"
    " OR EXISTS (SELECT 1 FROM pg_event_trigger) OR EXISTS (SELECT 1 FROM pg_foreign_table)"
    " OR EXISTS (SELECT 1 FROM pg_aggregate WHERE aggfnoid >= 16384)"
    " OR EXISTS (SELECT 1 FROM pg_constraint WHERE contypid <> 0 AND oid >= 16384)"
    " OR EXISTS (SELECT 1 FROM pg_range WHERE rngtypid >= 16384)"};

LockModes mode_named(std::string_view name) {
    using namespace lock_mode;
    constexpr std::array<std::pair<std::string_view, LockModes>, 8> modes{{
        {"AccessShareLock", access_share},
        {"RowShareLock", row_share},
        {"RowExclusiveLock", row_exclusive},
        {"ShareUpdateExclusiveLock", share_update_exclusive},
        {"ShareLock", share},
        {"ShareRowExclusiveLock", share_row_exclusive},
        {"ExclusiveLock", exclusive},
        {"AccessExclusiveLock", access_exclusive},
    }};
    for (const auto& [known, mode] : modes) {
        if (known == name) return mode;
    }
    return access_exclusive;
}

/// One- and two-part keys are different spaces (objsubid tells which), so it goes into the identity.
/// Source: https://www.postgresql.org/docs/15/view-pg-locks.html
ResourceId advisory_resource(const Row& row) {
    const auto part = [&](std::size_t column) { return static_cast<ResourceId>(row.integer(column)); };
    const ResourceId key = part(2) << 32U | part(3);
    return advisory_bit | ((part(4) << 62U) ^ key);
}

Parameter pid_array(std::span<const int> pids) {
    std::vector<std::optional<std::string>> elements;
    for (const int pid : pids) elements.emplace_back(std::to_string(pid));
    return Parameter::array(elements);
}

std::vector<HeldLock> locks_in(const Rows& rows, const Catalog& catalog) {
    std::vector<HeldLock> locks;
    for (const Row row : rows) {
        ResourceId resource = 0;
        if (row.boolean(0)) {
            resource = advisory_resource(row);
        } else {
            const auto known = catalog.ids.find(static_cast<std::uint64_t>(row.integer(1)));
            if (known == catalog.ids.end()) continue;  // an index, a toast table, a table made by a step
            resource = known->second;
        }
        locks.push_back({resource, mode_named(row.text(5)), row.boolean(6)});
    }
    return locks;
}

}  // namespace

std::vector<int> numbers_in(std::string_view text) {
    std::vector<int> numbers;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find(' ', at), text.size());
        numbers.push_back(std::stoi(std::string(text.substr(at, end - at))));
        at = end + 1;
    }
    return numbers;
}

Rows query(Session& session, const Statement& statement, const std::vector<Parameter>& parameters) {
    session.queue(statement, parameters);
    return std::move(session.flush().rows_or_throw().front());
}

ServerWatch::ServerWatch(const std::string& connection)
    : session_(DatabaseOptions{.connection = connection, .application_name = "rowlock race"},
               std::source_location::current()) {}

std::map<int, std::vector<int>> ServerWatch::blockers(std::span<const int> pids) {
    std::map<int, std::vector<int>> blocked;
    for (const Row row : query(session_, blockers_sql, {pid_array(pids)})) {
        blocked.emplace(static_cast<int>(row.integer(0)), numbers_in(row.text(1)));
    }
    return blocked;
}

std::vector<HeldLock> ServerWatch::locks(int pid, const Catalog& catalog) {
    return locks_in(query(session_, locks_sql, {pid}), catalog);
}

BackendView ServerWatch::view(int pid, const Catalog& catalog) {
    const int pids[] = {pid};
    session_.queue(blockers_sql, {pid_array(pids)});
    session_.queue(locks_sql, {pid});
    const std::vector<Rows> answers = session_.flush().rows_or_throw();
    return {numbers_in(answers[0].only().text(1)), locks_in(answers[1], catalog)};
}

void ServerWatch::run_script(const std::string& script) {
    session_.run_script({"race.script", script}).rows_or_throw();
}

bool ServerWatch::has_backend(int pid) {
    return !query(session_, backend_sql, {pid}).empty();
}

Catalog read_catalog(Session& session) {
    Catalog catalog;
    const Rows relations = query(session, relations_sql);
    for (const Row row : relations) {
        catalog.ids.emplace(static_cast<std::uint64_t>(row.integer(0)), resource_named(row.text(5)));
    }
    for (const Row row : relations) {
        Relation relation{
            resource_named(row.text(5)), std::string(row.text(1)), row.boolean(2), {}, std::string(row.text(4)), {}};
        if (!row.is_null(6)) {
            relation.row_key = {std::string(row.text(6)), static_cast<std::size_t>(row.integer(7)),
                                std::string(row.text(8))};
        }
        for (const int oid : numbers_in(row.text(3))) {
            const auto other = catalog.ids.find(static_cast<std::uint64_t>(oid));
            if (other != catalog.ids.end()) relation.foreign_keys.insert(other->second);
        }
        catalog.add_relation(std::move(relation));
    }
    for (const Row row : query(session, functions_sql)) {
        catalog.functions_by_name.emplace(std::string(row.text(0)), std::string(row.text(1)));
    }
    const Rows answer = query(session, traits_sql);
    const Row traits = answer.only();
    catalog.has_deferrable = traits.boolean(0);
    catalog.runs_unnamed_code = traits.boolean(1);
    return catalog;
}

}  // namespace rowlock::race
