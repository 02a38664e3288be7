// Tracking a table: again, otherwise, after its columns changed, partitioned, and not at all; and who may what.
#include "postgres/capture_fixture.hpp"

namespace rowlock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class TrackedTables : public CaptureTest {
  protected:
    TrackedTables() { run("CREATE TABLE item (id int PRIMARY KEY, tenant_id text NOT NULL, note text, secret text)"); }
    const TrackedTable item_{.table = "public.item", .tenant_column = "tenant_id", .masked = {"secret"}};
};

TEST_F(TrackedTables, AreTrackedOnceAndAnewWhereTheDescriptionIsAnother) {
    EXPECT_EQ(track_table(item_), TrackOutcome::tracked);
    EXPECT_EQ(track_table(item_), TrackOutcome::unchanged);
    EXPECT_EQ(track_table({.table = "item", .tenant_column = "tenant_id", .excluded = {"note"}}),
              TrackOutcome::retracked);
    EXPECT_THAT(captured("INSERT INTO item VALUES (1, 'a', 'x', 'y')"),
                ElementsAre("a row.insert public.item(1) "
                            "{\"key\":{\"id\":1},\"new\":{\"id\":1,\"tenant_id\":\"a\",\"secret\":\"y\"}}"));
    const auto tables = database_.transact({}, tracked_tables);
    ASSERT_THAT(tables, SizeIs(1));
    EXPECT_EQ(tables[0].description.table, "public.item");
    EXPECT_THAT(tables[0].description.excluded, ElementsAre("note"));
    EXPECT_THAT(tables[0].description.masked, IsEmpty());
    EXPECT_EQ(tables[0].problem, "");
}

TEST_F(TrackedTables, AreLeftAsTheyWereByUntrack) {
    run("CREATE SCHEMA shop; CREATE TABLE shop.item (LIKE item INCLUDING ALL); ALTER TABLE shop.item ENABLE ROW LEVEL "
        "SECURITY");
    const std::string shape =
        "SELECT concat_ws(' ', (SELECT count(*) FROM pg_trigger), (SELECT count(*) FROM pg_proc), (SELECT count(*) "
        "FROM pg_policy),"
        " (SELECT count(*) FROM pg_attribute WHERE attacl IS NOT NULL), (SELECT count(*) FROM rowlock.tracked_table),"
        " has_schema_privilege('rowlock_owner', 'shop', 'USAGE'))";
    const std::string before = value(shape);
    const TrackedTable shop{.table = "shop.item", .tenant_column = "tenant_id"};
    EXPECT_EQ(track_table(shop), TrackOutcome::tracked);
    EXPECT_NE(value(shape), before);
    EXPECT_TRUE(untrack_table("shop.item"));
    EXPECT_EQ(value(shape), before);
    EXPECT_FALSE(untrack_table("shop.item"));
    EXPECT_THAT(captured("INSERT INTO shop.item VALUES (1, 'a', 'x', 'y')"), IsEmpty());
}

TEST_F(TrackedTables, ThatChangeAreStaleAndNothingIsMissedNorBroken) {
    EXPECT_EQ(track_table(item_), TrackOutcome::tracked);
    run("INSERT INTO item VALUES (1, 'a', 'x', 'y'), (2, 'a', 'x', 'y')");
    staged();
    run("ALTER TABLE item ADD COLUMN more int");
    EXPECT_EQ(problem(), "columns of public.item have changed");
    EXPECT_THAT(captured("UPDATE item SET more = 5 WHERE id = 1"),
                ElementsAre(HasSubstr("\"old\":{\"more\":null},\"new\":{\"more\":5}")));
    run("ALTER TABLE item DROP COLUMN note");
    EXPECT_THAT(captured("UPDATE item SET more = 6"), SizeIs(2));
    run("ALTER TABLE item ALTER more TYPE json USING to_json(more)");
    EXPECT_THAT(captured("UPDATE item SET more = '[]'"), SizeIs(2));
    // A masked column stays masked under its new name, and the tenant's is found.
    run("ALTER TABLE item RENAME secret TO hidden; ALTER TABLE item RENAME tenant_id TO customer");
    EXPECT_THAT(captured("UPDATE item SET hidden = 'z'"),
                ElementsAre(HasSubstr("a row.update public.item(1) {\"key\":{\"id\":1},\"old\":"
                                      "{\"hidden\":\"masked\"},\"new\":{\"hidden\":\"masked\"}}"),
                            HasSubstr("public.item(2)")));
    EXPECT_THAT(captured("DELETE FROM item WHERE id = 1; TRUNCATE item"), SizeIs(2));
    run("ALTER TABLE item RENAME TO thing");
    EXPECT_EQ(problem(), "it was named public.item");
    EXPECT_THAT(captured("INSERT INTO thing (id, customer) VALUES (1, 'a')"),
                ElementsAre(HasSubstr("row.insert public.thing(1)")));
    EXPECT_EQ(track_table({.table = "thing", .tenant_column = "customer", .masked = {"hidden"}}),
              TrackOutcome::retracked);
    EXPECT_EQ(problem(), "");
    EXPECT_EQ(value("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'rowlock_capture_%'"), "4");
}

