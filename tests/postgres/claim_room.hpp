// What the tests of key claims share: a room with pebbles and a key, players, and what must come true of it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

#include "rowlock/database.hpp"
#include "rowlock/key_claim.hpp"
#include "support/test_database.hpp"

namespace rowlock {

using namespace std::chrono_literals;

constexpr Statement take_pebbles{
    "test.take", "UPDATE room SET pebbles = pebbles - $2 WHERE room_id = $1 AND EXISTS (SELECT FROM rowlock_fence)"};

class ClaimRoom : public testing::Test {
  protected:
    ClaimRoom() {
        server_.execute(
            "CREATE TABLE room (room_id int PRIMARY KEY, pebbles int NOT NULL,"
            " room_key uuid NOT NULL DEFAULT gen_random_uuid());"
            "INSERT INTO room VALUES (1, 1000000), (2, 1000000);" +
            rooms_.used_keys_sql());
    }

    [[nodiscard]] std::string value(const std::string& sql) const { return server_.value(sql); }
    [[nodiscard]] std::string key() const { return value("SELECT room_key FROM room WHERE room_id = 1"); }
    [[nodiscard]] std::string pebbles() const { return value("SELECT pebbles FROM room WHERE room_id = 1"); }
    [[nodiscard]] bool comes_true(const std::string& sql) const {
        for (int i = 0; i < 2000; ++i) {
            if (value(sql) == "t") return true;
            std::this_thread::sleep_for(5ms);
        }
        return false;
    }

    /// A claim in a transaction of its own.
    ClaimOutcome claim(Database& player, const ClaimOptions& options = {}) {
        return player.transact({}, [&](Transaction& t) { return rooms_.claim(t, {1}, options); });
    }
    Claimed won(Database& player, const ClaimOptions& options = {}) {
        const ClaimOutcome outcome = claim(player, options);
        EXPECT_TRUE(std::holds_alternative<Claimed>(outcome));
        return std::get<Claimed>(outcome);
    }
    /// A claim whose lease is over by now.
    Claimed won_and_expired(Database& player, const std::string& owner = "ann") {
        const Claimed claimed = won(player, {.owner = owner, .lease = 1ms});
        EXPECT_TRUE(
            comes_true("SELECT leased_until < clock_timestamp() FROM used_room_keys WHERE completed_at IS NULL"));
        return claimed;
    }
    LostTo lost(Database& player, const ClaimOptions& options = {}) {
        const ClaimOutcome outcome = claim(player, options);
        EXPECT_TRUE(std::holds_alternative<LostTo>(outcome));
        return std::get<LostTo>(outcome);
    }
    bool take(Database& player, const Claimed& claimed, int count) {
        return player.transact({}, [&](Transaction& t) {
            return std::holds_alternative<Rows>(rooms_.write(t, claimed, take_pebbles, {1, count}));
        });
    }
    bool complete(Database& player, const Claimed& claimed) {
        return player.transact(
            {}, [&](Transaction& t) { return std::holds_alternative<Completed>(rooms_.complete(t, claimed)); });
    }

    KeyClaim rooms_{{.table = "room", .id = {"room_id"}, .key = "room_key", .used_keys = "used_room_keys"}};
    test::TestDatabase server_;
    Database ann_{server_.connection()};
    Database ben_{server_.connection()};
};

}  // namespace rowlock
