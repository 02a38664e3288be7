// What a login that is a member of rowlock_app, and of nothing else, can't do: to its own tenant, to another's, to the
// log.
#include <gmock/gmock.h>

#include "postgres/two_tenants.hpp"

namespace rowlock {
namespace {

using testing::HasSubstr;

using Privileges = TwoTenants;

TEST_F(Privileges, LetTheAppAppendTakeNumbersLockItsStateRowAndRead) {
    EXPECT_EQ(app("SELECT last_seq FROM rowlock.tenant_seq WHERE tenant_id = 'A' FOR UPDATE").rows, "SELECT 1:1;");
    EXPECT_EQ(app(append_sql("A", 2, "01", "02")).sqlstate, "");
    EXPECT_EQ(app("SELECT seq FROM rowlock.audit_log ORDER BY seq").rows, "SELECT 2:1;2;");
    EXPECT_EQ(app("SELECT data->>'a' FROM rowlock.audit_entries").rows, "SELECT 2:1;1;");
    EXPECT_EQ(app("SELECT data FROM rowlock.audit_log WHERE seq = 1").rows, "SELECT 1:{\"a\":  1};");
    EXPECT_EQ(app("SELECT (extract(epoch FROM recorded_at) * 1000000)::bigint FROM rowlock.audit_log").rows,
              "SELECT 2:1700000000123456;1700000000123456;");
    EXPECT_EQ(app("SELECT rowlock.next_number('A', 'invoice')").rows, "SELECT 1:2;");
    EXPECT_EQ(app("SELECT count(*) FROM rowlock.ledger").rows, "SELECT 1:1;");
}

TEST_F(Privileges, RefuseToChangeOrRemoveAnEntry) {
    expect_refused({
        {"UPDATE rowlock.audit_log SET actor = 'you'", "42501"},
        {"DELETE FROM rowlock.audit_log", "42501"},
        {"TRUNCATE rowlock.audit_log", "42501"},
        {"MERGE INTO rowlock.audit_log USING (VALUES (1)) AS v (s) ON seq = s WHEN MATCHED THEN DELETE", "42501"},
        {"UPDATE rowlock.audit_entries SET actor = 'you'", "42501"},
        {"DELETE FROM rowlock.audit_entries", "42501"},
        {"INSERT INTO rowlock.audit_log SELECT * FROM rowlock.audit_log", "42501"},
        {"SELECT * FROM rowlock.audit_log FOR UPDATE", "42501"},
        {"SELECT * FROM rowlock.audit_log FOR KEY SHARE", "42501"},
        {"ALTER TABLE rowlock.audit_log DISABLE TRIGGER only_grows", "42501"},
        {"ALTER TABLE rowlock.audit_log NO FORCE ROW LEVEL SECURITY", "42501"},
        {"DROP TRIGGER only_grows ON rowlock.audit_log", "42501"},
        {"DROP TABLE rowlock.audit_log", "42501"},
        {"CREATE TRIGGER mine BEFORE INSERT ON rowlock.audit_log EXECUTE FUNCTION "
         "pg_catalog.suppress_redundant_updates_trigger()",
         "42501"},
        {"CREATE RULE mine AS ON INSERT TO rowlock.audit_log DO INSTEAD NOTHING", "42501"},
        {"CREATE POLICY mine ON rowlock.audit_log USING (true)", "42501"},
        {"CREATE TABLE rowlock.mine (a int)", "42501"},
        {"CREATE TEMP TABLE child (tenant_id text, seq bigint, FOREIGN KEY (tenant_id, seq) REFERENCES "
         "rowlock.audit_log)",
         "42P16"},
        {"SET session_replication_role = replica", "42501"},
        {"SET ROLE rowlock_owner", "42501"},
        {"SELECT rowlock.refuse_entry('A', 1, 'k1')", "42501"},
        {"SELECT rowlock.refuse_tenant('A')", "42501"},
    });
}

TEST_F(Privileges, RefuseToMoveTheHeadByHand) {
    expect_refused({
        {"UPDATE rowlock.tenant_seq SET last_seq = 9223372036854775807", "42501"},
        {"UPDATE rowlock.tenant_seq SET head_mac = NULL", "42501"},
        {"UPDATE rowlock.tenant_seq SET key_id = 'k2'", "42501"},
        {"UPDATE rowlock.tenant_seq SET tenant_id = 'C'", "42501"},
        {"UPDATE rowlock.tenant_seq SET lock_dummy = true", "23514"},
        {"DELETE FROM rowlock.tenant_seq", "42501"},
        {"TRUNCATE rowlock.tenant_seq", "42501"},
        {"INSERT INTO rowlock.tenant_seq (tenant_id, last_seq) VALUES ('A', 7)", "42501"},
        {"INSERT INTO rowlock.tenant_seq (tenant_id) VALUES ('A') ON CONFLICT (tenant_id) DO UPDATE SET last_seq = 7",
         "42501"},
        {"INSERT INTO rowlock.sequence_counter (tenant_id, name) VALUES ('A', 'x')", "42501"},
        {"UPDATE rowlock.sequence_counter SET last_taken = 0", "42501"},
        {"DELETE FROM rowlock.sequence_counter", "42501"},
        {"INSERT INTO rowlock.quota (tenant_id, name, used, cap) VALUES ('A', 'x', 1, 1)", "42501"},
        {"UPDATE rowlock.quota SET used = -1", "23514"},
        {"UPDATE rowlock.quota SET cap = -1", "23514"},
        {"UPDATE rowlock.quota SET name = 'x'", "42501"},
        {"DELETE FROM rowlock.quota", "42501"},
        {"INSERT INTO rowlock.claimed_table VALUES ('x', 'pg_class', '{a}', 'k', 'pg_class')", "42501"},
        {"UPDATE rowlock.claimed_table SET used_keys = 'pg_class'", "42501"},
        {"UPDATE rowlock.ledger SET ledger_id = gen_random_uuid()", "42501"},
        {"DELETE FROM rowlock.schema_version", "42501"},
        {"SELECT rowlock.set_next_number('A', 'invoice', 9223372036854775807)", "22023"},
    });
}

TEST_F(Privileges, RefuseToLockATableAgainstOthers) {
    std::vector<Refusal> refusals;
    for (const std::string table :
         {"tenant_seq", "audit_log", "sequence_counter", "quota", "claimed_table", "ledger", "schema_version"}) {
        for (const std::string mode : {"ROW SHARE", "ROW EXCLUSIVE", "SHARE UPDATE EXCLUSIVE", "SHARE",
                                       "SHARE ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE"}) {
            refusals.push_back({"LOCK TABLE rowlock." + table + " IN " + mode + " MODE", "42501"});
        }
    }
    expect_refused(refusals);
}

TEST_F(Privileges, ShowAndTakeNothingWithoutATenant) {
    for (const std::string table : {"tenant_seq", "audit_log", "audit_entries", "sequence_counter", "quota"}) {
        EXPECT_EQ(app_without_tenant("SELECT count(*) FROM rowlock." + table).rows, "SELECT 1:0;");
    }
    EXPECT_EQ(app_without_tenant("INSERT INTO rowlock.tenant_seq (tenant_id) VALUES ('A')").sqlstate, "42501");
    EXPECT_EQ(app_without_tenant("INSERT INTO rowlock.tenant_seq (tenant_id) VALUES ('')").sqlstate, "23514");
    EXPECT_EQ(app_without_tenant(append_sql("A", 2, "01", "02")).sqlstate, "42501");
    EXPECT_EQ(app_without_tenant(append_sql("", 1, "01", "02")).sqlstate, "42501");
    for (const std::string tenant : {"'A'", "''", "NULL"}) {
        for (const std::string& call : {"next_number(" + tenant + ", 'invoice')", "reserve(" + tenant + ", 'seats')",
                                        "release(" + tenant + ", 'seats')"}) {
            const Answer answer = app_without_tenant("SELECT rowlock." + call);
            EXPECT_EQ(answer.sqlstate, "42501");
            EXPECT_THAT(answer.detail, HasSubstr("not set"));
        }
    }
}

/// NULL, and not '' as behind a transaction that had one.
TEST_F(Privileges, ShowNothingWhereTheSettingWasNeverMade) {
    for (const std::string table : {"tenant_seq", "audit_log", "audit_entries", "sequence_counter", "quota",
                                    "audit_staged", "audit_quarantined"}) {
        EXPECT_EQ(server_.value("SET ROLE rowlock_app; SELECT format('%s %s', count(*),"
                                "   current_setting('rowlock.tenant', true) IS NULL) FROM rowlock." +
                                table),
                  "0 t")
            << table;
    }
}

TEST_F(Privileges, TellASuperuserWithoutATenantWhatToDo) {
    try {
        superuser_.transact({},
                            [](Transaction& transaction) { run(transaction, "SELECT rowlock.next_number('A', 'x')"); });
        FAIL() << "there is no tenant";
    } catch (const ServerError& error) {
        EXPECT_EQ(error.sqlstate(), "42501");
        EXPECT_THAT(error.report().hint, HasSubstr("set_config('rowlock.tenant'"));
    }
}

TEST_F(Privileges, AnswerTheSameOfATenantThatIsThereAndOfOneThatIsNot) {
    const std::vector<std::string> questions{
        "SELECT seq FROM rowlock.audit_log WHERE tenant_id = 'B'",
        "SELECT seq FROM rowlock.audit_entries WHERE tenant_id = 'B'",
        "SELECT last_taken FROM rowlock.sequence_counter WHERE tenant_id = 'B'",
        "SELECT last_seq FROM rowlock.tenant_seq WHERE tenant_id = 'B' FOR UPDATE NOWAIT",
        "UPDATE rowlock.tenant_seq SET lock_dummy = NULL WHERE tenant_id = 'B'",
        "INSERT INTO rowlock.tenant_seq (tenant_id) VALUES ('B')",
        "INSERT INTO rowlock.tenant_seq (tenant_id) VALUES ('B') ON CONFLICT DO NOTHING",
        "INSERT INTO rowlock.tenant_seq (tenant_id) VALUES ('B') ON CONFLICT (tenant_id) DO UPDATE SET lock_dummy = "
        "NULL",
        append_sql("B", 1, "00", "01"),
        append_sql("B", 2, "01", "02"),
        "SELECT rowlock.next_number('B', 'invoice')",
        "SELECT rowlock.lock_counter('B', 'invoice')",
        "SELECT rowlock.set_next_number('B', 'invoice', 1)",
        "SELECT used FROM rowlock.quota WHERE tenant_id = 'B' FOR UPDATE NOWAIT",
        "UPDATE rowlock.quota SET used = 0 WHERE tenant_id = 'B'",
        "INSERT INTO rowlock.quota (tenant_id, name, cap) VALUES ('B', 'seats', 1) ON CONFLICT DO NOTHING",
        "SELECT rowlock.reserve('B', 'seats')",
        "SELECT rowlock.release('B', 'seats')",
        "SELECT count(*) FROM rowlock.audit_log WHERE tenant_id = 'B' AND 1 / (seq - 1) > 0",
    };
    const std::string before = everything();
    for (const std::string& question : questions) {
        Answer there = app(question);
        const Answer missing = app(replaced(question, "'B'", "'Z'"));
        there.message = replaced(there.message, "'B'", "'Z'");
        EXPECT_EQ(there, missing) << question << "\n" << there.message << "\n" << missing.message;
    }
    EXPECT_EQ(everything(), before);
}

TEST_F(Privileges, DoNotLetAnotherTenantsLockBeFelt) {
    Database holding(server_.connection_as(login_));
    holding.transact({.tenant = TenantId("B")}, [&](Transaction& holder) {
        run(holder, "SELECT 1 FROM rowlock.tenant_seq WHERE tenant_id = 'B' FOR UPDATE");
        run(holder, "SELECT rowlock.next_number('B', 'invoice')");
        EXPECT_EQ(app("SELECT 1 FROM rowlock.tenant_seq WHERE tenant_id = 'B' FOR UPDATE NOWAIT").rows, "SELECT 0:");
        EXPECT_EQ(app("SELECT rowlock.next_number('B', 'invoice')").sqlstate, "42501");
        EXPECT_EQ(app(append_sql("A", 2, "01", "02")).sqlstate, "");
        EXPECT_EQ(app("SELECT rowlock.next_number('A', 'invoice')").rows, "SELECT 1:2;");
    });
}

TEST_F(Privileges, HoldWhenRowSecurityIsSwitchedOff) {
    EXPECT_THROW(app_->transact({.tenant = TenantId("A")},
                                [](Transaction& transaction) {
                                    run(transaction, "SET LOCAL row_security = off");
                                    run(transaction, "SELECT * FROM rowlock.audit_log");
                                }),
                 ServerError);
}

/// Everything that the functions call unqualified, made anew where the caller's search_path finds it first. Each shadow
/// throws when it is run as the owner of our functions: there it could do whatever the owner may.
constexpr Statement cast_shadows{"test.shadows", R"(
    GRANT USAGE ON SCHEMA evil TO PUBLIC;
    CREATE FUNCTION evil.tell() RETURNS void LANGUAGE plpgsql AS
        $$ BEGIN IF current_user = 'rowlock_owner' THEN RAISE 'a shadow ran as the owner'; END IF; END $$;
    CREATE FUNCTION evil.current_setting(text, boolean) RETURNS text LANGUAGE plpgsql AS
        $$ BEGIN PERFORM evil.tell(); RETURN 'B'; END $$;
    CREATE FUNCTION evil.equal(text, text) RETURNS boolean LANGUAGE plpgsql AS
        $$ BEGIN PERFORM evil.tell(); RETURN true; END $$;
    CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.equal);
    CREATE FUNCTION evil.minus(bigint, integer) RETURNS bigint LANGUAGE plpgsql AS
        $$ BEGIN PERFORM evil.tell(); RETURN 1; END $$;
    CREATE OPERATOR evil.- (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = evil.minus);
    CREATE OPERATOR evil.+ (LEFTARG = bigint, RIGHTARG = integer, FUNCTION = evil.minus);
    CREATE TEMP TABLE tenant_seq (tenant_id text, last_seq bigint, head_mac bytea, key_id text);
    CREATE TEMP TABLE audit_log (tenant_id text);
    CREATE TEMP TABLE sequence_counter (tenant_id text, name text, first_number bigint, last_taken bigint);
    CREATE TEMP TABLE quota (tenant_id text, name text, used bigint, cap bigint);
    SET LOCAL search_path = pg_temp, evil, pg_catalog;)"};

TEST_F(Privileges, AreNotFooledByNamesThatShadowOurs) {
    server_.execute("CREATE SCHEMA evil AUTHORIZATION " + login_.role);
    app_->transact({.tenant = TenantId("A")}, [](Transaction& transaction) {
        transaction.execute_script(cast_shadows);
        EXPECT_TRUE(run(transaction, "SELECT text 'x' = text 'y'").only().boolean(0)) << "the shadow works outside";
        run(transaction, append_sql("A", 2, "01", "02"));
        EXPECT_EQ(run(transaction, "SELECT rowlock.next_number('A', 'invoice')").only().integer(0), 2);
        EXPECT_EQ(run(transaction, "SELECT rowlock.set_next_number('A', 'invoice', 9)").only().integer(0), 9);
        EXPECT_TRUE(run(transaction, "SELECT rowlock.reserve('A', 'seats', 3)").only().boolean(0));
        EXPECT_TRUE(run(transaction, "SELECT rowlock.release('A', 'seats')").only().boolean(0));
        EXPECT_EQ(run(transaction, "SELECT rowlock.advisory_key('a')").only().integer(0), -896040686);
        EXPECT_EQ(run(transaction, "SELECT used FROM rowlock.quota").only().integer(0), 2);
        EXPECT_EQ(run(transaction, "SELECT count(*) FROM rowlock.audit_log").only().integer(0), 2);
        for (const std::string table : {"tenant_seq", "audit_log", "sequence_counter", "quota"}) {
            EXPECT_EQ(run(transaction, "SELECT count(*) FROM pg_temp." + table).only().integer(0), 0);
        }
        try {
            transaction.savepoint([&] { run(transaction, append_sql("B", 2, "01", "02")); });
            ADD_FAILURE() << "appended for another tenant";
        } catch (const ServerError& error) {
            EXPECT_EQ(error.sqlstate(), "42501");
        }
    });
}

TEST_F(Privileges, HoldForTheOwnerAndASuperuserByTrigger) {
    Database owner({.connection = server_.connection(), .role = "rowlock_owner"});
    const std::string before = everything();
    for (Database* const database : {&owner, &superuser_}) {
        for (const std::string sql :
             {"UPDATE rowlock.audit_log SET actor = 'you'", "DELETE FROM rowlock.audit_log",
              "DELETE FROM rowlock.audit_log WHERE false", "TRUNCATE rowlock.audit_log",
              "DELETE FROM rowlock.tenant_seq", "TRUNCATE rowlock.tenant_seq",
              "UPDATE rowlock.ledger SET ledger_id = gen_random_uuid()", "DELETE FROM rowlock.ledger",
              "TRUNCATE rowlock.ledger", "TRUNCATE rowlock.tenant_seq, rowlock.sequence_counter CASCADE"}) {
            EXPECT_EQ(ask(*database, "A", sql).sqlstate, "RL002") << sql;
        }
    }
    EXPECT_EQ(everything(), before);
    EXPECT_EQ(ask(owner, "A", "SELECT count(*) FROM rowlock.audit_log").rows, "SELECT 1:1;");
    EXPECT_EQ(ask(owner, std::nullopt, "SELECT count(*) FROM rowlock.audit_log").rows, "SELECT 1:0;");
}

TEST_F(Privileges, LetTheAuditorReadAllTenantsAndWriteNothing) {
    Database auditor({.connection = server_.connection(), .role = "rowlock_auditor"});
    for (const std::string table : {"tenant_seq", "audit_log", "audit_entries", "sequence_counter", "quota"}) {
        EXPECT_EQ(rows_of(auditor, "SELECT tenant_id FROM rowlock." + table + " ORDER BY 1"), "SELECT 2:A;B;");
    }
    for (const std::string& sql :
         {std::string("INSERT INTO rowlock.tenant_seq (tenant_id) VALUES ('A')"), append_sql("A", 2, "01", "02"),
          std::string("SELECT rowlock.next_number('A', 'invoice')"),
          std::string("SELECT rowlock.reserve('A', 'seats')"),
          std::string("SELECT 1 FROM rowlock.tenant_seq FOR UPDATE"), std::string("DELETE FROM rowlock.audit_log")}) {
        EXPECT_EQ(ask(auditor, "A", sql).sqlstate, "42501") << sql;
    }
}

TEST_F(Privileges, LetTheBackupReadAllTenantsAndWriteNothing) {
    Database backup({.connection = server_.connection(), .role = "rowlock_backup"});
    EXPECT_EQ(rows_of(backup, "SELECT tenant_id FROM rowlock.audit_log ORDER BY 1"), "SELECT 2:A;B;");
    EXPECT_EQ(ask(backup, "A", append_sql("A", 2, "01", "02")).sqlstate, "42501");
    EXPECT_EQ(ask(backup, "A", "DELETE FROM rowlock.audit_log").sqlstate, "42501");
}

TEST_F(Privileges, GiveAStrangerTheVersionAndNothingElse) {
    Database stranger(server_.connection_as(server_.add_login("stranger")));
    EXPECT_EQ(ask(stranger, "A", "SELECT count(*) > 0 FROM rowlock.schema_version").rows, "SELECT 1:t;");
    for (const std::string table :
         {"ledger", "tenant_seq", "audit_log", "audit_entries", "sequence_counter", "quota", "claimed_table"}) {
        EXPECT_EQ(ask(stranger, "A", "SELECT * FROM rowlock." + table).sqlstate, "42501");
    }
    EXPECT_EQ(ask(stranger, "A", append_sql("A", 2, "01", "02")).sqlstate, "42501");
    EXPECT_EQ(ask(stranger, "A", "SELECT rowlock.next_number('A', 'x')").sqlstate, "42501");
    EXPECT_EQ(ask(stranger, "A", "SELECT rowlock.reserve('A', 'x')").sqlstate, "42501");
    EXPECT_EQ(ask(stranger, "A", "SELECT rowlock.claim('x', '{1}')").sqlstate, "42501");
}

}  // namespace
}  // namespace rowlock