/// The server plans the look at the columns once for each session, until the table is altered.
TEST_F(TrackedTables, ThatAnotherSessionAltersAreLookedAtAnewByOneThatHasCapturedBefore) {
    EXPECT_EQ(track_table(item_), TrackOutcome::tracked);
    run("INSERT INTO item VALUES (1, 'a', 'x', 'y')");
    staged();
    EXPECT_THAT(captured("UPDATE item SET note = 'z'"), SizeIs(1));
    server_.execute("ALTER TABLE public.item ADD COLUMN more int");
    EXPECT_THAT(captured("UPDATE item SET more = 5"), ElementsAre(HasSubstr("\"new\":{\"more\":5}")));
    server_.execute("ALTER TABLE public.item RENAME COLUMN more TO most");
    EXPECT_THAT(captured("UPDATE item SET most = 6"), ElementsAre(HasSubstr("\"new\":{\"most\":6}")));
    server_.execute("ALTER TABLE public.item DROP COLUMN most");
    EXPECT_THAT(captured("UPDATE item SET note = 'zz'"), ElementsAre(HasSubstr("\"new\":{\"note\":\"zz\"}")));
    server_.execute("ALTER SCHEMA public RENAME TO shop");
    EXPECT_THAT(captured("UPDATE shop.item SET note = 'zzz'"), ElementsAre(HasSubstr("row.update shop.item(1)")));
    server_.execute("ALTER SCHEMA shop RENAME TO public");
    EXPECT_THAT(captured("UPDATE item SET note = 'z'"), ElementsAre(HasSubstr("row.update public.item(1)")));
}

TEST_F(TrackedTables, AreNotBelievedUnalteredForWhatAnOlderSnapshotShowed) {
    EXPECT_EQ(track_table(item_), TrackOutcome::tracked);
    run("INSERT INTO item VALUES (1, 'a', 'x', 'y')");
    EXPECT_THAT(captured("UPDATE item SET note = 'z'"), SizeIs(2));
    const auto runs_in_an_older_snapshot = [&](const char* change) {
        int runs = 0;
        database_.transact({.isolation = IsolationLevel::repeatable_read}, [&](Transaction& transaction) {
            transaction.execute({"test.snapshot", "SELECT count(*) FROM pg_class"});
            if (++runs == 1) server_.execute(fmt::format("ALTER TABLE public.item {}", change));
            transaction.execute({"test.update", "UPDATE public.item SET note = 'zz'"});
            if (runs == 2) transaction.execute({"test.update_late", "UPDATE public.item SET late = 1"});
        });
        return runs;
    };
    EXPECT_EQ(runs_in_an_older_snapshot("ADD COLUMN late int"), 2) << "40001: the new column would have been left out";
    EXPECT_THAT(staged(), ElementsAre(HasSubstr("\"new\":{\"note\":\"zz\"}"), HasSubstr("\"new\":{\"late\":1}")));
    EXPECT_EQ(runs_in_an_older_snapshot("ALTER COLUMN note SET DEFAULT 'n'"), 1)
        << "not every change of a table is one of its columns";
    EXPECT_THAT(captured("UPDATE item SET late = 2"), ElementsAre(HasSubstr("\"new\":{\"late\":2}")));
}

