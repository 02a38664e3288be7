// The schema: installed once whoever asks and however many ask at once, and closed to everybody who was given nothing.
#include "rowlock/schema.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "postgres/identifier.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/database.hpp"
#include "rowlock/error.hpp"
#include "schema/migrations.hpp"
#include "support/process.hpp"
#include "support/test_database.hpp"

namespace rowlock {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

const TransactionPolicy patient{.lock_wait_max = 60s, .deadline = 120s};

class Schema : public testing::Test {
  protected:
    std::string text(std::string_view sql) {
        return database_.transact({}, [&](Transaction& transaction) {
            return std::string(transaction.execute({"test.text", sql}).only().text(0));
        });
    }
    void run(std::string_view sql) {
        database_.transact({}, [&](Transaction& transaction) { transaction.execute_script({"test.run", sql}); });
    }
    SchemaStatus install() { return database_.transact(patient, install_schema); }

    test::TestDatabase server_;
    Database database_{server_.connection()};
};

TEST_F(Schema, IsNotInstalledAtFirst) {
    const SchemaStatus status = database_.transact({}, schema_status);
    EXPECT_EQ(status.installed, 0);
    EXPECT_EQ(status.current, embedded_migrations().back().number);
}

TEST_F(Schema, InstallsToTheVersionOfThisBuild) {
    const SchemaStatus status = install();
    EXPECT_EQ(status.installed, status.current);
    EXPECT_NO_THROW(database_.transact({}, require_schema));
}

TEST_F(Schema, InstalledASecondTimeStaysAsItIs) {
    install();
    const std::string ledger = text("SELECT ledger_id FROM rowlock.ledger");
    const SchemaStatus status = install();
    EXPECT_EQ(status.installed, status.current);
    EXPECT_EQ(text("SELECT ledger_id FROM rowlock.ledger"), ledger);
}

TEST_F(Schema, RecordsEachMigrationUnderTheNumberAndNameOfItsFile) {
    install();
    int expected = 0;
    const Rows rows = database_.transact({}, [](Transaction& transaction) {
        return transaction.execute({"test.versions", "SELECT version, name FROM rowlock.schema_version ORDER BY 1"});
    });
    ASSERT_EQ(rows.size(), embedded_migrations().size());
    for (const Migration& migration : embedded_migrations()) {
        EXPECT_EQ(migration.number, ++expected);
        const Row row = rows[static_cast<std::size_t>(expected - 1)];
        EXPECT_EQ(row.integer(0), migration.number);
        EXPECT_EQ(row.text(1), migration.name);
    }
}

TEST_F(Schema, InstalledByEightAtOnceIsInstalledOnce) {
    std::vector<std::thread> installers;
    std::atomic<int> succeeded = 0;
    for (int i = 0; i < 8; ++i) {
        installers.emplace_back([&] {
            try {
                Database own(server_.connection());
                const SchemaStatus status = own.transact(patient, install_schema);
                if (status.installed == status.current) ++succeeded;
            } catch (const Error& error) {
                ADD_FAILURE() << error.what();
            }
        });
    }
    for (std::thread& installer : installers) installer.join();
    EXPECT_EQ(succeeded, 8);
    EXPECT_EQ(text("SELECT count(*) FROM rowlock.ledger"), "1");
}

TEST_F(Schema, InstallsInTwoDatabasesOfOneServerAtOnce) {
    test::TestDatabase other_server;
    std::thread other([&] { Database(other_server.connection()).transact(patient, install_schema); });
    install();
    other.join();
    EXPECT_NO_THROW(database_.transact({}, require_schema));
    EXPECT_NO_THROW(Database(other_server.connection()).transact({}, require_schema));
}

TEST_F(Schema, RefusesToInstallAboveReadCommitted) {
    const TransactionPolicy policy{.isolation = IsolationLevel::repeatable_read};
    EXPECT_THROW(static_cast<void>(database_.transact(policy, install_schema)), InvalidInput);
}

TEST_F(Schema, RefusesANewerDatabaseAndNamesBothVersions) {
    install();
    run("INSERT INTO rowlock.schema_version (version, name) VALUES (900, 'from_the_future')");
    const std::string own_version = std::to_string(embedded_migrations().back().number);
    try {
        install();
        FAIL() << "installed over a newer schema";
    } catch (const SetupError& error) {
        EXPECT_THAT(error.what(), HasSubstr("version 900"));
        EXPECT_THAT(error.what(), HasSubstr("version " + own_version));
        EXPECT_THAT(error.what(), HasSubstr("use a newer rowlock"));
    }
    EXPECT_THROW(database_.transact({}, require_schema), SetupError);
}

TEST_F(Schema, SaysWhatToDoWhereItIsMissing) {
    try {
        database_.transact({}, require_schema);
        FAIL() << "there is no schema";
    } catch (const SetupError& error) {
        EXPECT_THAT(error.what(), HasSubstr("rowlock schema install"));
    }
}

TEST_F(Schema, TellsAnyRoleOfItsVersion) {
    install();
    Database nobody(server_.connection_as(server_.add_login("nobody")));
    EXPECT_NO_THROW(nobody.transact({}, require_schema));
}

TEST_F(Schema, PrintedForPsqlIsTakenAsUpToDateAfterwards) {
    test::ProcessOptions psql;
    psql.arguments = {"psql", "--no-psqlrc", "--quiet", "--dbname=" + server_.connection()};
    psql.input = schema_sql();
    EXPECT_EQ(test::run_process(psql).exit_code, 0);
    const std::string ledger = text("SELECT ledger_id FROM rowlock.ledger");
    EXPECT_EQ(install().installed, embedded_migrations().back().number);
    // Run once more it stops at the first statement, and changes nothing.
    EXPECT_EQ(test::run_process(psql).exit_code, 3);
    EXPECT_EQ(text("SELECT ledger_id FROM rowlock.ledger"), ledger);
}

TEST_F(Schema, KeepsTheRoleThatTheTransactionHad) {
    const std::string installer_role = server_.add_login("installer", "SUPERUSER").role;
    Database installer({.connection = server_.connection(), .role = installer_role});
    const std::string role = installer.transact(patient, [](Transaction& transaction) {
        install_schema(transaction);
        return std::string(transaction.execute({"test.role", "SELECT current_user"}).only().text(0));
    });
    EXPECT_EQ(role, installer_role);
}

TEST_F(Schema, IsInstalledByARoleThatIsNoSuperuser) {
    const test::TestLogin login = server_.add_login("dba", "CREATEROLE");
    run("GRANT CREATE ON DATABASE " + quote_identifier(server_.name()) + " TO " + quote_identifier(login.role));
    Database dba(server_.connection_as(login));
    EXPECT_NO_THROW(static_cast<void>(dba.transact(patient, install_schema)));
    EXPECT_NO_THROW(dba.transact(patient, uninstall_schema));
}

TEST_F(Schema, IsRefusedToARoleWithoutTheRights) {
    Database guest(server_.connection_as(server_.add_login("guest")));
    try {
        static_cast<void>(guest.transact(patient, install_schema));
        ADD_FAILURE() << "a guest installed a schema";
    } catch (const ServerError& error) {
        EXPECT_EQ(error.sqlstate(), "42501");
        EXPECT_EQ(error.recovery(), Recovery::give_up);
    }
}

TEST_F(Schema, UninstalledIsGoneAndCanBeInstalledAnew) {
    install();
    const std::string ledger = text("SELECT ledger_id FROM rowlock.ledger");
    database_.transact(patient, uninstall_schema);
    EXPECT_EQ(database_.transact({}, schema_status).installed, 0);
    EXPECT_NO_THROW(database_.transact(patient, uninstall_schema));
    install();
    EXPECT_NE(text("SELECT ledger_id FROM rowlock.ledger"), ledger);
}

TEST_F(Schema, IsNotUninstalledWithATableOfTheUsersInIt) {
    install();
    run("CREATE TABLE rowlock.invoice (number bigint)");
    EXPECT_THROW(database_.transact(patient, uninstall_schema), SetupError);
    run("ALTER TABLE rowlock.invoice SET SCHEMA public");
    EXPECT_NO_THROW(database_.transact(patient, uninstall_schema));
}

TEST_F(Schema, BelongsToItsOwnerWhoeverInstalled) {
    install();
    EXPECT_EQ(text("SELECT count(*) FROM pg_class WHERE relnamespace = 'rowlock'::regnamespace"
                   " AND relowner <> 'rowlock_owner'::regrole"),
              "0");
    EXPECT_EQ(text("SELECT count(*) FROM pg_proc WHERE pronamespace = 'rowlock'::regnamespace"
                   " AND proowner <> 'rowlock_owner'::regrole"),
              "0");
}

TEST_F(Schema, GivesPublicNoFunctionAndPinsEverySearchPath) {
    install();
    EXPECT_EQ(text("SELECT count(*) FROM pg_proc WHERE pronamespace = 'rowlock'::regnamespace AND (proacl IS NULL"
                   " OR EXISTS (SELECT FROM aclexplode(proacl) AS granted WHERE granted.grantee = 0))"),
              "0");
    EXPECT_EQ(text("SELECT count(*) FROM pg_proc WHERE pronamespace = 'rowlock'::regnamespace"
                   " AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (proconfig), false)"),
              "0");
}

TEST_F(Schema, GivesNobodyButTheOwnerAnUpdateOfAWholeTableAndOnlyTheSealerADelete) {
    install();
    EXPECT_EQ(text("SELECT string_agg(relname || ' ' || granted.grantee::regrole || ' ' || granted.privilege_type, ', '"
                   "                  ORDER BY relname)"
                   "  FROM pg_class, aclexplode(relacl) AS granted"
                   " WHERE relnamespace = 'rowlock'::regnamespace AND granted.grantee <> relowner"
                   " AND granted.privilege_type IN ('UPDATE', 'DELETE', 'TRUNCATE', 'TRIGGER', 'REFERENCES')"),
              "audit_staged rowlock_sealer DELETE");
}

TEST_F(Schema, ForcesRowLevelSecurityOnEveryTableWithATenant) {
    install();
    EXPECT_EQ(text("SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class JOIN pg_attribute ON attrelid ="
                   " pg_class.oid WHERE relnamespace = 'rowlock'::regnamespace AND relkind = 'r'"
                   " AND attname = 'tenant_id' AND relrowsecurity AND relforcerowsecurity"),
              "audit_log audit_quarantined audit_staged quota sequence_counter tenant_seq");
    EXPECT_EQ(text("SELECT count(*) FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid"
                   " WHERE relnamespace = 'rowlock'::regnamespace AND relkind IN ('r', 'p')"
                   " AND attname = 'tenant_id' AND NOT (relrowsecurity AND relforcerowsecurity)"),
              "0");
}

/// audit_log in partitions: nothing of it may be weaker than the one table.
class PartitionedSchema : public Schema {
  protected:
    PartitionedSchema() {
        database_.transact(patient,
                           [](Transaction& transaction) { return install_partitioned_schema(transaction, 4); });
        server_.execute("GRANT rowlock_app TO " + login_.role);
    }
    const test::TestLogin login_ = server_.add_login("shop");
};

TEST_F(PartitionedSchema, KeepsEachTenantInOnePartitionGaplessAndIntact) {
    Database app{server_.connection_as(login_)};
    const AuditLog log{Keyring::generate()};
    for (int i = 0; i < 40; ++i) {
        const TransactionPolicy policy{.tenant = TenantId("tenant " + std::to_string(i % 20))};
        app.transact(policy, [&](Transaction& t) { EXPECT_EQ(log.append(t, {}).index(), 0U); });
    }
    EXPECT_EQ(text("SELECT count(DISTINCT tableoid) > 1 FROM rowlock.audit_log"), "t");
    EXPECT_EQ(text("SELECT count(*) FROM (SELECT tenant_id FROM rowlock.audit_log GROUP BY 1"
                   " HAVING count(DISTINCT tableoid) > 1 OR max(seq) <> 2) AS torn"),
              "0");
    const auto tenants = database_.transact({}, AuditLog::tenants);
    EXPECT_EQ(tenants.size(), 20U);
    for (const TenantId& tenant : tenants) {
        const Verification verification = database_.transact({}, [&](Transaction& t) { return log.verify(t, tenant); });
        EXPECT_EQ(verification.verdict, Verdict::intact) << tenant.text();
    }
}

TEST_F(PartitionedSchema, LetsNobodyChangeAPartitionByItsOwnName) {
    for (const std::string change : {"TRUNCATE rowlock.audit_log_2", "DELETE FROM rowlock.audit_log_2",
                                     "UPDATE rowlock.audit_log_2 SET actor = 'x'", "TRUNCATE rowlock.audit_log"}) {
        try {
            run("SET LOCAL session_replication_role = replica; " + change);
            ADD_FAILURE() << change;
        } catch (const ServerError& error) {
            EXPECT_EQ(error.sqlstate(), "RL002") << change;
        }
    }
    Database app{server_.connection_as(login_)};
    try {
        app.transact({}, [](Transaction& t) { t.execute({"test.read", "SELECT FROM rowlock.audit_log_0"}); });
        ADD_FAILURE() << "the application reads a partition";
    } catch (const ServerError& error) {
        EXPECT_EQ(error.sqlstate(), "42501");
    }
    EXPECT_EQ(text("SELECT count(*) FROM pg_class WHERE relname ~ '^audit_log_[0-9]$' AND relkind = 'r'"
                   " AND relrowsecurity AND relforcerowsecurity"),
              "4");
}

TEST_F(PartitionedSchema, IsOnlyForADatabaseThatHasNoneYet) {
    EXPECT_THROW(database_.transact(patient, [](Transaction& t) { return install_partitioned_schema(t, 8); }),
                 SetupError);
    EXPECT_THROW(database_.transact(patient, [](Transaction& t) { return install_partitioned_schema(t, 1); }),
                 InvalidInput);
    EXPECT_EQ(install().installed, install().current) << "an upgrade without a word of partitions goes through";
}

/// For a database that is spread by tenant over several servers.
TEST_F(Schema, BeginsEveryKeyOfATableWithATenantByTheTenant) {
    install();
    EXPECT_EQ(text("SELECT count(*) FROM pg_index JOIN pg_class ON pg_class.oid = indrelid"
                   "  JOIN pg_attribute AS tenant ON tenant.attrelid = indrelid AND tenant.attname = 'tenant_id'"
                   " WHERE relnamespace = 'rowlock'::regnamespace AND indkey[0] <> tenant.attnum"),
              "0");
    EXPECT_EQ(text("SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class"
                   " WHERE relnamespace = 'rowlock'::regnamespace AND relkind IN ('r', 'p') AND NOT EXISTS (SELECT FROM"
                   " pg_attribute WHERE attrelid = pg_class.oid AND attname = 'tenant_id')"),
              "checkpoint_noted claimed_table ledger schema_version tracked_table")
        << "tables of the whole database: copies on every server";
}

}  // namespace
}  // namespace rowlock
