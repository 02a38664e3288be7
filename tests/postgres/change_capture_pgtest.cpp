// What a tracked table leaves for each kind of statement, and what it does not.
#include "postgres/capture_fixture.hpp"

namespace rowlock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class ChangeCapture : public CaptureTest {
  protected:
    ChangeCapture() {
        run("CREATE TABLE item (id int PRIMARY KEY, tenant_id text NOT NULL, note text, amount numeric, doc json,"
            "                   place point, stamp timestamptz, loud text GENERATED ALWAYS AS (upper(note)) STORED)");
    }
    void begin(TrackedTable table = {.table = "item", .tenant_column = "tenant_id"}) {
        EXPECT_EQ(track_table(table), TrackOutcome::tracked);
    }
};

TEST_F(ChangeCapture, StagesOneEntryForEachRowThatReallyChanged) {
    begin();
    EXPECT_THAT(
        captured("INSERT INTO item (id, tenant_id, note) VALUES (1, 'a', 'x'), (2, 'b', NULL)"),
        ElementsAre(
            "a row.insert public.item(1) {\"key\":{\"id\":1},\"new\":{\"id\":1,\"tenant_id\":\"a\",\"note\":\"x\","
            "\"amount\":null,\"doc\":null,\"place\":null,\"stamp\":null,\"loud\":\"X\"}}",
            HasSubstr("b row.insert public.item(2) ")));
    EXPECT_THAT(captured("UPDATE item SET note = 'y'"),
                ElementsAre("a row.update public.item(1) {\"key\":{\"id\":1},\"old\":{\"note\":\"x\",\"loud\":\"X\"},"
                            "\"new\":{\"note\":\"y\",\"loud\":\"Y\"}}",
                            "b row.update public.item(2) {\"key\":{\"id\":2},\"old\":{\"note\":null,\"loud\":null},"
                            "\"new\":{\"note\":\"y\",\"loud\":\"Y\"}}"));
    EXPECT_THAT(captured("UPDATE item SET note = CASE id WHEN 1 THEN 'z' ELSE note END"), SizeIs(1))
        << "one really changed";
    EXPECT_THAT(captured("DELETE FROM item WHERE id = 2"),
                ElementsAre(HasSubstr(
                    "b row.delete public.item(2) {\"key\":{\"id\":2},\"old\":{\"id\":2,\"tenant_id\":\"b\"")));
    EXPECT_THAT(captured("UPDATE item SET note = 'q' WHERE id = 99"), IsEmpty());
}

TEST_F(ChangeCapture, TellsNullFromAValueBothWaysAndNothingFromNothing) {
    begin();
    run("INSERT INTO item (id, tenant_id, note) VALUES (1, 'a', NULL), (2, 'a', 'x'), (3, 'a', NULL)");
    staged();
    // One row and many: each has a statement of its own.
    for (const std::string where : {" WHERE id = 1", ""}) {
        run("UPDATE item SET note = NULL");
        staged();
        EXPECT_THAT(captured("UPDATE item SET note = NULL" + where), IsEmpty());
        EXPECT_THAT(captured("UPDATE item SET note = 'v'" + where).front(), HasSubstr("\"old\":{\"note\":null,"));
        EXPECT_THAT(captured("UPDATE item SET note = 'v'" + where), IsEmpty());
        EXPECT_THAT(captured("UPDATE item SET note = NULL" + where).front(), HasSubstr("\"new\":{\"note\":null,"));
    }
}

