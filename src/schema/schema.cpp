#include "rowlock/schema.hpp"

#include <fmt/format.h>

#include "postgres/session.hpp"
#include "schema/migrations.hpp"

namespace rowlock {

namespace {

/// Lock: the installers' advisory lock, until the transaction ends.
constexpr Statement lock_installers{"schema.lock_installers", lock_installers_sql, true};

/// Lock: ACCESS SHARE on two catalogs. to_regclass() would not do: it asks a cache of the backend, and once it has said
/// no it goes on saying no after the wait for another installer, since an advisory lock brings no news of catalogs.
constexpr Statement look_for_schema{"schema.look_for",
                                    "SELECT EXISTS (SELECT FROM pg_catalog.pg_class AS c"
                                    " JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
                                    " WHERE n.nspname = 'rowlock' AND c.relname = 'schema_version'),"
                                    " current_setting('server_version_num')::int, current_setting('server_encoding'),"
                                    " current_setting('server_version'),"
                                    " EXISTS (SELECT FROM pg_catalog.pg_extension WHERE extname = 'citus'),"
                                    " to_regprocedure('rowlock.tell_nodes(text, text)') IS NOT NULL"};

/// Lock: none.
constexpr Statement keep_from_nodes{"schema.keep_from_nodes", keep_from_nodes_sql};

/// Lock: ACCESS SHARE on schema_version, as every SELECT.
constexpr Statement read_version{"schema.read_version", "SELECT coalesce(max(version), 0) FROM rowlock.schema_version"};

/// Lock: none.
constexpr Statement read_role{"schema.read_role", "SELECT current_setting('role')"};
constexpr Statement restore_role{"schema.restore_role", "SELECT set_config('role', $1, true)"};

/// Lock: none. Where the role that logs in is called rowlock, its unqualified tables land in our schema by "$user".
constexpr Statement find_strangers{
    "schema.find_strangers",
    "SELECT string_agg(relname, ', ' ORDER BY relname) FROM pg_catalog.pg_class"
    " WHERE relnamespace = to_regnamespace('rowlock') AND relkind IN ('r', 'p', 'v', 'm', 'f')"
    " AND pg_get_userbyid(relowner) <> 'rowlock_owner'"};

/// Lock: ACCESS EXCLUSIVE on everything in the schema, until the transaction ends.
constexpr Statement drop_schema{"schema.drop", "DROP SCHEMA IF EXISTS rowlock CASCADE", true};

int current_version() {
    return embedded_migrations().back().number;
}

struct Surroundings {
    bool has_schema;
    std::int64_t server_version;
    std::string server_version_text;
    std::string encoding;
    bool has_citus;
    bool is_distributed;
};

Surroundings look_around(Transaction& transaction) {
    const Rows rows = transaction.execute(look_for_schema);
    const Row row = rows.only();
    return {row.boolean(0),           row.integer(1), std::string(row.text(3)),
            std::string(row.text(2)), row.boolean(4), row.boolean(5)};
}

int installed_version(Transaction& transaction, const Surroundings& surroundings) {
    if (!surroundings.has_schema) return 0;
    return static_cast<int>(transaction.execute(read_version).only().integer(0));
}

void require_fitting_server(const Surroundings& surroundings) {
    if (surroundings.server_version < server_version_min) {
        throw SetupError(
            fmt::format("the schema needs PostgreSQL 15 or later; this server is {}: upgrade it, or use "
                        "another",
                        surroundings.server_version_text));
    }
    if (surroundings.encoding != "UTF8") {
        throw SetupError(
            fmt::format("the schema needs a database in UTF8; this one is in {}: make one with CREATE "
                        "DATABASE … ENCODING 'UTF8' TEMPLATE template0",
                        surroundings.encoding));
    }
}

/// A layout is decided when the schema is made.
void require_fitting_layout(const Surroundings& surroundings, const SchemaStatus& before, const SchemaLayout& layout) {
    if (layout.partitions > 0 && before.installed > 0) {
        throw SetupError(
            "the schema is there already, and a log can be partitioned only when it is made: export what is in it, "
            "uninstall, and install with partitions");
    }
    if (layout.distributed && !surroundings.has_citus) {
        throw SetupError(
            "the database has no Citus: CREATE EXTENSION citus in it on every server, tell the coordinator of the "
            "others (citus_set_coordinator_host, citus_add_node), and install there");
    }
    if (layout.distributed && before.installed > 0 && !surroundings.is_distributed) {
        throw SetupError(
            "the schema is there already, and its tables can be distributed only when they are made: export what is in "
            "them, uninstall, and install with --distributed");
    }
    if (surroundings.is_distributed && before.installed < before.current) {
        throw SetupError(
            fmt::format("the schema is distributed and at version {}, and can't be brought to version {}: export what "
                        "is in it, uninstall, and install with --distributed",
                        before.installed, before.current));
    }
}

void refuse_newer(const SchemaStatus& status) {
    if (status.installed <= status.current) return;
    throw SetupError(
        fmt::format("the database has version {} of the schema rowlock, this program knows version {}: use a "
                    "newer rowlock",
                    status.installed, status.current));
}

/// A migration takes on rowlock_owner and then resets the role; what the transaction had before is put back.
void run_migration(Transaction& transaction, const Migration& migration, const SchemaLayout& layout) {
    const std::string name = fmt::format("schema.migration_{:03}", migration.number);
    const std::string role(transaction.execute(read_role).only().text(0));
    const std::string script = script_of(migration, layout);
    transaction.execute_script({name, script});
    transaction.execute(restore_role, {role});
}

}  // namespace

SchemaStatus schema_status(Transaction& transaction) {
    return {installed_version(transaction, look_around(transaction)), current_version()};
}

namespace {

SchemaStatus install(Transaction& transaction, const SchemaLayout& layout) {
    // Above READ COMMITTED the snapshot is older than the lock: what another installer has just committed is not in it.
    if (transaction.isolation() != IsolationLevel::read_committed) {
        throw InvalidInput("the schema is installed at READ COMMITTED: set it in the policy of the transaction");
    }
    transaction.execute(lock_installers);
    const Surroundings surroundings = look_around(transaction);
    require_fitting_server(surroundings);
    const SchemaStatus before{installed_version(transaction, surroundings), current_version()};
    refuse_newer(before);
    require_fitting_layout(surroundings, before, layout);
    if (before.installed == before.current) return before;
    if (surroundings.has_citus) transaction.execute(keep_from_nodes);
    for (const Migration& migration : embedded_migrations()) {
        if (migration.number > before.installed) run_migration(transaction, migration, layout);
    }
    if (layout.distributed) transaction.execute_script({"schema.distribute", embedded_distribution()});
    return schema_status(transaction);
}

SchemaLayout partitioned(int partitions) {
    if (partitions < 2 || partitions > partitions_max) {
        throw InvalidInput(fmt::format("{} partitions can't be made: 2 to {}", partitions, partitions_max));
    }
    return {.partitions = partitions};
}

}  // namespace

SchemaStatus install_schema(Transaction& transaction) {
    return install(transaction, {});
}

SchemaStatus install_partitioned_schema(Transaction& transaction, int partitions) {
    return install(transaction, partitioned(partitions));
}

SchemaStatus install_distributed_schema(Transaction& transaction) {
    return install(transaction, {.distributed = true});
}

void uninstall_schema(Transaction& transaction) {
    const std::vector<Rows> answers = transaction.execute_all({{lock_installers, {}}, {find_strangers, {}}});
    if (const auto strangers = answers.back().only().optional_text(0)) {
        throw SetupError("the schema rowlock holds what is not rowlock's and would be dropped with it: " + *strangers +
                         ": move that elsewhere with ALTER … SET SCHEMA first");
    }
    transaction.execute(drop_schema);
}

void require_schema(Transaction& transaction) {
    const SchemaStatus status = schema_status(transaction);
    refuse_newer(status);
    if (status.installed == 0) {
        throw SetupError("the database has no schema rowlock: run `rowlock schema install`");
    }
    if (status.installed < status.current) {
        throw SetupError(
            fmt::format("the database has version {} of the schema rowlock, this program needs version "
                        "{}: run `rowlock schema install`",
                        status.installed, status.current));
    }
}

std::string schema_sql() {
    return psql_script(embedded_migrations(), {});
}

std::string partitioned_schema_sql(int partitions) {
    return psql_script(embedded_migrations(), partitioned(partitions));
}

std::string distributed_schema_sql() {
    return psql_script(embedded_migrations(), {.distributed = true});
}

}  // namespace rowlock
