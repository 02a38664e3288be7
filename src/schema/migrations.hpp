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

/// The migrations as one script for psql: one transaction, under the lock that `install_schema` takes.
[[nodiscard]] std::string psql_script(std::span<const Migration> migrations);

/// `SELECT pg_advisory_xact_lock`: one installer at a time in a database. Two-part key, so that it meets no other
/// use of advisory locks: the namespace is "rlsc" in ASCII.
constexpr std::string_view lock_installers_sql = "SELECT pg_advisory_xact_lock(1919710051, 1)";

}  // namespace rowlock
