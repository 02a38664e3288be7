#include "race/arena.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "postgres/connection_string.hpp"
#include "race/script_refused.hpp"
#include "race/sql_tokens.hpp"
#include "race/statement_analysis.hpp"
#include "race/timeouts.hpp"

namespace rowlock::race {

namespace {

constexpr std::string_view kept_schema = "rowlock_race_kept";

/// Ordinary tables, partitions too, with their writable columns, and partitioned ones, which have no rows of their own.
/// Nothing else holds rows that DELETE and INSERT could put back.
constexpr Statement tables_sql{
    "race.tables",
    "SELECT c.oid::int8, format('%I.%I', n.nspname, c.relname),"
    " (SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute"
    "  WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = ''), c.relkind = 'p'"
    " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE c.oid >= 16384 AND c.relkind IN ('r', 'p') AND c.relpersistence <> 't' AND n.nspname <> 'rowlock_race_kept'"
    " ORDER BY n.nspname, c.relname"};

/// Puts them back to where they are, or $1 further on.
constexpr Statement sequences_sql{
    "race.sequences",
    "SELECT coalesce(string_agg(format('SELECT setval(%L, %s, %L);', format('%I.%I', schemaname, sequencename),"
    " coalesce(last_value, start_value) + $1, last_value IS NOT NULL), ''), '') FROM pg_sequences"};

constexpr Statement others_sql{
    "race.other_relations",
    "SELECT EXISTS (SELECT 1 FROM pg_class WHERE oid >= 16384 AND relkind IN ('m', 'f'))"
    " OR EXISTS (SELECT 1 FROM pg_largeobject_metadata) OR EXISTS (SELECT 1 FROM pg_inherits i"
    " JOIN pg_class c ON c.oid = i.inhparent WHERE c.relkind = 'r')"
    " OR EXISTS (SELECT 1 FROM pg_trigger WHERE tgenabled = 'A') OR EXISTS (SELECT 1 FROM pg_rewrite WHERE ev_enabled "
    "= 'A')"};

/// They would keep the tables locked.
constexpr Statement prepared_sql{
    "race.prepared",
    "SELECT format('ROLLBACK PREPARED %L', gid) FROM pg_prepared_xacts WHERE database = current_database()"};

/// Roles are of the whole server.
bool makes_roles(const std::vector<std::string>& words) {
    for (std::size_t i = 1; i < words.size(); ++i) {
        const bool is_role = words[i] == "role" || words[i] == "user" || words[i] == "group";
        if (is_role && (words[i - 1] == "create" || words[i - 1] == "alter" || words[i - 1] == "drop")) return true;
    }
    return false;
}

/// Rows can be put back only where no step changes more than rows, and where the setup leaves nothing but rows behind:
/// statistics (ANALYZE) and page contents (VACUUM) are lost by it.
bool rows_suffice(const Scenario& scenario) {
    for (const SessionScript& session : scenario.sessions) {
        if (changes_more_than_rows(session.setup) || changes_more_than_rows(session.teardown)) return false;
        for (const Step& step : session.steps) {
            if (changes_more_than_rows(step.sql)) return false;
        }
    }
    return std::ranges::none_of(scenario.setups, [](const std::string& setup) {
        const std::vector<std::string> words = sql_code_words(setup);
        if (makes_roles(words)) return true;
        return std::ranges::any_of(words, [](const std::string& word) {
            return word == "analyze" || word == "analyse" || word == "vacuum" || word == "prepare" ||
                   word == "cluster" || word == "lo_create";
        });
    });
}

bool prepares_transactions(const Scenario& scenario) {
    return std::ranges::any_of(scenario.sessions, [](const SessionScript& session) {
        return std::ranges::any_of(session.steps, [](const Step& step) {
            const std::vector<std::string> words = sql_words(step.sql);
            return std::ranges::find(words, "prepare") != words.end();
        });
    });
}

/// Everything that any session may reach, so that only these tables are put back.
Reach reach_of_sessions(const Scenario& scenario, const Catalog& catalog) {
    std::string all;
    for (const SessionScript& session : scenario.sessions) {
        all += session.setup + "\n" + session.teardown + "\n";
        for (const Step& step : session.steps) all += step.sql + "\n";
    }
    return reach_of(all, catalog);
}

}  // namespace

OwnDatabase::OwnDatabase(std::string server, std::string name) : server_(std::move(server)), name_(std::move(name)) {
    ServerWatch watch(server_);
    // No DROP first: a database of that name that is there is somebody's.
    watch.run_script(fmt::format("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'", name_));
    watch.run_script(fmt::format("COMMENT ON DATABASE {} IS '{}'", name_, comment));
}

OwnDatabase::~OwnDatabase() {
    try {
        ServerWatch watch(server_);
        watch.run_script(fmt::format("DROP DATABASE IF EXISTS {} WITH (FORCE)", name_));
    } catch (const Error&) {
        // The server is gone, and the database with it, or the next run drops it.
    }
}

std::string OwnDatabase::connection() const {
    return with_database(server_, name_);
}

Arena::Arena(const Scenario& scenario, ServerWatch& watch)
    : scenario_(&scenario), watch_(&watch), prepares_transactions_(prepares_transactions(scenario)) {
    run_setups();
    catalog_ = read_catalog(watch_->session());
    read_tables();
    if (scenario.asks_oracle()) read_shapes();
    if (rows_suffice(scenario) && !query(watch_->session(), others_sql).only().boolean(0)) {
        keep_rows();
        kind_ = ResetKind::rows;
        // No step makes an index or a table here, so that what a key says of its table stays true.
        catalog_.by_row = tables_by_row(scenario, catalog_);
    }
}

void Arena::read_shapes() {
    shapes_ = read_table_shapes(watch_->session());
    if (shapes_.empty()) return;
    queue_state();
    note_known_values(shapes_, state_of(watch_->session().flush().rows_or_throw()));
}

void Arena::run_setups() {
    for (std::size_t i = 0; i < scenario_->setups.size(); ++i) {
        const std::string& setup = scenario_->setups[i];
        run_as_written(setup, scenario_->setup_offsets.at(i), [&] { watch_->run_script(without_timeouts(setup)); });
    }
}

void Arena::read_tables() {
    tables_.clear();
    partitioned_.clear();
    const Reach reach = reach_of_sessions(*scenario_, catalog_);
    state_text_.clear();
    for (const Row row : query(watch_->session(), tables_sql)) {
        const Table table{std::string(row.text(1)), row.optional_text(2).value_or("")};
        const bool is_partitioned = row.boolean(3);
        if (!is_partitioned) {
            if (!state_text_.empty()) state_text_ += " UNION ALL ";
            state_text_ += fmt::format(
                "SELECT {0}, (SELECT string_agg(r::text, E'\\n' ORDER BY r::text COLLATE \"C\") FROM"
                " ONLY {1} r)",
                "'" + table.name + "'", table.name);
        }
        const auto known = catalog_.ids.find(static_cast<std::uint64_t>(row.integer(0)));
        if (known == catalog_.ids.end()) continue;
        if (!reach.may_touch(known->second)) continue;
        if (is_partitioned) {
            partitioned_.push_back(table.name);
        } else {
            tables_.push_back(table);
        }
    }
}

std::string Arena::text_of_sequences(std::int64_t shift) {
    return std::string(query(watch_->session(), sequences_sql, {shift}).only().text(0));
}

void Arena::keep_rows() {
    std::string script = fmt::format("CREATE SCHEMA {};", kept_schema);
    fill_text_.clear();
    std::string empty;
    std::string fill;
    const std::string begin = "SET lock_timeout = '10s'; SET session_replication_role = replica;";
    for (std::size_t i = 0; i < tables_.size(); ++i) {
        const Table& table = tables_[i];
        const std::string kept = fmt::format("{}.t{}", kept_schema, i);
        script += fmt::format("CREATE TABLE {} AS SELECT * FROM ONLY {};", kept, table.name);
        empty += fmt::format("DELETE FROM ONLY {};", table.name);
        if (table.columns.empty()) continue;
        fill += fmt::format("INSERT INTO {0} ({1}) OVERRIDING SYSTEM VALUE SELECT {1} FROM {2};", table.name,
                            table.columns, kept);
    }
    watch_->run_script(script);
    if (!tables_.empty()) {
        std::string names;
        for (const Table& table : tables_) {
            names += (names.empty() ? "ONLY " : ", ONLY ") + table.name;
            fill_text_ += fmt::format("{}SELECT ctid AS place, pg_column_size(r.*) AS bytes FROM ONLY {} r",
                                      fill_text_.empty() ? "" : " UNION ALL ", table.name);
        }
        fill_text_ =
            fmt::format("SELECT coalesce(max(place), '(0,0)'), coalesce(max(bytes), 0)::int8 FROM ({}) f", fill_text_);
        // A foreign key to or from a partitioned table wants that named, too.
        for (const std::string& name : partitioned_) names += ", " + name;
        renew_text_ = begin + "TRUNCATE " + names + ";";
    }
    refill_text_ = fill + text_of_sequences(0) + "SET session_replication_role = origin";
    empty_text_ = begin + empty;
    reset_rows(true);
}

/// A query without an order answers in that of the heap, so the heap must be the same each time. It is as long as rows
/// are only appended, and they are until a page is nearly full: then pruning frees places in the middle, and the files
/// are begun anew, which costs more than all the rest of an execution. Not by VACUUM: that tells the planner how small
/// the tables are, and it would scan, and at SERIALIZABLE lock, a table that it reads by its key after the setup.
/// Source: PostgreSQL's src/backend/access/heap/pruneheap.c, heap_page_prune_opt
void Arena::reset_rows(bool renew) {
    watch_->run_script((renew ? renew_text_ : empty_text_) + refill_text_);
}

/// `(0,17)`: the seventeenth place of the first page.
void Arena::note_fill(const Row& row) {
    constexpr std::int64_t row_overhead = 32;  // header and line pointer
    constexpr std::int64_t page_share = 8192 / 3;
    const std::string_view place = row.text(0);
    row_bytes_max_ = std::max(row_bytes_max_, row.integer(1));
    const bool is_first_page = place.starts_with("(0,");
    const std::int64_t used = is_first_page ? std::atoll(std::string(place.substr(3)).c_str()) : 0;
    renewal_is_due_ = !is_first_page || used * (row_bytes_max_ + row_overhead) > page_share;
}

void Arena::reset_by_scripts() {
    if (scenario_->teardown.empty()) {
        watch_->run_script("DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT ALL ON SCHEMA public TO public");
    } else {
        run_as_written(scenario_->teardown, scenario_->teardown_offset,
                       [&] { watch_->run_script(scenario_->teardown); });
    }
    run_setups();
    catalog_ = read_catalog(watch_->session());
    read_tables();
    catalog_changed_ = true;
}

void Arena::reset() {
    if (prepares_transactions_) {
        for (const Row row : query(watch_->session(), prepared_sql)) watch_->run_script(std::string(row.text(0)));
    }
    if (kind_ == ResetKind::rows) {
        reset_rows(std::exchange(renewal_is_due_, true));
    } else {
        reset_by_scripts();
    }
    if (sequence_shift_ != 0) watch_->run_script(text_of_sequences(sequence_shift_));
}

void Arena::queue_state() {
    if (!state_text_.empty()) watch_->session().queue({"race.final_state", state_text_}, {});
    if (!fill_text_.empty()) watch_->session().queue({"race.fill", fill_text_}, {});
}

std::string Arena::state_of(std::span<const Rows> answers) {
    if (!fill_text_.empty()) {
        note_fill(answers.back().only());
        answers = answers.first(answers.size() - 1);
    }
    std::string state;
    if (state_text_.empty()) return state;
    for (const Row row : answers.back()) {
        state += fmt::format("{}:\n{}\n", row.text(0), row.optional_text(1).value_or(""));
    }
    return state;
}

}  // namespace rowlock::race
