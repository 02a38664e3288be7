#include "schema/migrations.hpp"

#include <fmt/format.h>

#include "base/contract.hpp"

namespace rowlock {

std::string psql_script(std::span<const Migration> migrations) {
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
    for (const Migration& migration : migrations) {
        script += fmt::format("\n-- ======== {:03}_{}.sql\n\n{}", migration.number, migration.name, migration.sql);
    }
    script += "\nCOMMIT;\n";
    return script;
}

}  // namespace rowlock