TEST_F(ChangeCapture, SeesWhatIsEqualButWrittenOtherwise) {
    run("CREATE EXTENSION citext; CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = "
        "false);"
        "CREATE TABLE kind (id int PRIMARY KEY, t int NOT NULL, numeric numeric, float float8, json json, jsonb jsonb,"
        "                   interval interval, text text COLLATE blind, char bpchar, point point, numerics numeric[], "
        "xml xml, citext citext)");
    begin({.table = "kind", .tenant_column = "t"});
    run("INSERT INTO kind VALUES (1, 7)");
    struct Pair {
        std::string column, one, other;
    };
    for (const auto& [column, one, other] : std::vector<Pair>{{"numeric", "1.0", "1.00"},
                                                              {"float", "0", "-0"},
                                                              {"json", "{\"a\": 1}", "{\"a\":1}"},
                                                              {"jsonb", "[1.0]", "[1.00]"},
                                                              {"interval", "1 day", "24:00:00"},
                                                              {"text", "a", "A"},
                                                              {"char", "a", "a "},
                                                              {"point", "(0,1)", "(0,2)"},
                                                              {"numerics", "{1.0}", "{1.00}"},
                                                              {"xml", "<a/>", "<b/>"},
                                                              {"citext", "a", "A"}}) {
        const auto set = [&, name = column](const std::string& to) {
            return "UPDATE kind SET \"" + name + "\" = '" + to + "'";
        };
        run(set(one));
        staged();
        EXPECT_THAT(captured(set(one)), IsEmpty()) << column;
        const std::vector<std::string> lines = captured(set(other));
        ASSERT_THAT(lines, SizeIs(1)) << column;
        EXPECT_THAT(lines.front(), HasSubstr("\"old\":{\"" + column + "\":")) << column;
    }
}

TEST_F(ChangeCapture, KeepsNumbersTextsAndSettingsExact) {
    run("CREATE TABLE exact (id bigint PRIMARY KEY, t text NOT NULL, d json, f float8, at timestamptz[], b bytea)");
    begin({.table = "exact", .tenant_column = "t"});
    run("SET LOCAL extra_float_digits = -3; SET LOCAL datestyle = 'SQL, DMY'; SET LOCAL bytea_output = 'escape';"
        "INSERT INTO exact VALUES (9007199254740993, 'a', '{\"a\":\"\\u0000\", \"a\":1e999}', 0.1::float8 + 0.2, "
        "'{2026-02-01 00:00:00+00}',"
        " '\\x00ff')");
    EXPECT_THAT(staged(),
                ElementsAre(HasSubstr(
                    "\"id\":9007199254740993,\"t\":\"a\",\"d\":\"{\\\"a\\\":\\\"\\\\u0000\\\", \\\"a\\\":1e999}\","
                    "\"f\":0.30000000000000004,\"at\":\"{\\\"2026-02-01 00:00:00+00\\\"}\",\"b\":\"\\\\x00ff\"")));
}

TEST_F(ChangeCapture, RecordsAChangedKeyAsWhatGivesTheSameTable) {
    begin();
    run("INSERT INTO item (id, tenant_id, note) VALUES (3, 'a', 'c'), (2, 'a', 'b'), (1, 'a', 'a')");
    staged();
    EXPECT_THAT(captured("UPDATE item SET id = 9, note = 'z' WHERE id = 3"),
                ElementsAre(HasSubstr("row.delete public.item(3)"), HasSubstr("row.insert public.item(9)")));
    // Row 2 becomes 3 and row 1 becomes 2: the same key, so it reads as one row that changed.
    EXPECT_THAT(
        captured("UPDATE item SET id = id + 1 WHERE id < 3"),
        ElementsAre(HasSubstr("row.delete public.item(1)"), HasSubstr("row.insert public.item(3)"),
                    HasSubstr("row.update public.item(2) "
                              "{\"key\":{\"id\":2},\"old\":{\"note\":\"b\",\"loud\":\"B\"},\"new\":{\"note\":\"a\"")));
}

TEST_F(ChangeCapture, MovesARowFromOneTenantsEntriesToTheOthers) {
    begin();
    run("INSERT INTO item (id, tenant_id) VALUES (1, 'a'), (2, 'b')");
    staged();
    EXPECT_THAT(captured("UPDATE item SET tenant_id = 'b' WHERE id = 1"),
                ElementsAre(HasSubstr("a row.delete public.item(1)"), HasSubstr("b row.insert public.item(1)")));
    EXPECT_THAT(captured("UPDATE item SET tenant_id = 'c'"),
                ElementsAre(HasSubstr("b row.delete"), HasSubstr("b row.delete"), HasSubstr("c row.insert"),
                            HasSubstr("c row.insert")));
    EXPECT_THAT(refusal("UPDATE item SET tenant_id = ''"),
                HasSubstr("RL007 a changed row of public.item has no tenant"));
    run("ALTER TABLE item ALTER tenant_id DROP NOT NULL");
    EXPECT_THAT(refusal("INSERT INTO item (id) VALUES (3)"),
                HasSubstr("RL007 a changed row of public.item has no tenant"));
}

