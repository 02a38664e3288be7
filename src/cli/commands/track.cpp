#include <fmt/format.h>

#include "cli/commands/commands.hpp"
#include "cli/connection.hpp"
#include "cli/output.hpp"
#include "json/json.hpp"
#include "rowlock/error.hpp"
#include "rowlock/schema.hpp"

namespace rowlock::cli {

namespace {

/// Runs `work` as the login. Who may not is told who may: the table is the user's, and the function rowlock_owner's.
template <class Work>
auto as_table_owner(const Context& context, const TrackOptions& options, const Work& work) {
    const auto database = open_database(context, Access::owner);
    try {
        return database->transact({.lock_wait_max = std::chrono::milliseconds(options.wait_ms)},
                                  [&](Transaction& transaction) {
                                      require_schema(transaction);
                                      return work(transaction);
                                  });
    } catch (const ServerError& refused) {
        if (refused.sqlstate() != "42501") throw;
        throw SetupError(
            fmt::format("{}: connect as a superuser, or as the owner of the table with GRANT rowlock_owner TO it",
                        refused.report().message));
    }
}

std::string names(const std::vector<std::string>& columns) {
    std::vector<std::string> all;
    for (const std::string& column : columns) all.push_back(shown(column));
    return fmt::format("{}", fmt::join(all, ", "));
}

std::string json_of(const std::vector<std::string>& columns) {
    std::vector<std::string> elements;
    for (const std::string& column : columns) elements.push_back(quote_json(column));
    return json_array(elements);
}

std::string json_of(const TrackedState& state) {
    const TrackedTable& table = state.description;
    JsonObject object;
    object.text("table", table.table).text("tenant_column", table.tenant_column);
    object.raw("excluded", json_of(table.excluded)).raw("masked", json_of(table.masked));
    object.text("actor_setting", table.actor_setting).text("tracked_at", utc_time(state.tracked_at));
    object.boolean("stale", !state.problem.empty()).text("problem", state.problem);
    return object.str();
}

}  // namespace

Exit track_table(const Context& context, const TrackOptions& options) {
    if (options.sql) {
        const std::string sql = track_sql(options.table);
        print_line(context.globals.json ? JsonObject().text("sql", sql).str() : sql);
        return Exit::fine;
    }
    const TrackOutcome outcome =
        as_table_owner(context, options, [&](Transaction& transaction) { return track(transaction, options.table); });
    const std::string_view word = outcome == TrackOutcome::tracked     ? "tracked"
                                  : outcome == TrackOutcome::retracked ? "retracked"
                                                                       : "unchanged";
    if (context.globals.json) {
        print_line(JsonObject().text("table", options.table.table).text("outcome", word).str());
        return Exit::fine;
    }
    const std::string_view told = outcome == TrackOutcome::tracked     ? "is tracked from now on"
                                  : outcome == TrackOutcome::retracked ? "is tracked anew, as it is described now"
                                                                       : "was tracked so already";
    print_line(fmt::format("{} {}", shown(options.table.table), told));
    return Exit::fine;
}

Exit untrack_table(const Context& context, const TrackOptions& options) {
    const bool was_tracked = as_table_owner(
        context, options, [&](Transaction& transaction) { return untrack(transaction, options.table.table); });
    if (context.globals.json) {
        print_line(JsonObject().text("table", options.table.table).boolean("was_tracked", was_tracked).str());
    } else {
        print_line(fmt::format("{} {}", shown(options.table.table),
                               was_tracked ? "is not tracked any more; what was captured stays" : "was not tracked"));
    }
    return Exit::fine;
}

Exit list_tracked(const Context& context) {
    const auto database = open_database(context, Access::auditor);
    const std::vector<TrackedState> tables = database->transact({}, tracked_tables);
    Table table({"table", "tenant column", "excluded", "masked", "state"});
    Exit exit = Exit::fine;
    for (const TrackedState& state : tables) {
        if (!state.problem.empty()) exit = Exit::finding;
        if (context.globals.json) print_line(json_of(state));
        table.add({shown(state.description.table), shown(state.description.tenant_column),
                   names(state.description.excluded), names(state.description.masked),
                   state.problem.empty() ? "current" : "stale: " + shown(state.problem)});
    }
    if (context.globals.json) return exit;
    if (tables.empty()) {
        print_line("no table is tracked; rowlock track TABLE --tenant-column COLUMN begins");
        return exit;
    }
    for (const std::string& line : table.lines(context.style)) print_line(line);
    if (exit != Exit::fine) print_note("rowlock: run rowlock track again for what is stale, with the same options");
    return exit;
}

}  // namespace rowlock::cli
