// Key claims in a crowd: count and key history agree, every loser is told while the winner still has the room.
#include <atomic>
#include <barrier>
#include <random>

#include "postgres/claim_room.hpp"
#include "support/environment.hpp"

namespace rowlock {
namespace {

class ClaimCrowd : public ClaimRoom {
  protected:
    ClaimCrowd() {
        server_.execute(
            "CREATE TABLE move (move_no bigserial, key_before uuid NOT NULL, pebbles_before int NOT NULL, taken int NOT"
            " NULL)");
    }
    static constexpr int players = 64;
    static constexpr Statement read_room{"test.read", "SELECT pebbles, room_key FROM room WHERE room_id = 1"};
    static constexpr Statement set_pebbles{
        "test.set", "UPDATE room SET pebbles = $1 WHERE room_id = 1 AND EXISTS (SELECT FROM rowlock_fence)"};
    static constexpr Statement add_move{
        "test.move",
        "INSERT INTO move (key_before, pebbles_before, taken) SELECT $1::uuid, $2::int, $3::int FROM rowlock_fence"};

    struct Read {
        std::int64_t pebbles;
        std::string key;
    };
    static Read read(Database& player) {
        return player.transact({}, [](Transaction& t) {
            const Rows rows = t.execute(read_room);
            return Read{rows.only().integer(0), std::string(rows.only().text(1))};
        });
    }
    /// Writes two tables and completes; false where the claim was somebody else's by then.
    bool play(Transaction& t, const Claimed& claimed, const Read& seen, int taken) {
        return std::holds_alternative<Rows>(rooms_.write(t, claimed, set_pebbles, {seen.pebbles - taken})) &&
               std::holds_alternative<Rows>(rooms_.write(t, claimed, add_move, {seen.key, seen.pebbles, taken})) &&
               std::holds_alternative<Completed>(rooms_.complete(t, claimed));
    }
    void expect_that_count_and_history_agree(int rounds) {
        EXPECT_EQ(value("SELECT count(*) FROM move"), std::to_string(rounds));
        EXPECT_EQ(value("SELECT count(*) FROM used_room_keys WHERE completed_at IS NOT NULL"), std::to_string(rounds));
        EXPECT_EQ(value("SELECT pebbles = 1000000 - (SELECT sum(taken) FROM move) FROM room WHERE room_id = 1"), "t");
        EXPECT_EQ(value("SELECT count(*) FROM (SELECT pebbles_before - taken AS left_over, lead(pebbles_before) OVER"
                        " (ORDER BY move_no) AS next FROM move) AS step WHERE next <> left_over"),
                  "0")
            << "each move begins where the one before it ended";
        EXPECT_EQ(value("SELECT count(DISTINCT key_before) FROM move"), std::to_string(rounds));
    }
};

TEST_F(ClaimCrowd, OfSixtyFourPlayersPlaysAThousandRounds) {
    const int rounds = test::full_or(1000, 100);
    Database database({.connection = server_.connection(), .connections_max = players});
    std::atomic<int> won = 0;
    std::atomic<int> lost = 0;
    std::vector<std::thread> crowd;
    for (unsigned i = 0; i < players; ++i) {
        crowd.emplace_back([&, i] {
            std::minstd_rand dice(i + 1);
            while (won < rounds) {
                const Read seen = read(database);
                const int taken = 1 + static_cast<int>(dice() % 3);
                // The crowd stops at a thousand, so the last ones may find that there is nothing left to win.
                const bool moved = database.transact({.lock_wait_max = 60s}, [&](Transaction& t) {
                    const ClaimOutcome outcome = rooms_.claim(t, {1}, {.key = seen.key});
                    const auto* const claimed = std::get_if<Claimed>(&outcome);
                    return claimed != nullptr && play(t, *claimed, seen, taken);
                });
                ++(moved ? won : lost);
                if (!moved) std::this_thread::sleep_for(std::chrono::milliseconds(dice() % 40));
            }
        });
    }
    for (std::thread& player : crowd) player.join();
    EXPECT_GT(lost, 0);
    expect_that_count_and_history_agree(won);
}

/// No loser waits: all have their answer while the winner's transaction is still open.
TEST_F(ClaimCrowd, IsToldWhileTheWinnerHoldsItsClaim) {
    Database database({.connection = server_.connection(), .connections_max = players});
    const Read seen = read(ann_);
    ann_.transact({}, [&](Transaction& open) {
        const ClaimOutcome outcome = rooms_.claim(open, {1}, {.key = seen.key});
        std::atomic<int> told = 0;
        std::vector<std::thread> crowd;
        for (int i = 0; i < players - 1; ++i) {
            crowd.emplace_back([&] {
                const LostTo loss = lost(database, {.key = seen.key});
                if (loss.how == LostTo::How::being_claimed) ++told;
            });
        }
        for (std::thread& player : crowd) player.join();
        EXPECT_EQ(told, players - 1);
        EXPECT_TRUE(play(open, std::get<Claimed>(outcome), seen, 1));
    });
    expect_that_count_and_history_agree(1);
}

/// Sixteen writers, 10,000 claims; winners die half-way or come back late, and somebody ends sessions at random.
TEST_F(ClaimCrowd, GoesOnWhenWinnersDieHalfWay) {
    constexpr int writers = 16;
    std::atomic<int> left = test::full_or(10'000, 1'000);
    std::atomic<int> died = 0;
    std::atomic<int> fenced = 0;
    Database database({.connection = server_.connection(), .application_name = "crowd", .connections_max = writers});
    const auto live = [&](std::minstd_rand& dice) {
        const Read seen = read(database);
        const ClaimOutcome outcome = claim(database, {.key = seen.key, .lease = 5ms});
        const auto* const claimed = std::get_if<Claimed>(&outcome);
        const auto fate = dice() % 4;
        if (claimed == nullptr) return;
        if (fate == 0) {
            ++died;
            return;
        }
        if (fate == 1) std::this_thread::sleep_for(15ms);
        if (!database.transact({}, [&](Transaction& t) { return play(t, *claimed, seen, 1); })) ++fenced;
    };
    std::vector<std::thread> crowd;
    for (unsigned i = 0; i < writers; ++i) {
        crowd.emplace_back([&, i] {
            std::minstd_rand dice(i + 1);
            while (left.fetch_sub(1) > 0) {
                try {
                    live(dice);
                } catch (const ConnectionError&) {
                } catch (const CommitOutcomeUnknown&) {
                    // It may have happened, so what was done is asked of the tables alone.
                }
            }
        });
    }
    while (left > 0) {
        server_.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name = 'crowd' ORDER BY random() LIMIT 4");
        std::this_thread::sleep_for(5ms);
    }
    for (std::thread& writer : crowd) writer.join();
    EXPECT_GT(died, 0);
    EXPECT_GT(fenced, 0);
    EXPECT_TRUE(comes_true("SELECT sessions_killed > 0 FROM pg_stat_database WHERE datname = current_database()"));
    expect_that_count_and_history_agree(std::stoi(value("SELECT count(*) FROM move")));
    EXPECT_NE(value("SELECT count(*) FROM move"), "0");
}

}  // namespace
}  // namespace rowlock