TEST_F(TrackedTables, WithoutTheirKeyRefuseWhatCanNotBeToldApart) {
    EXPECT_EQ(track_table(item_), TrackOutcome::tracked);
    run("INSERT INTO item VALUES (1, 'a'), (2, 'a'); ALTER TABLE item DROP CONSTRAINT item_pkey");
    EXPECT_EQ(problem(), "its primary key has changed");
    EXPECT_THAT(refusal("UPDATE item SET note = 'x'"),
                HasSubstr("RL007 the tracked table public.item has lost its primary key"));
    run("ALTER TABLE item ADD PRIMARY KEY (id, tenant_id)");
    staged();
    EXPECT_THAT(captured("UPDATE item SET note = 'x'"),
                ElementsAre(HasSubstr("public.item(1,a)"), HasSubstr("public.item(2,a)")));
}

TEST_F(TrackedTables, WhoseTriggersAreOffOrWhoseSecurityIsNewAreStale) {
    EXPECT_EQ(track_table(item_), TrackOutcome::tracked);
    run("ALTER TABLE item DISABLE TRIGGER rowlock_capture_update");
    EXPECT_EQ(problem(), "public.item has no trigger for update, or a disabled one");
    EXPECT_EQ(track_table(item_), TrackOutcome::retracked);
    run("INSERT INTO item VALUES (1, 'a'); ALTER TABLE item ENABLE ROW LEVEL SECURITY");
    staged();
    EXPECT_THAT(problem(), HasSubstr("row-level security of public.item could hide rows"));
    EXPECT_THAT(refusal("TRUNCATE item"), HasSubstr("RL007")) << "hidden rows are an error, and not left out";
    EXPECT_EQ(track_table(item_), TrackOutcome::retracked);
    EXPECT_EQ(problem(), "");
    EXPECT_THAT(captured("TRUNCATE item"), SizeIs(1));
    run("INSERT INTO item VALUES (1, 'a'); CREATE POLICY none ON item AS RESTRICTIVE USING (false)");
    EXPECT_THAT(refusal("TRUNCATE item"), HasSubstr("RL007 the tracked table public.item has row-level security"));
}

TEST_F(TrackedTables, ThatAreDroppedAreForgotten) {
    EXPECT_EQ(track_table(item_), TrackOutcome::tracked);
    run("DROP TABLE item");
    EXPECT_EQ(problem(), "the table is gone");
    run("CREATE TABLE item (id int PRIMARY KEY, tenant_id text NOT NULL, secret text)");
    EXPECT_EQ(track_table(item_), TrackOutcome::tracked);
    EXPECT_EQ(problem(), "");
    EXPECT_EQ(value("SELECT count(*) FROM pg_proc WHERE proname ~ '^capture_[0-9]'"), "1");
}

