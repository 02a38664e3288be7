// The files of sql/, built into the program by cmake/EmbedMigrations.cmake.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rowlock {

struct Migration {
    int number;
    std::string_view name;
    std::string_view sql;
};

/// In the order of their numbers, which count 1, 2, 3 … Each ends by inserting its own row into rowlock.schema_version.
[[nodiscard]] std::span<const Migration> embedded_migrations();

/// sql/distributed.sql: what spreads the migrations' tables over the servers of a Citus cluster. For a superuser.
[[nodiscard]] std::string_view embedded_distribution();

/// Citus would send on what the migrations make, as rowlock_owner, which its other servers do not know yet; and every
/// SET LOCAL (where an install before has told it to), as the whole text that it came in.
constexpr std::string_view keep_from_nodes_sql =
    "SELECT set_config('citus.enable_ddl_propagation', 'off', true),"
    " set_config('citus.propagate_set_commands', 'none', true)";

/// How the schema is laid out; decided when it is installed for the first time.
struct SchemaLayout {
    /// Of audit_log, by hash of the tenant; 0: one table.
    int partitions = 0;
    /// Over the servers of a Citus cluster, by tenant.
    bool distributed = false;
};

/// What is run for a migration: its file, in the layout that is asked for.
[[nodiscard]] std::string script_of(const Migration& migration, const SchemaLayout& layout);

/// The migrations as one script for psql: one transaction, under the lock that `install_schema` takes.
[[nodiscard]] std::string psql_script(std::span<const Migration> migrations, const SchemaLayout& layout);

/// `SELECT pg_advisory_xact_lock`: one installer at a time in a database. Two-part key, so that it meets no other
/// use of advisory locks: the namespace is "rlsc" in ASCII.
constexpr std::string_view lock_installers_sql = "SELECT pg_advisory_xact_lock(1919710051, 1)";

}  // namespace rowlock
