#include "schema/migrations.hpp"

#include <fmt/format.h>

#include "base/contract.hpp"

namespace rowlock {

namespace {

constexpr std::string_view log_migration = "audit_log";
constexpr std::string_view layout_mark = "/* PARTITION BY HASH (tenant_id) if partitions are asked for */";

/// A partition can be named in a statement of its own, which passes the triggers and the policies of its parent. So it
/// has the triggers too, and row-level security without a policy: who is not let past it sees nothing.
constexpr std::string_view partition_pattern = R"sql(
CREATE TABLE rowlock.audit_log_{number} PARTITION OF rowlock.audit_log FOR VALUES WITH (MODULUS {count}, REMAINDER {number});
ALTER TABLE rowlock.audit_log_{number} ENABLE ROW LEVEL SECURITY;
ALTER TABLE rowlock.audit_log_{number} FORCE ROW LEVEL SECURITY;
CREATE TRIGGER only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON rowlock.audit_log_{number}
    FOR EACH STATEMENT EXECUTE FUNCTION rowlock.refuse_change();
ALTER TABLE rowlock.audit_log_{number} ENABLE ALWAYS TRIGGER only_grows;
)sql";

}  // namespace

std::string script_of(const Migration& migration, const SchemaLayout& layout) {
    std::string script(migration.sql);
    if (layout.partitions == 0 || migration.name != log_migration) return script;
    const std::size_t mark = script.find(layout_mark);
    contract(mark != std::string::npos, "the migration that makes audit_log marks where its partitions are declared");
    script.replace(mark, layout_mark.size(), "PARTITION BY HASH (tenant_id)");
    script += "\nSET LOCAL ROLE rowlock_owner;\n";
    for (int number = 0; number < layout.partitions; ++number) {
        script += fmt::format(partition_pattern, fmt::arg("number", number), fmt::arg("count", layout.partitions));
    }
    return script + "RESET ROLE;\n";
}

std::string psql_script(std::span<const Migration> migrations, const SchemaLayout& layout) {
    contract(!migrations.empty(), "a build has at least one migration");
    std::string script = fmt::format(
        "-- The schema of rowlock, version {}, for a database that has none yet.\n"
        "-- Run it with psql, as a superuser or as a role with CREATEROLE that may CREATE in the database.\n"
        "-- To upgrade an older version, run `rowlock schema install`.\n"
        "\\set ON_ERROR_STOP on\n"
        "\\encoding UTF8\n"
        "BEGIN ISOLATION LEVEL READ COMMITTED;\n"
        "-- Waits for any other installer of this database, and holds it off until COMMIT.\n"
        "{};\n",
        migrations.back().number, lock_installers_sql);
    if (layout.distributed) script += fmt::format("{};\n", keep_from_nodes_sql);
    for (const Migration& migration : migrations) {
        script += fmt::format("\n-- ======== {:03}_{}.sql\n\n{}", migration.number, migration.name,
                              script_of(migration, layout));
    }
    if (layout.distributed) {
        script += fmt::format("\n-- ======== distributed.sql\n\n{}", embedded_distribution());
    }
    script += "\nCOMMIT;\n";
    return script;
}

}  // namespace rowlock