TEST_F(TrackedTables, TakeInTheirPartitions) {
    run("CREATE TABLE sale (id int, day int, t int NOT NULL, v text, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);"
        "CREATE TABLE sale_1 PARTITION OF sale FOR VALUES FROM (0) TO (10);"
        "CREATE TABLE sale_2 (v text, gone int, t int NOT NULL, day int NOT NULL, id int NOT NULL);"
        "ALTER TABLE sale_2 DROP COLUMN gone; ALTER TABLE sale ATTACH PARTITION sale_2 FOR VALUES FROM (10) TO (20)");
    EXPECT_THAT(track_refusal({.table = "sale_1", .tenant_column = "t"}),
                HasSubstr("table public.sale_1 is a partition"));
    EXPECT_EQ(track_table({.table = "sale", .tenant_column = "t"}), TrackOutcome::tracked);
    EXPECT_EQ(problem(), "");
    EXPECT_THAT(captured("INSERT INTO sale VALUES (1, 1, 7, 'a'), (2, 11, 8, 'b')"), SizeIs(2))
        << "once, and not for the partition too";
    EXPECT_THAT(captured("INSERT INTO sale_2 (id, day, t) VALUES (3, 12, 8); UPDATE sale_2 SET v = 'x' WHERE id = 3; "
                         "DELETE FROM sale_2 WHERE id = 3"),
                ElementsAre(HasSubstr("8 row.insert public.sale(3,12)"), HasSubstr("8 row.update public.sale(3,12)"),
                            HasSubstr("row.delete")));
    EXPECT_THAT(captured("UPDATE sale SET day = 12 WHERE id = 1"),
                ElementsAre(HasSubstr("row.delete public.sale(1,1)"), HasSubstr("row.insert public.sale(1,12)")));
    EXPECT_THAT(captured("TRUNCATE sale_2"),
                testing::UnorderedElementsAre(
                    HasSubstr("7 table.truncate public.sale {\"table\" : \"public.sale_2\", \"rows\" : 1}"),
                    HasSubstr("8 table.truncate public.sale {\"table\" : \"public.sale_2\", \"rows\" : 1}")));
    run("INSERT INTO sale VALUES (1, 1, 7, 'a')");
    staged();
    EXPECT_THAT(captured("TRUNCATE sale"), ElementsAre(HasSubstr("\"public.sale_1\", \"rows\" : 1")));
    run("CREATE TABLE sale_3 PARTITION OF sale FOR VALUES FROM (20) TO (30)");
    EXPECT_EQ(problem(), "public.sale_3 has no trigger for insert, update, delete, truncate, or a disabled one");
    run("ALTER TABLE sale DETACH PARTITION sale_2");
    EXPECT_THAT(captured("INSERT INTO sale_2 (id, day, t) VALUES (3, 12, 8); TRUNCATE sale_2"), IsEmpty())
        << "it is a table of its own now";
    EXPECT_TRUE(untrack_table("sale"));
    EXPECT_EQ(value("SELECT count(*) FROM pg_trigger WHERE tgname LIKE 'rowlock_capture_%'"), "0");
}

TEST_F(TrackedTables, AreRefusedWhereTheirChangesCouldNotBeTold) {
    run("CREATE TABLE keyless (t int NOT NULL); CREATE TABLE late (t int NOT NULL PRIMARY KEY DEFERRABLE); CREATE VIEW "
        "seen AS SELECT 1;"
        "CREATE TABLE loose (id int PRIMARY KEY, t int); CREATE TABLE child () INHERITS (item)");
    const auto refused = [&](const std::string& table, const std::string& column = "t") {
        return track_refusal({.table = table, .tenant_column = column});
    };
    EXPECT_THAT(refused("keyless"), HasSubstr("RL008 table public.keyless has no primary key that is checked at once"));
    EXPECT_THAT(refused("late"), HasSubstr("RL008 table public.late has no primary key that is checked at once"));
    EXPECT_THAT(refused("seen"), HasSubstr("RL008 table public.seen is no table of its own"));
    EXPECT_THAT(refused("rowlock.quota"), HasSubstr("is no table of its own"));
    EXPECT_THAT(refused("loose"), HasSubstr("may have rows without a tenant: its column t may be NULL"));
    EXPECT_THAT(refused("item", "tenant_id"), HasSubstr("inherits, or is inherited from"));
    run("DROP TABLE child");
    EXPECT_THAT(refused("item", "Tenant"), HasSubstr("has no column \"Tenant\""));
    const auto with = [&](const TrackedTable& table) { return track_refusal(table); };
    EXPECT_THAT(with({.table = "item", .tenant_column = "tenant_id", .excluded = {"id"}}),
                HasSubstr("needs its column id in every entry"));
    EXPECT_THAT(with({.table = "item", .tenant_column = "tenant_id", .masked = {"tenant_id"}}),
                HasSubstr("needs its column tenant_id"));
    EXPECT_THAT(with({.table = "item", .tenant_column = "tenant_id", .excluded = {"note"}, .masked = {"note"}}),
                HasSubstr("both excluded and masked"));
    EXPECT_THAT(with({.table = "item", .tenant_column = "tenant_id", .actor_setting = "role"}),
                HasSubstr("can't take its actor from 'role'"));
    EXPECT_THAT(fault_of<SetupError>([&] {
                    static_cast<void>(track_table({.table = "nothing", .tenant_column = "t"}));
                })->what(),
                HasSubstr("there is no table nothing"));
    EXPECT_EQ(value("SELECT count(*) FROM rowlock.tracked_table"), "0");
}