TEST_F(ChangeCapture, LeavesExcludedColumnsOutAndShowsOfMaskedOnesThatTheyChanged) {
    begin({.table = "item", .tenant_column = "tenant_id", .excluded = {"stamp", "loud"}, .masked = {"note"}});
    EXPECT_THAT(
        captured("INSERT INTO item (id, tenant_id, note, stamp) VALUES (1, 'a', 'secret', now())"),
        ElementsAre(
            "a row.insert public.item(1) {\"key\":{\"id\":1},\"new\":{\"id\":1,\"tenant_id\":\"a\",\"note\":\"masked\","
            "\"amount\":null,\"doc\":null,\"place\":null}}"));
    EXPECT_THAT(captured("UPDATE item SET stamp = stamp + '1 day'"), IsEmpty());
    EXPECT_THAT(
        captured("UPDATE item SET note = NULL"),
        ElementsAre(HasSubstr("{\"key\":{\"id\":1},\"old\":{\"note\":\"masked\"},\"new\":{\"note\":\"masked\"}}")));
    EXPECT_THAT(captured("UPDATE item SET note = NULL"), IsEmpty());
}

TEST_F(ChangeCapture, TakesTheActorFromTheSettingElseFromTheLogin) {
    begin({.table = "item", .tenant_column = "tenant_id", .actor_setting = "app.user"});
    run("INSERT INTO item (id, tenant_id) VALUES (1, 'a');"
        "SELECT set_config('app.user', 'ann', true); UPDATE item SET note = 'x'; SELECT set_config('app.user', '', "
        "true);"
        "DELETE FROM item");
    EXPECT_EQ(
        value("SELECT string_agg(CASE actor WHEN session_user THEN 'login' ELSE actor END, ' ' ORDER BY staged_id)"
              " FROM rowlock.audit_staged"),
        "login ann login");
}

TEST_F(ChangeCapture, StagesATruncateForEachTenantThatHadRows) {
    begin();
    run("INSERT INTO item (id, tenant_id) VALUES (1, 'a'), (2, 'b'), (3, 'a')");
    staged();
    EXPECT_THAT(
        captured("TRUNCATE item"),
        testing::UnorderedElementsAre("a table.truncate public.item {\"table\" : \"public.item\", \"rows\" : 2}",
                                      "b table.truncate public.item {\"table\" : \"public.item\", \"rows\" : 1}"));
    EXPECT_THAT(captured("TRUNCATE item"), IsEmpty());
    const auto refused = fault_of<ServerError>([&] {
        database_.transact({.isolation = IsolationLevel::repeatable_read},
                           [](Transaction& transaction) { transaction.execute({"test.truncate", "TRUNCATE item"}); });
    });
    EXPECT_EQ(refused->sqlstate(), "RL007");
    EXPECT_THAT(refused->report().message, HasSubstr("truncated at READ COMMITTED, not at REPEATABLE READ"));
}

TEST_F(ChangeCapture, FollowsUpsertsCascadesAndRowsThatAStatementTouchesTwice) {
    run("CREATE TABLE owner (id int PRIMARY KEY);"
        "CREATE TABLE pet (id int PRIMARY KEY, t int NOT NULL, one int REFERENCES owner ON DELETE SET NULL,"
        "                  two int REFERENCES owner ON DELETE SET NULL, own int REFERENCES owner ON UPDATE CASCADE ON "
        "DELETE CASCADE);"
        "INSERT INTO owner VALUES (1), (2), (3)");
    begin({.table = "pet", .tenant_column = "t"});
    EXPECT_THAT(captured("INSERT INTO pet VALUES (1, 1, 1, 2, 3), (2, 1, 1, 1, 3), (3, 1, NULL, NULL, 3)"), SizeIs(3));
    EXPECT_THAT(captured("INSERT INTO pet VALUES (1, 1), (9, 1) ON CONFLICT (id) DO UPDATE SET t = 2"),
                ElementsAre(HasSubstr("1 row.delete public.pet(1)"), HasSubstr("2 row.insert public.pet(1)"),
                            HasSubstr("1 row.insert public.pet(9)")));
    // Both foreign keys of pets 1 and 2 act on them, one after the other, within the same statement.
    EXPECT_THAT(
        captured("DELETE FROM owner WHERE id IN (1, 2)"),
        ElementsAre(
            HasSubstr(
                "public.pet(1) {\"key\":{\"id\":1},\"old\":{\"one\":1,\"two\":2},\"new\":{\"one\":null,\"two\":null}}"),
            HasSubstr("public.pet(2) "
                      "{\"key\":{\"id\":2},\"old\":{\"one\":1,\"two\":1},\"new\":{\"one\":null,\"two\":null}}")));
    EXPECT_THAT(captured("UPDATE owner SET id = 30"), SizeIs(3));
    EXPECT_THAT(captured("DELETE FROM owner"), testing::Contains(HasSubstr("row.delete public.pet(3)")));
}

