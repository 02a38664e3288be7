// The rule in the database itself: it holds for writers that know nothing of the library, plain psql and pgbench.
#include <fstream>

#include "postgres/lifecycle_fixture.hpp"
#include "rowlock/lifecycle_rule.hpp"
#include "support/process.hpp"
#include "support/scratch_folder.hpp"

namespace rowlock {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

class LifecycleRuleTest : public LifecycleTest {
  protected:
    void install(LifecycleRule rule) {
        const std::string sql = lifecycle_rule_sql(documents().description(), rule);
        database_.transact({}, [&](Transaction& transaction) { transaction.execute_script({"test.install", sql}); });
    }
    void uninstall(LifecycleRule rule) {
        const std::string sql = lifecycle_rule_removal_sql(documents().description(), rule);
        database_.transact({}, [&](Transaction& transaction) { transaction.execute_script({"test.uninstall", sql}); });
    }
    /// What psql says of it: "" where it went well, else its words with the SQLSTATE.
    [[nodiscard]] std::string psql(const std::string& script) const {
        const test::ProcessResult result =
            test::run_process({.arguments = {"psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose",
                                             "-d", server_.connection()},
                               .input = script,
                               .environment = {},
                               .folder = {},
                               .user = {}});
        return result.errors;
    }
    LifecycleStatus status() {
        return database_.transact(
            {}, [&](Transaction& transaction) { return lifecycle_status(transaction, documents().description()); });
    }
    /// The library's own retirement, then that of a plain client.
    void retire_plainly(int document) const {
        EXPECT_EQ(psql("BEGIN; SELECT FROM document WHERE id = " + std::to_string(document) +
                       " FOR UPDATE; UPDATE claim SET status = 'rejected' WHERE status IN ('confirmed', 'candidate')"
                       " AND document_id = " +
                       std::to_string(document) +
                       "; UPDATE document SET status = 'rejected' WHERE id = " + std::to_string(document) + "; COMMIT"),
                  "");
    }
};

class LifecycleInTheDatabase : public LifecycleRuleTest, public testing::WithParamInterface<LifecycleRule> {};

INSTANTIATE_TEST_SUITE_P(Forms, LifecycleInTheDatabase,
                         testing::Values(LifecycleRule::trigger, LifecycleRule::declarative), [](const auto& tested) {
                             return tested.param == LifecycleRule::trigger ? "trigger" : "declarative";
                         });

TEST_P(LifecycleInTheDatabase, RefusesPlainPsqlUnderARetiredParentAndNothingElse) {
    install(GetParam());
    EXPECT_EQ(psql("INSERT INTO claim (document_id) VALUES (1), (2)"), "");
    EXPECT_EQ(psql("UPDATE claim SET status = 'confirmed' WHERE id = 101"), "");
    EXPECT_EQ(psql("UPDATE claim SET document_id = 2 WHERE id = 101"), "");
    EXPECT_TRUE(std::holds_alternative<Cascade>(retire(1)));
    retire_plainly(2);
    EXPECT_THAT(psql("INSERT INTO claim (document_id) VALUES (1)"), AnyOf(HasSubstr("RL101"), HasSubstr("23503")));
    EXPECT_THAT(psql("UPDATE claim SET status = 'confirmed' WHERE id = 102"),
                AnyOf(HasSubstr("RL101"), HasSubstr("23514")));
    EXPECT_EQ(psql("INSERT INTO claim (id, document_id) VALUES (301, 3)"), "");
    EXPECT_THAT(psql("UPDATE claim SET document_id = 1 WHERE id = 301"), AnyOf(HasSubstr("RL101"), HasSubstr("23503")));
    EXPECT_THAT(psql("UPDATE document SET status = 'rejected' WHERE id = 3"),
                AnyOf(HasSubstr("RL103"), HasSubstr("23514")))
        << "a live child is under it";
    EXPECT_EQ(psql("UPDATE claim SET reviewed_at = now()"), "") << "what is no concern of the rule goes on";
    EXPECT_EQ(violations(), "0");
    const LifecycleStatus now = status();
    EXPECT_EQ(now.has_trigger, GetParam() == LifecycleRule::trigger);
    EXPECT_EQ(now.has_declarative, GetParam() == LifecycleRule::declarative);
    EXPECT_EQ(now.retired_parents, 2);
    EXPECT_EQ(now.live_children, 1);
    EXPECT_EQ(now.violations, 0);
}

TEST_P(LifecycleInTheDatabase, IsNotInstalledWhereTheRuleIsBrokenByThenAndGoesAwayWithoutATrace) {
    server_.execute("UPDATE document SET status = 'rejected' WHERE id = 1");
    EXPECT_EQ(status().violations, 2);
    EXPECT_THROW(install(GetParam()), ServerError);
    server_.execute("UPDATE claim SET status = 'rejected' WHERE document_id = 1");
    const std::string shape =
        "SELECT (SELECT count(*) FROM pg_attribute WHERE NOT attisdropped) || ' ' || (SELECT count(*) FROM pg_trigger)"
        " || ' ' || (SELECT count(*) FROM pg_constraint) || ' ' || (SELECT count(*) FROM pg_proc)";
    const std::string before = value(shape);
    install(GetParam());
    EXPECT_NE(value(shape), before);
    uninstall(GetParam());
    EXPECT_EQ(value(shape), before);
    uninstall(GetParam());
}

/// Four scripts at once: retire, revive, add, confirm and move, each with what people write in plain SQL.
TEST_P(LifecycleInTheDatabase, HoldsAgainstPgbench) {
    install(GetParam());
    server_.execute("INSERT INTO document SELECT n FROM generate_series(4, 12) AS n");
    const test::ScratchFolder folder;
    const auto script = [&](const std::string& name, const std::string& text) {
        const std::string path = (folder.path() / name).string();
        std::ofstream(path) << "\\set d random(1, 12)\n\\set e random(1, 12)\n\\set c random(1000, 1300)\n" << text;
        return path;
    };
    // Each statement is a transaction of its own, or a block that a server-side function wraps: an error of the rule is
    // an answer, and pgbench would end its client at it.
    server_.execute(R"sql(
        CREATE PROCEDURE attempt(VARIADIC statements text[]) LANGUAGE plpgsql AS $$
        DECLARE
            one text;
        BEGIN
            FOREACH one IN ARRAY statements LOOP EXECUTE one; END LOOP;
            SET CONSTRAINTS ALL IMMEDIATE;
        EXCEPTION WHEN SQLSTATE 'RL101' OR SQLSTATE 'RL103' OR foreign_key_violation OR check_violation
                       OR lock_not_available OR deadlock_detected THEN
            NULL;
        END $$)sql");
    const std::string add = script("add", "CALL attempt(format('INSERT INTO claim (document_id) VALUES (%s)', :d));\n");
    const std::string confirm =
        script("confirm", "CALL attempt(format($$UPDATE claim SET status = 'confirmed' WHERE id = %s$$, :c));\n");
    const std::string move =
        script("move", "CALL attempt(format('UPDATE claim SET document_id = %s WHERE id = %s', :d, :c));\n");
    const std::string retire_script =
        script("retire",
               "CALL attempt(format('SELECT FROM document WHERE id = %s FOR UPDATE', :d),"
               " format($$UPDATE claim SET status = 'rejected' WHERE document_id = %s AND status IN ('candidate', "
               "'confirmed')$$,"
               " :d), format($$UPDATE document SET status = 'rejected' WHERE id = %s$$, :d));\n");
    const std::string revive =
        script("revive", "CALL attempt(format($$UPDATE document SET status = 'open' WHERE id = %s$$, :e));\n");
    const std::string careless =
        script("careless", "CALL attempt(format($$UPDATE document SET status = 'rejected' WHERE id = %s$$, :e));\n");
    const test::ProcessResult result = test::run_process({.arguments = {"/usr/lib/postgresql/15/bin/pgbench",
                                                                        "-n",
                                                                        "-c",
                                                                        "8",
                                                                        "-j",
                                                                        "2",
                                                                        "-t",
                                                                        "300",
                                                                        "-f",
                                                                        add + "@4",
                                                                        "-f",
                                                                        confirm + "@4",
                                                                        "-f",
                                                                        move + "@2",
                                                                        "-f",
                                                                        retire_script + "@2",
                                                                        "-f",
                                                                        revive + "@2",
                                                                        "-f",
                                                                        careless + "@1",
                                                                        server_.connection()},
                                                          .input = {},
                                                          .environment = {},
                                                          .folder = {},
                                                          .user = {}},
                                                         120s);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_THAT(result.output, HasSubstr("2400/2400"));
    EXPECT_EQ(violations(), "0");
    EXPECT_EQ(status().violations, 0);
    EXPECT_GT(std::stoi(value("SELECT count(*) FROM claim WHERE status = 'rejected'")), 0);
}

class LifecycleTrigger : public LifecycleRuleTest {};

TEST_F(LifecycleTrigger, NamesTheParentInItsDetail) {
    install(LifecycleRule::trigger);
    static_cast<void>(retire(1));
    const auto refused = fault_of<ServerError>([&] {
        database_.transact({}, [](Transaction& transaction) {
            transaction.execute({"test.insert", "INSERT INTO claim (document_id) VALUES (1)"});
        });
    });
    EXPECT_EQ(refused->sqlstate(), "RL101");
    EXPECT_EQ(refused->recovery(), Recovery::give_up);
    EXPECT_THAT(refused->report().detail, HasSubstr("\"document\" (\"id\") = (1)"));
}

TEST_F(LifecycleTrigger, DoesNotWaitWhereItHoldsTheChildAndATwinThatWaitsDeadlocks) {
    install(LifecycleRule::trigger);
    const auto confirm_against_retirement = [&] {
        // The retirement holds the parent and comes for the child; the confirmation holds the child and asks for the
        // parent.
        std::atomic<bool> parent_held = false;
        std::string told;
        std::jthread confirmer;
        try {
            beside_.transact({.lock_wait_max = 20s, .attempts_max = 1}, [&](Transaction& retirer) {
                retirer.execute({"test.lock", "SELECT FROM document WHERE id = 1 FOR UPDATE"});
                confirmer = std::jthread([&] {
                    try {
                        database_.transact({.lock_wait_max = 20s, .attempts_max = 1}, [](Transaction& transaction) {
                            transaction.execute(
                                {"test.confirm", "UPDATE claim SET status = 'confirmed' WHERE id = 101", true});
                        });
                    } catch (const ServerError& refused) {
                        told += refused.sqlstate();
                    }
                    parent_held = true;
                });
                // Until it has answered, or waits for the parent.
                while (!parent_held && value("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                                             " AND wait_event_type = 'Lock'") == "0") {
                    std::this_thread::sleep_for(2ms);
                }
                retirer.execute({"test.cascade", "UPDATE claim SET status = 'rejected' WHERE document_id = 1", true});
            });
        } catch (const ServerError& refused) {
            told += refused.sqlstate();
        }
        confirmer.join();
        return told;
    };
    EXPECT_EQ(confirm_against_retirement(), "55P03");
    server_.execute(R"sql(
        UPDATE claim SET status = 'candidate' WHERE id = 101;
        DO $$ DECLARE source text; BEGIN
            SELECT replace(pg_get_functiondef(oid), 'FOR SHARE NOWAIT', 'FOR SHARE') INTO source
              FROM pg_proc WHERE proname LIKE 'rowlock_open_%';
            EXECUTE source;
        END $$)sql");
    EXPECT_EQ(confirm_against_retirement(), "40P01");
}

TEST_F(LifecycleTrigger, RefusesAParentThatRowLevelSecurityHidesAndATwinWithoutThatLetsTheChildIn) {
    const test::TestLogin writer = server_.add_login("writer");
    const std::string role = "\"" + writer.role + "\"";
    server_.execute("GRANT SELECT ON document TO " + role + "; GRANT SELECT, INSERT, UPDATE ON claim TO " + role +
                    "; GRANT UPDATE ON document TO " + role);
    server_.execute("ALTER TABLE document ENABLE ROW LEVEL SECURITY; CREATE POLICY reading ON document FOR SELECT TO " +
                    role + " USING (true)");
    Database as_writer(server_.connection_as(writer));
    const auto seen_for_share = [&] {
        return as_writer.transact({}, [](Transaction& transaction) {
            return transaction.execute({"test.share", "SELECT status FROM document WHERE id = 1 FOR SHARE"}).size();
        });
    };
    EXPECT_EQ(seen_for_share(), 0U) << "a SELECT policy alone: FOR SHARE gives no row, and a naive guard no refusal";
    install(LifecycleRule::trigger);
    const auto insert = [&](int document) {
        as_writer.transact({}, [&](Transaction& transaction) {
            transaction.execute({"test.insert", "INSERT INTO claim (document_id) VALUES ($1)"}, {document});
        });
    };
    insert(1);
    static_cast<void>(retire(1));
    EXPECT_EQ(fault_of<ServerError>([&] { insert(1); })->sqlstate(), "RL101") << "it runs as its owner, who sees all";
    // As the writer it sees nothing, and refuses all the same.
    server_.execute(
        "DO $$ DECLARE name text; BEGIN SELECT oid::regprocedure INTO name FROM pg_proc WHERE proname LIKE"
        " 'rowlock_open_%'; EXECUTE 'ALTER FUNCTION ' || name || ' SECURITY INVOKER'; END $$;"
        "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO " +
        role);
    EXPECT_EQ(fault_of<ServerError>([&] { insert(2); })->sqlstate(), "RL102");
}

TEST_F(LifecycleTrigger, RefusesToRetireOnASnapshotThatIsOlderThanTheLock) {
    install(LifecycleRule::trigger);
    EXPECT_THAT(
        psql("BEGIN ISOLATION LEVEL REPEATABLE READ; UPDATE document SET status = 'rejected' WHERE id = 3; COMMIT"),
        HasSubstr("RL103"));
}

class LifecycleDeclaration : public LifecycleRuleTest {};

TEST_F(LifecycleDeclaration, CarriesAFlagAndATwinThatCarriesTheWordIsPassedByNull) {
    server_.execute(
        "CREATE TABLE twin_parent (id int PRIMARY KEY, status text, UNIQUE (id, status));"
        "CREATE TABLE twin_child (id int PRIMARY KEY, parent int NOT NULL REFERENCES twin_parent, parent_status text,"
        " status text, FOREIGN KEY (parent, parent_status) REFERENCES twin_parent (id, status) ON UPDATE CASCADE,"
        " CHECK (NOT (parent_status = 'rejected' AND status = 'confirmed')));"
        "INSERT INTO twin_parent VALUES (1, 'rejected'); INSERT INTO twin_child VALUES (1, 1, NULL, 'confirmed')");
    EXPECT_EQ(value("SELECT count(*) FROM twin_child"), "1") << "a live child under a retired parent";
    install(LifecycleRule::declarative);
    static_cast<void>(retire(1));
    for (const char* const flag : {"NULL", "false", "true"}) {
        EXPECT_NE(psql(std::string("INSERT INTO claim (document_id, status, rowlock_parent_retired) VALUES (1, "
                                   "'confirmed', ") +
                       flag + ")"),
                  "");
    }
    EXPECT_EQ(violations(), "0");
}

class LifecycleRuleNames : public LifecycleRuleTest {};

TEST_F(LifecycleRuleNames, GoWithNamesMeantToBreakIt) {
    server_.execute(R"sql(
        CREATE SCHEMA "Ac""me; --";
        CREATE TABLE "Ac""me; --"."$rowlock$; DROP TABLE claim; --" ("I'd $_" int PRIMARY KEY, "st""at" text);
        CREATE TABLE "Ac""me; --"."c{0}" (id int PRIMARY KEY, "p{1}" int REFERENCES "Ac""me; --"."$rowlock$; DROP TABLE claim; --",
                                          status text);
        CREATE INDEX ON "Ac""me; --"."c{0}" ("p{1}");
        INSERT INTO "Ac""me; --"."$rowlock$; DROP TABLE claim; --" VALUES (1, 'o\k''ay')
    )sql");
    LifecycleDescription awkward{
        .parent = {.schema = "Ac\"me; --", .table = "$rowlock$; DROP TABLE claim; --", .status = "st\"at"},
        .child = {.schema = "Ac\"me; --", .table = "c{0}"},
        .open = "o\\k'ay",
        .retired = "$rowlock$ 're\\j'; --",
        .live_children = {"li{v}e'", "\\\"x\","}};
    documents_.emplace(database_, awkward);
    for (const LifecycleRule rule : {LifecycleRule::trigger, LifecycleRule::declarative}) {
        install(rule);
        const auto insert = [&](int id, const std::string& word) {
            database_.transact({}, [&](Transaction& transaction) {
                transaction.execute(
                    {"test.insert", "INSERT INTO \"Ac\"\"me; --\".\"c{0}\" (id, \"p{1}\", status) VALUES ($1, 1, $2)"},
                    {id, word});
            });
        };
        const int first = rule == LifecycleRule::trigger ? 1 : 11;
        insert(first, awkward.live_children[0]);
        insert(first + 1, awkward.live_children[1]);
        EXPECT_EQ(std::get<Cascade>(retire(1)).children.size(), 2U);
        EXPECT_THROW(insert(first + 2, awkward.live_children[0]), ServerError);
        EXPECT_TRUE(std::holds_alternative<Revived>(
            beside_.transact({}, [&](Transaction& transaction) { return documents().revive(transaction, 1); })));
        uninstall(rule);
    }
    EXPECT_EQ(value("SELECT count(*) FROM claim"), "4");
}

}  // namespace
}  // namespace rowlock
