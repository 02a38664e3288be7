// The tables, functions and roles of rowlock, as numbered migrations.
#pragma once

#include <string>

#include "rowlock/transaction.hpp"

namespace rowlock {

struct SchemaStatus {
    int installed = 0;  ///< 0: not installed.
    int current = 0;    ///< What this build brings.
};

/// Reads the installed version. Takes no lock.
[[nodiscard]] SchemaStatus schema_status(Transaction& transaction);

/// Brings the schema to this build's version; does nothing if it is there. Holds an advisory lock until the transaction
/// ends, so that any number may install at once. Throws SetupError if the database is newer than this build, is
/// older than PostgreSQL 15, or is not UTF8; ServerError 42501 if the role may not create what is needed.
SchemaStatus install_schema(Transaction& transaction);

inline constexpr int partitions_max = 1024;
/// The same with audit_log in so many partitions by hash of the tenant, each of which autovacuum and a backup work on
/// by itself. For a database that has no schema yet (SetupError); 2 to `partitions_max` (InvalidInput). Source:
/// https://www.postgresql.org/docs/15/ddl-partitioning.html
SchemaStatus install_partitioned_schema(Transaction& transaction, int partitions);

/// The same with every table that has a tenant spread by it over the servers of a Citus cluster; docs/citus.md tells
/// what can't be had there. On the coordinator, as a superuser, in a database that has Citus and no schema yet, and not
/// to bring an older version up to date (SetupError). Source:
/// https://docs.citusdata.com/en/v13.0/develop/api_udf.html
SchemaStatus install_distributed_schema(Transaction& transaction);

/// Drops the schema `rowlock` with all of its entries. The roles stay: other databases of the server may use them.
void uninstall_schema(Transaction& transaction);

/// Throws SetupError, with what to do, unless the installed version is this build's.
void require_schema(Transaction& transaction);

/// All migrations as one script, for a DBA who installs by hand with psql.
[[nodiscard]] std::string schema_sql();
[[nodiscard]] std::string partitioned_schema_sql(int partitions);
[[nodiscard]] std::string distributed_schema_sql();

}  // namespace rowlock