TEST_F(TrackedTables, AreWrittenByWhoeverMayWriteThemAndForgedByNobody) {
    const test::TestLogin writer = server_.add_login("writer");
    EXPECT_EQ(track_table(item_), TrackOutcome::tracked);
    run("GRANT INSERT, UPDATE, DELETE, SELECT, TRUNCATE ON item TO \"" + writer.role +
        "\"; GRANT CREATE ON SCHEMA public TO \"" + writer.role + "\"");
    const auto as_writer = [&](const std::string& sql) {
        try {
            test::run_sql(server_.connection_as(writer), sql);
        } catch (const std::runtime_error& refused) {
            return std::string(refused.what());
        }
        return std::string();
    };
    EXPECT_EQ(as_writer("INSERT INTO item VALUES (1, 'a'); UPDATE item SET note = 'x'; DELETE FROM item; INSERT INTO "
                        "item VALUES (1, 'a'); TRUNCATE item"),
              "");
    EXPECT_EQ(value("SELECT string_agg(DISTINCT actor, ' ') FROM rowlock.audit_staged"), writer.role);
    EXPECT_THAT(staged(), SizeIs(5));
    // With rowlock_app it is no nearer to an entry of another tenant.
    run("GRANT rowlock_app TO \"" + writer.role + "\"");
    const std::string function = "rowlock." + value("SELECT proname FROM pg_proc WHERE proname ~ '^capture_[0-9]'");
    EXPECT_THAT(as_writer("CREATE TABLE mine (id int PRIMARY KEY, tenant_id text NOT NULL, note text, secret text);"
                          "CREATE TRIGGER forge AFTER INSERT ON mine REFERENCING NEW TABLE AS rowlock_new FOR EACH "
                          "STATEMENT EXECUTE FUNCTION " +
                          function + "()"),
                HasSubstr("permission denied for function"));
    for (const std::string call :
         {"SELECT rowlock.track('item', 'tenant_id')", "SELECT rowlock.untrack('item')",
          "SELECT rowlock.capture_truncate('item')", "SELECT rowlock.capture_sql('item', 'INSERT')",
          "SELECT rowlock.capture_attach('item', 'x', 'id')",
          "INSERT INTO rowlock.audit_staged (tenant_id, entry_id) VALUES ('a', gen_random_uuid())",
          "UPDATE rowlock.tracked_table SET masked = '{}'", "DROP TRIGGER rowlock_capture_insert ON item"}) {
        EXPECT_THAT(as_writer(call), testing::AnyOf(HasSubstr("permission denied"), HasSubstr("must be owner")))
            << call;
    }
    EXPECT_EQ(as_writer("SELECT rowlock.capture_problem(table_name) FROM rowlock.tracked_table"), "");
}

/// A type's owner may define casts. None of them runs with the rights of rowlock_owner.
TEST_F(TrackedTables, RunNoCodeOfATypesOwner) {
    run("CREATE TYPE trap AS ENUM ('a', 'b');"
        "CREATE FUNCTION spring(trap) RETURNS json LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'ran as %', "
        "current_user; END$$;"
        "CREATE FUNCTION spring_text(trap) RETURNS text LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'ran as %', "
        "current_user; END$$;"
        "CREATE CAST (trap AS json) WITH FUNCTION spring(trap); CREATE CAST (trap AS text) WITH FUNCTION "
        "spring_text(trap) AS IMPLICIT;"
        "CREATE TABLE trapped (id trap, t trap NOT NULL, v trap, PRIMARY KEY (id, t))");
    EXPECT_EQ(track_table({.table = "trapped", .tenant_column = "t"}), TrackOutcome::tracked);
    EXPECT_EQ(track_table(item_), TrackOutcome::tracked);
    EXPECT_THAT(captured("INSERT INTO trapped VALUES ('a', 'a', 'b'); UPDATE trapped SET v = 'a'; UPDATE trapped SET "
                         "id = 'b'; TRUNCATE trapped"),
                SizeIs(5));
    run("ALTER TABLE item ALTER note TYPE trap USING 'a'");
    EXPECT_THAT(captured("INSERT INTO item VALUES (1, 'x', 'a'); UPDATE item SET note = 'b'"), SizeIs(2));
}

}  // namespace
}  // namespace rowlock
