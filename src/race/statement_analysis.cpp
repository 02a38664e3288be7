#include "race/statement_analysis.hpp"

#include <algorithm>
#include <array>

#include "race/sql_tokens.hpp"
#include "race/step_program.hpp"

namespace rowlock::race {

namespace {

template <std::size_t size>
bool has_any(const Reach& reach, const std::array<std::string_view, size>& words) {
    return std::ranges::any_of(words, [&](std::string_view word) { return reach.words.contains(word); });
}

/// What depends on the clock, on ids that the server gives out in order, or on what others hold just now.
constexpr std::array<std::string_view, 40> surroundings_words{"now",
                                                              "current_timestamp",
                                                              "current_date",
                                                              "current_time",
                                                              "localtime",
                                                              "localtimestamp",
                                                              "clock_timestamp",
                                                              "statement_timestamp",
                                                              "transaction_timestamp",
                                                              "timeofday",
                                                              "pg_locks",
                                                              "pg_lock_status",
                                                              "pg_blocking_pids",
                                                              "pg_stat_activity",
                                                              "pg_stat_get_activity",
                                                              "pg_current_xact_id",
                                                              "pg_current_xact_id_if_assigned",
                                                              "txid_current",
                                                              "txid_current_if_assigned",
                                                              "txid_current_snapshot",
                                                              "txid_status",
                                                              "pg_xact_status",
                                                              "pg_current_snapshot",
                                                              "pg_snapshot_xmin",
                                                              "pg_snapshot_xmax",
                                                              "pg_visible_in_snapshot",
                                                              "pg_export_snapshot",
                                                              "pg_prepared_xacts",
                                                              "pg_isolation_test_session_is_blocked",
                                                              "age",
                                                              "xmin",
                                                              "xmax",
                                                              "ctid",
                                                              "cmin",
                                                              "cmax",
                                                              "tableoid",
                                                              "pg_terminate_backend",
                                                              "pg_cancel_backend",
                                                              "pg_wal_lsn_diff",
                                                              "pg_current_wal_lsn"};

/// What looks at others without waiting for them, tells them something, or changes more than rows.
constexpr std::array<std::string_view, 33> global_words{"nowait",
                                                        "skip",
                                                        "listen",
                                                        "unlisten",
                                                        "notify",
                                                        "pg_notify",
                                                        "truncate",
                                                        "create",
                                                        "alter",
                                                        "drop",
                                                        "vacuum",
                                                        "analyze",
                                                        "analyse",
                                                        "cluster",
                                                        "reindex",
                                                        "refresh",
                                                        "prepared",
                                                        "transaction_read_only",
                                                        "deferrable",
                                                        "discard",
                                                        "comment",
                                                        "grant",
                                                        "revoke",
                                                        "copy",
                                                        "import",
                                                        "reassign",
                                                        "checkpoint",
                                                        "lo_create",
                                                        "lo_import",
                                                        "lo_unlink",
                                                        "pg_advisory_unlock_all",
                                                        "constraints",
                                                        "pg_sleep"};

/// Families of functions and views: locks that are tried, statistics, large objects, sizes of files.
bool has_global_prefix(const Reach& reach) {
    constexpr std::array<std::string_view, 6> prefixes{"pg_try_advisory", "pg_stat",          "lo_",
                                                       "lowrite",         "pg_relation_size", "pg_total_relation_size"};
    return std::ranges::any_of(reach.words, [&](const std::string& word) {
        return std::ranges::any_of(prefixes, [&](std::string_view prefix) { return word.starts_with(prefix); });
    });
}

/// `SELECT … INTO table`; in a function's body INTO means variables, so only the statement itself counts.
bool makes_table(std::string_view statement) {
    const std::vector<std::string> words = sql_code_words(statement);
    if (words.empty() || (words[0] != "select" && words[0] != "with")) return false;
    for (std::size_t i = 1; i < words.size(); ++i) {
        if (words[i] == "into" && words[i - 1] != "insert" && words[i - 1] != "merge") return true;
    }
    return false;
}

constexpr std::array<std::string_view, 7> setting_words{"set",     "show",    "reset", "savepoint",
                                                        "release", "declare", "close"};
constexpr std::array<std::string_view, 9> query_words{"select", "insert", "update", "delete", "merge",
                                                      "values", "table",  "with",   "("};

/// `FOR UPDATE` and its weaker forms, wherever the text or what it runs has them.
LockModes row_locks_of(const Reach& reach) {
    if (!reach.words.contains("for")) return 0;
    LockModes modes = 0;
    const bool has_key = reach.words.contains("key");
    if (reach.words.contains("share")) {
        modes = static_cast<LockModes>(modes | lock_mode::row_for_share | (has_key ? lock_mode::row_for_key_share : 0));
    }
    if (reach.words.contains("update")) {
        modes = static_cast<LockModes>(modes | lock_mode::any_row_update);
    }
    return modes;
}

/// `INSERT INTO t … VALUES (…)`, where nothing that it runs names the table again.
ResourceId insert_target(std::string_view statement, const Reach& reach, const Catalog& catalog) {
    const std::vector<std::string> words = sql_code_words(statement);
    if (words.size() < 4 || words[0] != "insert" || words[1] != "into" || reach.words.contains("select")) return 0;
    if (reach.words.contains("conflict") || reach.unbounded) return 0;
    const auto [at, end] = catalog.relations_by_name.equal_range(words[2]);
    if (at == end || std::next(at) != end) return 0;
    const auto named = reach.named.find(at->second);
    return named != reach.named.end() && named->second == 1 ? at->second : 0;
}

/// Locks on tables are taken when a statement is analysed and planned, before it meets a row; what comes later are
/// those of triggers, functions and foreign keys, and names worked out at run time.
bool locks_by_text_alone(const Analysis& analysis) {
    constexpr std::array<std::string_view, 5> working_words{"nextval", "setval", "currval", "lastval", "regclass"};
    const Reach& reach = analysis.reach;
    const bool is_plain = analysis.is_single(StatementKind::query) && !analysis.everything && !analysis.names_advisory;
    return is_plain && !reach.unbounded && !reach.runs_code && reach.by_foreign_key.empty() &&
           !has_any(reach, working_words);
}

/// A step's text with a key in the place of each variable, which is not known before it runs.
std::string with_sample_keys(std::string_view sql, const RowKey& key) {
    Variables samples;
    const std::string sample = key.type == "uuid" ? "00000000-0000-0000-0000-000000000000" : "1";
    for (const VariableUse& use : variable_uses(sql)) samples.insert_or_assign(use.name, sample);
    std::string unset;
    return substitute(sql, samples, unset);
}

bool goes_by_row(std::string_view sql, const Reach& reach, const Catalog& catalog) {
    if (reach.named.size() != 1) return false;
    const Relation& relation = catalog.relations.at(reach.named.begin()->first);
    return relation.row_key && analyse(with_sample_keys(sql, *relation.row_key), catalog).row;
}

}  // namespace

StatementKind kind_of_statement(std::string_view statement) {
    const std::vector<std::string> words = sql_code_words(statement);
    const auto word = [&](std::size_t index) { return index < words.size() ? words[index] : std::string(); };
    const std::string& first = word(0);
    if (first == "begin" || (first == "start" && word(1) == "transaction")) return StatementKind::begin;
    if (word(1) == "prepared" || (first == "prepare" && word(1) == "transaction")) return StatementKind::other;
    if (first == "commit" || first == "end") return StatementKind::commit;
    if (first == "rollback" || first == "abort") {
        return std::ranges::find(words, "to") != words.end() ? StatementKind::rollback_to : StatementKind::rollback;
    }
    if (std::ranges::find(setting_words, first) != setting_words.end()) {
        // A cursor's query is run where it is fetched from, but its snapshot is taken here.
        return first == "declare" || word(1) == "constraints" ? StatementKind::other : StatementKind::setting;
    }
    if (first == "lock") return StatementKind::lock_table;
    if (std::ranges::find(query_words, first) != query_words.end()) return StatementKind::query;
    return StatementKind::other;
}

bool reads_surroundings(const Reach& reach) {
    return has_any(reach, surroundings_words);
}

Analysis analyse(std::string_view text, const Catalog& catalog) {
    Analysis analysis;
    const std::vector<std::string_view> statements = sql_statements(text);
    for (const std::string_view statement : statements) analysis.statements.push_back(kind_of_statement(statement));
    analysis.reach = reach_of(text, catalog);
    const Reach& reach = analysis.reach;
    analysis.everything = reads_surroundings(reach) || has_any(reach, global_words) || has_global_prefix(reach) ||
                          std::ranges::any_of(statements, makes_table);
    for (const std::string& word : reach.words) {
        if (!word.starts_with("pg_advisory")) continue;
        analysis.names_advisory = true;
        analysis.unlocks_advisory = analysis.unlocks_advisory || word.starts_with("pg_advisory_unlock");
    }
    analysis.handles_exceptions = reach.words.contains("exception");
    analysis.row_locks = row_locks_of(reach);
    if (statements.size() == 1) analysis.inserted_only = insert_target(statements[0], reach, catalog);
    analysis.only_inserts = !reach.words.contains("update") && !reach.words.contains("delete") &&
                            !reach.words.contains("merge") && !reach.unbounded && reach.by_foreign_key.empty();
    analysis.has_fixed_locks = locks_by_text_alone(analysis);
    if (analysis.has_fixed_locks) analysis.row = row_access(statements[0], reach, catalog);
    return analysis;
}

ResourceId rows_of(ResourceId table, const Analysis& analysis, const Catalog& catalog) {
    return analysis.row && analysis.row->table == table && catalog.by_row.contains(table) ? analysis.row->row : table;
}

bool meets_every_row(const Analysis& analysis, const Catalog& catalog) {
    if (analysis.row) return false;
    return std::ranges::any_of(catalog.by_row, [&](ResourceId table) { return analysis.reach.may_touch(table); });
}

std::set<ResourceId> tables_by_row(const Scenario& scenario, const Catalog& catalog) {
    std::set<ResourceId> tables;
    for (const auto& [id, relation] : catalog.relations) {
        if (relation.row_key) tables.insert(id);
    }
    const auto leave_out = [&](const Reach& reach) {
        std::erase_if(tables, [&](ResourceId id) { return reach.may_touch(id); });
    };
    for (const Invariant& invariant : scenario.invariants) {
        if (invariant.always) leave_out(reach_of(invariant.sql, catalog));
    }
    for (const SessionScript& session : scenario.sessions) {
        leave_out(reach_of(session.setup, catalog));
        for (const Step& step : session.steps) {
            for (const Instruction& instruction : step.program) {
                if (instruction.kind != Instruction::Kind::send) continue;
                const Reach reach = reach_of(instruction.text, catalog);
                if (!goes_by_row(instruction.text, reach, catalog)) leave_out(reach);
            }
        }
    }
    return tables;
}

bool changes_more_than_rows(std::string_view text) {
    static constexpr std::array<std::string_view, 22> words{
        "create",    "alter",     "drop",  "truncate", "vacuum",  "analyze",   "analyse",  "cluster",
        "reindex",   "refresh",   "grant", "revoke",   "comment", "prepared",  "security", "import",
        "lo_create", "lo_import", "copy",  "reassign", "discard", "checkpoint"};
    if (std::ranges::any_of(sql_statements(text), makes_table)) return true;
    const std::vector<std::string> found = sql_words(text);
    return std::ranges::any_of(found,
                               [](const std::string& word) { return std::ranges::find(words, word) != words.end(); });
}

}  // namespace rowlock::race
