// Key claims on all kinds of tables, and from SQL.
#include <gmock/gmock.h>

#include "postgres/claim_room.hpp"
#include "rowlock/schema.hpp"

namespace rowlock {
namespace {

using testing::HasSubstr;

class ClaimTables : public testing::Test {
  protected:
    void make(const std::string& table_sql, const KeyClaim& claims) {
        server_.execute(table_sql + ";" + claims.used_keys_sql());
    }
    /// Claims, is lost to others, writes and completes twice, and is swept.
    void play(const KeyClaim& claims, const RowId& id, const std::string& update) {
        const TransactionPolicy policy{.tenant = TenantId("acme")};
        for (int round = 0; round < 2; ++round) {
            database_.transact(policy, [&](Transaction& t) {
                const ClaimOutcome outcome = claims.claim(t, id);
                ASSERT_TRUE(std::holds_alternative<Claimed>(outcome));
                const auto& claimed = std::get<Claimed>(outcome);
                EXPECT_TRUE(std::holds_alternative<LostTo>(
                    other_.transact(policy, [&](Transaction& loser) { return claims.claim(loser, id); })));
                EXPECT_TRUE(std::holds_alternative<LostTo>(claims.claim(t, id)));
                const auto written = claims.write(t, claimed, {"test.write", update});
                ASSERT_TRUE(std::holds_alternative<Rows>(written));
                EXPECT_EQ(std::get<Rows>(written).affected(), 1);
                const auto done = claims.complete(t, claimed);
                ASSERT_TRUE(std::holds_alternative<Completed>(done));
                EXPECT_NE(std::get<Completed>(done).key, claimed.key);
                EXPECT_EQ(claims.count(t).used, round + 1);
            });
        }
    }

    test::TestDatabase server_;
    Database database_{server_.connection()};
    Database other_{server_.connection()};
};

TEST_F(ClaimTables, MayHaveAwkwardNamesCompositeKeysTenantsAndByteKeys) {
    const KeyClaim claims({.schema = R"(Ac"me)",
                           .table = R"("; DROP TABLE x; --)",
                           .id = {"Id 1", R"(b'\)"},
                           .key = R"(K\ $1 {}")",
                           .used_keys = "Used'",
                           .tenant = "T t"});
    make(R"(CREATE SCHEMA "Ac""me"; CREATE TABLE "Ac""me"."""; DROP TABLE x; --" ("T t" text, "Id 1" int, "b'\" text,
            "K\ $1 {}""" bytea NOT NULL, n int, PRIMARY KEY ("T t", "Id 1", "b'\"));
            INSERT INTO "Ac""me"."""; DROP TABLE x; --" VALUES ('acme', 7, 'x', '\x00', 0), ('globex', 7, 'x', '\x00', 0))",
         claims);
    play(claims, {7, "x"}, R"(UPDATE "Ac""me"."""; DROP TABLE x; --" SET n = n + 1 WHERE "T t" = 'acme'
                              AND EXISTS (SELECT FROM rowlock_fence))");
    EXPECT_EQ(server_.value(R"(SELECT string_agg(n || ' ' || octet_length("K\ $1 {}"""), ', ' ORDER BY n)
                               FROM "Ac""me"."""; DROP TABLE x; --")"),
              "0 1, 2 16");
}

TEST_F(ClaimTables, MayBePartitionedAndHaveTextKeys) {
    const KeyClaim claims({.table = "room", .id = {"id"}, .key = "key", .used_keys = "used"});
    make(
        "CREATE TABLE room (id uuid PRIMARY KEY, key text NOT NULL, n int) PARTITION BY HASH (id);"
        "CREATE TABLE room_0 PARTITION OF room FOR VALUES WITH (MODULUS 2, REMAINDER 0);"
        "CREATE TABLE room_1 PARTITION OF room FOR VALUES WITH (MODULUS 2, REMAINDER 1);"
        "INSERT INTO room SELECT ('00000000-0000-0000-0000-00000000000' || n)::uuid, 'first', 0"
        " FROM generate_series(0, 9) AS n",
        claims);
    play(claims, {"00000000-0000-0000-0000-000000000007"},
         "UPDATE room SET n = n + 1 WHERE id = '00000000-0000-0000-0000-000000000007' AND EXISTS (SELECT FROM"
         " rowlock_fence)");
    EXPECT_EQ(server_.value("SELECT sum(n) || ' ' || count(DISTINCT key) || ' ' || max(length(key)) FROM room"),
              "2 2 32");
}