TEST_F(ChangeCapture, QuotesWhateverATableIsNamed) {
    run("CREATE SCHEMA \"my \"\"shop\"; CREATE TABLE \"my \"\"shop\".\"o.%s <n_key> $body$ 'x\"\" \\\" (\"Key %I\" "
        "int, \"<id>\" text NOT NULL,"
        " \"a'\"\"\\%1$s\" text, PRIMARY KEY (\"Key %I\", \"<id>\"))");
    const std::string name = "\"my \"\"shop\".\"o.%s <n_key> $body$ 'x\"\" \\\"";
    begin({.table = name, .tenant_column = "<id>", .masked = {"a'\"\\%1$s"}});
    const std::vector<std::string> lines = captured("INSERT INTO " + name + " VALUES (1, 'a', 'b'); UPDATE " + name +
                                                    " SET \"a'\"\"\\%1$s\" = 'c'; TRUNCATE " + name);
    ASSERT_THAT(lines, SizeIs(3));
    EXPECT_EQ(lines[1], "a row.update " + name +
                            "(1,a) {\"key\":{\"Key %I\":1,\"<id>\":\"a\"},\"old\":{\"a'\\\"\\\\%1$s\":\"masked\"},"
                            "\"new\":{\"a'\\\"\\\\%1$s\":\"masked\"}}");
    EXPECT_EQ(problem(), "");
    EXPECT_TRUE(untrack_table(name));
}

TEST_F(ChangeCapture, CapturesAllColumnsOfAWideTable) {
    std::string columns;
    for (int i = 0; i < 300; ++i) columns += ", c" + std::to_string(i) + " int";
    run("CREATE TABLE wide (id int PRIMARY KEY, t int NOT NULL" + columns + ")");
    begin({.table = "wide", .tenant_column = "t"});
    EXPECT_THAT(captured("INSERT INTO wide (id, t, c299) VALUES (1, 1, 5); UPDATE wide SET c299 = 6"),
                ElementsAre(HasSubstr("\"c299\":5"), HasSubstr("\"old\":{\"c299\":5},\"new\":{\"c299\":6}")));
}

TEST_F(ChangeCapture, GivesIdsThatASessionThatSeedsRandomCanNotForetell) {
    begin();
    run("INSERT INTO item (id, tenant_id, note) VALUES (1, 'a', 'x')");
    staged();
    // One message to the server, so that even the time in front of both ids is the same.
    run("SELECT setseed(0.5); UPDATE item SET note = 'y'; SELECT setseed(0.5); UPDATE item SET note = 'z'");
    EXPECT_EQ(value("SELECT count(DISTINCT left(entry_id::text, 18)) FROM rowlock.audit_staged"), "1");
    EXPECT_EQ(value("SELECT count(DISTINCT entry_id) FROM rowlock.audit_staged"), "2");
}

TEST_F(ChangeCapture, IsNotTurnedOffByAReplicaSession) {
    begin();
    EXPECT_THAT(
        captured("SET LOCAL session_replication_role = replica; INSERT INTO item (id, tenant_id) VALUES (1, 'a')"),
        SizeIs(1));
}

}  // namespace
}  // namespace rowlock
