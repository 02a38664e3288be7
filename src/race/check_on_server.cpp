#include "race/check_on_server.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "postgres/connection_string.hpp"
#include "race/script_refused.hpp"
#include "race/serial_oracle.hpp"
#include "race/server_watch.hpp"
#include "rowlock/error.hpp"

namespace rowlock::race {

namespace {

constexpr std::string_view database_prefix = "rowlock_race_";
constexpr std::chrono::milliseconds servers_deadlock_timeout{1'000};

/// What a user has put there, extensions' members apart.
constexpr Statement contents_sql{
    "race.contents",
    "SELECT coalesce(string_agg(name, ', '), '') FROM (SELECT c.oid::regclass::text AS name FROM pg_class c"
    " WHERE c.oid >= 16384 AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND c.relnamespace <> "
    "'pg_toast'::regnamespace"
    " UNION ALL SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.oid >= 16384 AND NOT EXISTS"
    "  (SELECT 1 FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')"
    " UNION ALL SELECT 'schema ' || n.nspname FROM pg_namespace n WHERE n.oid >= 16384 AND n.nspname !~ '^pg_'"
    " AND n.nspname <> 'public'"
    " ORDER BY 1 LIMIT 3) AS found"};

/// Of earlier runs of the name's owner, with nobody in them.
constexpr Statement leftovers_sql{
    "race.leftovers",
    "SELECT d.datname FROM pg_database d WHERE d.datname ~ '^rowlock_race_[0-9]+$'"
    " AND pg_has_role(d.datdba, 'MEMBER') AND shobj_description(d.oid, 'pg_database') = $1"
    " AND NOT EXISTS (SELECT 1 FROM pg_stat_activity a WHERE a.datname = d.datname)"};

constexpr std::string_view empty_again =
    "DROP SCHEMA IF EXISTS rowlock_race_kept, rowlock_race_locks CASCADE;"
    "DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO public";

}  // namespace

ScenarioDatabase::ScenarioDatabase(const PlayGround& ground) : ground_(ground) {
    if (ground_.database.empty()) {
        own_ = std::make_unique<OwnDatabase>(ground_.server, fmt::format("{}{}", database_prefix, getpid()));
        connection_ = own_->connection();
        return;
    }
    connection_ = with_database(ground_.server, ground_.database);
    ServerWatch watch(connection_);
    const std::string contents(query(watch.session(), contents_sql).only().text(0));
    if (!contents.empty()) {
        throw SetupError(
            fmt::format("the database {} is not empty (it has {}): the checker deletes what is there "
                        "between executions, so it takes an empty one only",
                        ground_.database, contents));
    }
}

ScenarioDatabase::~ScenarioDatabase() {
    if (own_) return;
    try {
        ServerWatch watch(connection_);
        watch.run_script(std::string(empty_again));
    } catch (const Error&) {
        // The server is gone, or a session still holds a lock: the database is not empty, and the next run says so.
    }
}

ConductorOptions ScenarioDatabase::conductor_options(const std::string& isolation) const {
    ConductorOptions options;
    options.connection = connection_;
    options.isolation = isolation;
    options.may_stop_backends = ground_.may_stop_backends;
    // Only a superuser may shorten it, so the server's own is waited for.
    if (!ground_.may_stop_backends) options.deadlock_timeout = servers_deadlock_timeout;
    return options;
}

CheckResult check_on_server(const Scenario& scenario, const PlayGround& ground, const std::string& isolation,
                            const CheckOptions& options) {
    const ScenarioDatabase database(ground);
    Conductor conductor(scenario, database.conductor_options(isolation));
    CheckOptions own = options;
    own.decides_wakes = ground.may_stop_backends;
    const std::string objection = oracle_objection(scenario, conductor.arena().catalog(), conductor.arena().shapes());
    try {
        CheckResult result = check(scenario, conductor, objection, own);
        result.isolation = isolation;
        return result;
    } catch (const ConnectionError& lost) {
        throw StageFault(fmt::format("the server is gone, so nothing can be told: {}", lost.what()));
    } catch (const ServerError& lost) {
        if (!is_server_gone(lost)) throw;
        throw StageFault(fmt::format("the server is gone, so nothing can be told: {}", lost.what()));
    }
}

void drop_leftover_databases(const std::string& server) {
    ServerWatch watch(server);
    for (const Row row : query(watch.session(), leftovers_sql, {OwnDatabase::comment})) {
        try {
            watch.run_script(fmt::format("DROP DATABASE IF EXISTS {}", row.text(0)));
        } catch (const ServerError&) {
            // Somebody has connected to it meanwhile: a run that has only just begun.
        }
    }
}

}  // namespace rowlock::race