TEST_F(ClaimTables, AreMeantByTheSameLockHoweverTheIdIsWritten) {
    const KeyClaim claims({.table = "room", .id = {"id"}, .key = "key", .used_keys = "used"});
    make(
        "CREATE TABLE room (id int PRIMARY KEY, key uuid NOT NULL DEFAULT gen_random_uuid());"
        "INSERT INTO room VALUES (7)",
        claims);
    database_.transact({}, [&](Transaction& open) {
        ASSERT_TRUE(std::holds_alternative<Claimed>(claims.claim(open, {7})));
        const ClaimOutcome outcome = other_.transact({}, [&](Transaction& t) { return claims.claim(t, {" 007"}); });
        ASSERT_TRUE(std::holds_alternative<LostTo>(outcome));
        EXPECT_EQ(std::get<LostTo>(outcome).how, LostTo::How::being_claimed);
    });
}

TEST_F(ClaimTables, ThatAreDescribedWronglyAreOneClearError) {
    server_.execute(
        "CREATE TABLE room (id int PRIMARY KEY, key uuid NOT NULL, number int NOT NULL, maybe uuid, name text);"
        "CREATE UNIQUE INDEX ON room (number) WHERE number > 0; CREATE UNIQUE INDEX ON room (lower(name));"
        "CREATE TABLE good AS SELECT id, key FROM room;"
        "ALTER TABLE good ADD owner text NOT NULL DEFAULT '', ADD epoch bigint NOT NULL DEFAULT 1, ADD claimed_at"
        " timestamptz NOT NULL DEFAULT now(), ADD leased_until timestamptz NOT NULL, ADD completed_at timestamptz,"
        " ADD PRIMARY KEY (id, key);"
        "CREATE TABLE late (LIKE good INCLUDING DEFAULTS, UNIQUE (id, key) DEFERRABLE);"
        "CREATE TABLE bare (id int, key uuid, PRIMARY KEY (id, key));"
        "CREATE TABLE nullable (LIKE good); ALTER TABLE nullable ALTER key DROP NOT NULL, ADD UNIQUE (id, key);"
        "CREATE TABLE other_type (LIKE good INCLUDING ALL); ALTER TABLE other_type ALTER id TYPE bigint;"
        "CREATE VIEW view AS SELECT * FROM room");
    const auto objection = [&](const ClaimedTable& table) -> std::string {
        try {
            database_.transact({}, [&](Transaction& t) { KeyClaim(table).check(t); });
            return "";
        } catch (const SetupError& error) {
            return error.what();
        }
    };
    const ClaimedTable good{.table = "room", .id = {"id"}, .key = "key", .used_keys = "good"};
    const auto with = [&](auto change) {
        ClaimedTable table = good;
        change(table);
        return objection(table);
    };
    EXPECT_EQ(objection(good), "");
    EXPECT_THAT(with([](ClaimedTable& t) { t.table = "rooms"; }),
                HasSubstr("table public.rooms: there is no such table"));
    EXPECT_THAT(with([](ClaimedTable& t) { t.table = "view"; }), HasSubstr("there is no such table"));
    EXPECT_THAT(with([](ClaimedTable& t) { t.id = {"room_id"}; }), HasSubstr("it has no column room_id"));
    EXPECT_THAT(with([](ClaimedTable& t) { t.tenant = "tenant"; }), HasSubstr("it has no column tenant"));
    EXPECT_THAT(with([](ClaimedTable& t) { t.id = {"number"}; }), HasSubstr("(number) is not unique"));
    EXPECT_THAT(with([](ClaimedTable& t) { t.id = {"name"}; }), HasSubstr("(name) is not unique"));
    EXPECT_THAT(with([](ClaimedTable& t) { t.key = "kee"; }), HasSubstr("ADD COLUMN kee uuid NOT NULL"));
    EXPECT_THAT(with([](ClaimedTable& t) { t.key = "number"; }), HasSubstr("where keys could come twice"));
    EXPECT_THAT(with([](ClaimedTable& t) { t.key = "maybe"; }), HasSubstr("may be NULL"));
    EXPECT_THAT(with([](ClaimedTable& t) { t.used_keys = "used"; }), HasSubstr("rowlock claim sql, makes one"));
    EXPECT_THAT(with([](ClaimedTable& t) { t.used_keys = "late"; }), HasSubstr("(id, key) is not unique"));
    EXPECT_THAT(with([](ClaimedTable& t) { t.used_keys = "bare"; }), HasSubstr("it has no column owner text NOT NULL"));
    EXPECT_THAT(with([](ClaimedTable& t) { t.used_keys = "nullable"; }), HasSubstr("key may be NULL"));
    EXPECT_THAT(with([](ClaimedTable& t) { t.used_keys = "other_type"; }),
                HasSubstr("id is of type bigint, but integer in room"));
    EXPECT_THAT(with([](ClaimedTable& t) { t.key = "owner"; }), HasSubstr("one of that name of its own"));
    EXPECT_THROW(KeyClaim({.table = "room", .key = "key", .used_keys = "good"}), InvalidInput);
    EXPECT_THROW(KeyClaim({.table = "", .id = {"id"}, .key = "key", .used_keys = "good"}), InvalidInput);
}

/// The functions for other languages play by the same rows and locks.
class ClaimsFromSql : public ClaimRoom {
  protected:
    ClaimsFromSql() {
        ann_.transact({.lock_wait_max = 60s}, install_schema);
        server_.execute(
            "INSERT INTO rowlock.claimed_table (name, table_name, id_columns, key_column, used_keys)"
            " VALUES ('rooms', 'room', '{room_id}', 'room_key', 'used_room_keys')");
    }
    static std::string call(Transaction& t, const std::string& sql) {
        return t.execute({"test.call", "SELECT " + sql}).only().optional_text(0).value_or("NULL");
    }
    std::string call(const std::string& sql) {
        return ben_.transact({}, [&](Transaction& t) { return call(t, sql); });
    }
};

TEST_F(ClaimsFromSql, AreWonLostAndCompletedAgainstThoseOfCpp) {
    const Claimed claimed = won(ann_, {.owner = "ann"});
    EXPECT_EQ(call("outcome || ' ' || owner FROM rowlock.claim('rooms', '{1}')"), "lost_claimed ann");
    ASSERT_TRUE(complete(ann_, claimed));
    EXPECT_EQ(call("outcome FROM rowlock.claim('rooms', '{1}', '" + claimed.key + "')"), "lost_completed");
    EXPECT_EQ(call("outcome FROM rowlock.claim('rooms', '{3}')"), "missing");
    ben_.transact({}, [&](Transaction& open) {
        EXPECT_EQ(call(open, "outcome FROM rowlock.claim('rooms', '{1}', p_owner => 'ben')"), "claimed");
        EXPECT_EQ(lost(ann_).how, LostTo::How::being_claimed);
        const std::string claim = "('rooms', '{1}', '" + key() + "', ";
        EXPECT_EQ(call(open, "rowlock.hold_claim" + claim + "2)"), "f");
        EXPECT_EQ(call(open, "rowlock.hold_claim" + claim + "1)"), "t");
        EXPECT_EQ(call(open, "rowlock.complete_claim" + claim + "2)"), "NULL");
        EXPECT_EQ(call(open, "length(rowlock.complete_claim" + claim + "1))"), "36");
        EXPECT_EQ(call(open, "rowlock.hold_claim" + claim + "1)"), "f");
    });
    ann_.transact({}, [&](Transaction& open) {
        ASSERT_TRUE(std::holds_alternative<Claimed>(rooms_.claim(open, {1})));
        ben_.transact({}, [&](Transaction& loser) {
            EXPECT_EQ(call(loser, "outcome FROM rowlock.claim('rooms', '{1}')"), "lost_being_claimed");
            EXPECT_EQ(call(loser, "count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"),
                      "0");
        });
    });
}

TEST_F(ClaimsFromSql, AreTakenOverAndFenced) {
    const Claimed late = won_and_expired(ann_);
    EXPECT_EQ(call("outcome || ' ' || epoch FROM rowlock.claim('rooms', '{1}')"), "claimed 2");
    EXPECT_FALSE(take(ann_, late, 1));
    EXPECT_EQ(call("rowlock.complete_claim('rooms', '{1}', '" + late.key + "', 1)"), "NULL");
    EXPECT_NE(call("rowlock.complete_claim('rooms', '{1}', '" + late.key + "', 2)"), "NULL");
}

TEST_F(ClaimsFromSql, RefuseWhatCantBe) {
    for (const auto& [sql, sqlstate] : std::vector<std::pair<std::string, std::string>>{
             {"outcome FROM rowlock.claim('zimmer', '{1}')", "RL006"},
             {"outcome FROM rowlock.claim('rooms', '{1,2}')", "22023"},
             {"outcome FROM rowlock.claim('rooms', '{1}', p_lease => '0')", "22023"},
             {"outcome FROM rowlock.claim('rooms', '{1}', p_lease => '61 s')", "22023"}}) {
        try {
            call(sql);
            ADD_FAILURE() << sql;
        } catch (const ServerError& error) {
            EXPECT_EQ(error.sqlstate(), sqlstate) << sql;
        }
    }
    EXPECT_THROW(ann_.transact({.isolation = IsolationLevel::repeatable_read},
                               [&](Transaction& t) { call(t, "outcome FROM rowlock.claim('rooms', '{1}')"); }),
                 ServerError);
}

}  // namespace
}  // namespace rowlock
