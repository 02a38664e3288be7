// Key claims: one wins, the others are told at once, a dead winner holds nobody up and can't write any more.
#include "rowlock/key_claim.hpp"

#include "postgres/claim_room.hpp"

namespace rowlock {
namespace {

using KeyClaims = ClaimRoom;

TEST_F(KeyClaims, AreWonByOneAndCompletedWithAFreshKey) {
    const std::string before = key();
    const Claimed claimed = won(ann_, {.owner = "ann"});
    EXPECT_EQ(claimed.key, before);
    EXPECT_EQ(claimed.epoch, 1);
    const LostTo loss = lost(ben_);
    EXPECT_EQ(loss.how, LostTo::How::claimed);
    EXPECT_EQ(loss.owner, "ann");
    EXPECT_GT(loss.leased_until, std::stoll(value("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")));
    EXPECT_TRUE(take(ann_, claimed, 1));
    EXPECT_TRUE(complete(ann_, claimed));
    EXPECT_NE(key(), before);
    EXPECT_EQ(pebbles(), "999999");
    EXPECT_EQ(lost(ben_, {.key = before}).how, LostTo::How::completed);
    EXPECT_EQ(won(ben_).key, key());
}

TEST_F(KeyClaims, InOneTransactionAreLostWhileItIsOpenWithoutWaiting) {
    ann_.transact({}, [&](Transaction& open) {
        const ClaimOutcome outcome = rooms_.claim(open, {1});
        ASSERT_TRUE(std::holds_alternative<Claimed>(outcome));
        const LostTo loss = lost(ben_);
        EXPECT_EQ(loss.how, LostTo::How::being_claimed);
        EXPECT_FALSE(loss.owner);
        EXPECT_TRUE(std::holds_alternative<Completed>(rooms_.complete(open, std::get<Claimed>(outcome))));
    });
    won(ben_);
}

TEST_F(KeyClaims, OfOtherRowsAreNotLost) {
    ann_.transact({}, [&](Transaction& open) {
        ASSERT_TRUE(std::holds_alternative<Claimed>(rooms_.claim(open, {1})));
        ben_.transact(
            {}, [&](Transaction& other) { EXPECT_TRUE(std::holds_alternative<Claimed>(rooms_.claim(other, {2}))); });
    });
}

/// The naive form: the same INSERT, with no advisory lock tried before it.
TEST_F(KeyClaims, ByInsertAloneWaitForAnOpenTransaction) {
    constexpr Statement naive{"test.naive",
                              "INSERT INTO used_room_keys (room_id, room_key, leased_until)"
                              " SELECT room_id, room_key, now() + '1 min' FROM room WHERE room_id = 1"
                              " ON CONFLICT DO NOTHING",
                              true};
    ann_.transact({}, [&](Transaction& open) {
        open.execute(naive);
        EXPECT_THROW(ben_.transact({.lock_wait_max = 100ms}, [&](Transaction& t) { t.execute(naive); }), Busy);
    });
}

TEST_F(KeyClaims, ThatAreLostLeaveNoLockBehind) {
    const auto advisory_locks = [](Transaction& t) {
        return t
            .execute(
                {"test.locks", "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"})
            .only()
            .integer(0);
    };
    const Claimed claimed = won_and_expired(ann_);
    ASSERT_TRUE(complete(ann_, claimed));
    ben_.transact({}, [&](Transaction& loser) {
        EXPECT_TRUE(std::holds_alternative<LostTo>(rooms_.claim(loser, {1}, {.key = claimed.key})));
        EXPECT_EQ(advisory_locks(loser), 0);
        won(ann_);
        EXPECT_TRUE(std::holds_alternative<Claimed>(rooms_.claim(loser, {2}))) << "a loser can go on";
        EXPECT_EQ(advisory_locks(loser), 1);
    });
}

/// The naive form: plain values.
TEST_F(KeyClaims, WithAKeyThatWasSweptAreLost) {
    const std::string old_key = key();
    ASSERT_TRUE(complete(ann_, won(ann_)));
    server_.execute("DELETE FROM used_room_keys");
    EXPECT_EQ(lost(ben_, {.key = old_key}).how, LostTo::How::completed);
    EXPECT_EQ(value("WITH naive AS (INSERT INTO used_room_keys (room_id, room_key, leased_until) VALUES (1, '" +
                    old_key + "', now()) ON CONFLICT DO NOTHING RETURNING 1) SELECT count(*) FROM naive"),
              "1")
        << "plain values win a second time";
}

TEST_F(KeyClaims, AreTakenOverWhenTheLeaseIsOverAndTheLateWinnerIsFenced) {
    const Claimed late = won_and_expired(ann_);
    const Claimed next = won(ben_, {.owner = "ben"});
    EXPECT_EQ(next.key, late.key);
    EXPECT_EQ(next.epoch, 2);
    EXPECT_FALSE(take(ann_, late, 5));
    EXPECT_FALSE(complete(ann_, late));
    EXPECT_TRUE(
        std::holds_alternative<Fenced>(ann_.transact({}, [&](Transaction& t) { return rooms_.renew(t, late, 1s); })));
    EXPECT_EQ(pebbles(), "1000000");
    EXPECT_TRUE(take(ben_, next, 1));
    EXPECT_TRUE(complete(ben_, next));
    EXPECT_FALSE(take(ben_, next, 1)) << "completed is completed";
    EXPECT_EQ(pebbles(), "999999");
}

TEST_F(KeyClaims, ThatExpiredButWereNotTakenOverCanStillBeCompleted) {
    const Claimed claimed = won_and_expired(ann_);
    EXPECT_TRUE(take(ann_, claimed, 1));
    EXPECT_TRUE(complete(ann_, claimed));
}

TEST_F(KeyClaims, ThatAreRenewedAreNotTakenOver) {
    const Claimed claimed = won_and_expired(ann_);
    EXPECT_TRUE(std::holds_alternative<Renewed>(
        ann_.transact({}, [&](Transaction& t) { return rooms_.renew(t, claimed, 30s); })));
    EXPECT_EQ(lost(ben_).how, LostTo::How::claimed);
}

TEST_F(KeyClaims, AreNotTakenOverNorWaitedForWhileTheirHolderWrites) {
    const Claimed claimed = won_and_expired(ann_);
    ann_.transact({}, [&](Transaction& open) {
        ASSERT_TRUE(std::holds_alternative<Rows>(rooms_.write(open, claimed, take_pebbles, {1, 1})));
        EXPECT_EQ(lost(ben_).how, LostTo::How::claimed);
    });
    EXPECT_EQ(won(ben_).epoch, 2);
}

/// ON CONFLICT DO NOTHING waits for a row that is being updated, too.
TEST_F(KeyClaims, AreNotWaitedForWhileTheirHolderCompletesOrRenews) {
    const Claimed claimed = won_and_expired(ann_);
    ann_.transact({}, [&](Transaction& open) {
        ASSERT_TRUE(std::holds_alternative<Renewed>(rooms_.renew(open, claimed, 1ms)));
        EXPECT_EQ(lost(ben_).how, LostTo::How::claimed);
        ASSERT_TRUE(std::holds_alternative<Completed>(rooms_.complete(open, claimed)));
        EXPECT_EQ(lost(ben_).how, LostTo::How::claimed);
    });
    EXPECT_EQ(won(ben_).epoch, 1);
}

/// A write that waits for the row until the takeover and its writer have committed. The naive form asks for the epoch
/// in a plain sub-select, which is answered from the old snapshot; ours locks the claim's row before it waits for
/// anything.
class LateWrite : public ClaimRoom {
  protected:
    /// Starts a late write, and takes the claim over while it waits for the row.
    bool lands(const Statement& statement, const std::string& held) {
        const Claimed late = won_and_expired(ann_);
        std::optional<bool> landed;
        std::thread writer;
        ben_.transact({}, [&](Transaction& open) {
            open.execute({"test.hold", held});
            writer = std::thread([&] {
                landed = ann_.transact({.lock_wait_max = 20s}, [&](Transaction& t) {
                    if (statement.sql.find("rowlock_fence") == std::string_view::npos) {
                        return t.execute(statement, {1, late.epoch}).affected() == 1;
                    }
                    return std::holds_alternative<Rows>(rooms_.write(t, late, statement, {1, 1}));
                });
            });
            EXPECT_TRUE(comes_true("SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"));
            EXPECT_TRUE(std::holds_alternative<Claimed>(rooms_.claim(open, {1})));
        });
        writer.join();
        return landed.value();
    }
};

TEST_F(LateWrite, WithAPlainSubselectLandsAfterTheTakeover) {
    constexpr Statement naive{"test.naive",
                              "UPDATE room SET pebbles = 0 WHERE room_id = $1"
                              " AND EXISTS (SELECT FROM used_room_keys WHERE room_id = 1 AND epoch = $2)",
                              true};
    EXPECT_TRUE(lands(naive, "UPDATE room SET pebbles = pebbles WHERE room_id = 1"));
    EXPECT_EQ(value("SELECT max(epoch) FROM used_room_keys"), "2");
    EXPECT_EQ(pebbles(), "0");
}

TEST_F(LateWrite, ThatWaitsForTheFenceIsRefused) {
    EXPECT_FALSE(lands(take_pebbles, "SELECT FROM used_room_keys WHERE room_id = 1 FOR UPDATE"));
    EXPECT_EQ(pebbles(), "1000000");
}

TEST_F(KeyClaims, OfARowThatAWriterWaitsForAreNotTakenOver) {
    const Claimed claimed = won_and_expired(ann_);
    std::thread writer;
    ben_.transact({}, [&](Transaction& open) {
        open.execute({"test.hold", "UPDATE room SET pebbles = pebbles WHERE room_id = 1"});
        writer = std::thread([&] { EXPECT_TRUE(take(ann_, claimed, 1)); });
        EXPECT_TRUE(comes_true("SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"));
        EXPECT_TRUE(std::holds_alternative<LostTo>(rooms_.claim(open, {1})));
    });
    writer.join();
    EXPECT_EQ(pebbles(), "999999");
}

TEST_F(KeyClaims, DieWithTheirTransactionWhenTheWinnerIsKilled) {
    const std::string before = key();
    EXPECT_THROW(ann_.transact({.attempts_max = 1},
                               [&](Transaction& open) {
                                   const ClaimOutcome outcome = rooms_.claim(open, {1});
                                   const auto& claimed = std::get<Claimed>(outcome);
                                   static_cast<void>(rooms_.write(open, claimed, take_pebbles, {1, 1}));
                                   server_.execute("SELECT pg_terminate_backend(" + std::to_string(open.backend_pid()) +
                                                   ", 5000)");
                                   static_cast<void>(rooms_.complete(open, claimed));
                               }),
                 ConnectionError);
    EXPECT_EQ(pebbles(), "1000000");
    EXPECT_EQ(won(ben_).key, before) << "at once";
}

TEST_F(KeyClaims, OfADeadWinnerAreLeftWithTheWritesSoFarWhereEachStatementIsATransaction) {
    const Claimed dead = won_and_expired(ann_);
    ASSERT_TRUE(take(ann_, dead, 1));
    const Claimed next = won(ben_);
    EXPECT_EQ(pebbles(), "999999") << "the next winner finds them";
    EXPECT_FALSE(take(ann_, dead, 1));
    EXPECT_FALSE(complete(ann_, dead));
    EXPECT_TRUE(take(ben_, next, 1));
    EXPECT_TRUE(complete(ben_, next));
    EXPECT_EQ(pebbles(), "999998");
}

TEST_F(KeyClaims, AreSweptOnceTheyAreNeitherCurrentNorLeased) {
    const KeyClaim rooms(
        {.table = "room", .id = {"room_id"}, .key = "room_key", .used_keys = "used_room_keys", .lease_max = 1ms});
    const auto sweep = [&](std::int64_t batch_max) {
        return ann_.transact({}, [&](Transaction& t) { return rooms.sweep(t, 1ms, batch_max); });
    };
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(complete(ann_, won_and_expired(ann_)));
    const Claimed open = won_and_expired(ann_);
    ASSERT_TRUE(comes_true("SELECT max(completed_at) < clock_timestamp() - interval '5 ms' FROM used_room_keys"));
    EXPECT_EQ(sweep(3), 3);
    {
        ben_.transact({}, [&](Transaction& t) {
            t.execute({"test.hold", "SELECT FROM used_room_keys WHERE completed_at IS NOT NULL LIMIT 1 FOR UPDATE"});
            EXPECT_EQ(sweep(3), 1) << "what others hold is skipped";
        });
    }
    EXPECT_EQ(sweep(3), 1);
    EXPECT_EQ(sweep(3), 0);
    EXPECT_EQ(won(ben_).epoch, 2) << "the current key stays, with its epoch";
    EXPECT_FALSE(take(ann_, open, 1));
    EXPECT_THROW(ann_.transact({}, [&](Transaction& t) { rooms_.sweep(t, 1s); }), InvalidInput)
        << "younger than the longest lease";
}

TEST_F(KeyClaims, AreCounted) {
    ASSERT_TRUE(complete(ann_, won(ann_)));
    static_cast<void>(won_and_expired(ann_));
    ann_.transact({}, [&](Transaction& t) {
        ASSERT_TRUE(std::holds_alternative<Claimed>(rooms_.claim(t, {2}, {.owner = "eve"})));
        const ClaimCounts counts = rooms_.count(t);
        EXPECT_EQ(counts.open, 1);
        EXPECT_EQ(counts.expired, 1);
        EXPECT_EQ(counts.used, 1);
        const auto open = rooms_.list_open(t, 10);
        ASSERT_EQ(open.size(), 2U);
        EXPECT_TRUE(open[0].expired);
        EXPECT_EQ(open[1].row, "2");
        EXPECT_EQ(open[1].owner, "eve");
        EXPECT_EQ(rooms_.list_open(t, 1).size(), 1U);
    });
}

TEST_F(KeyClaims, RefuseWhatCantBe) {
    const auto refused = [&](const TransactionPolicy& policy, const RowId& id, const ClaimOptions& options) {
        EXPECT_THROW(ann_.transact(policy, [&](Transaction& t) { static_cast<void>(rooms_.claim(t, id, options)); }),
                     InvalidInput);
    };
    refused({.isolation = IsolationLevel::repeatable_read}, {1}, {});
    refused({}, {1, 2}, {});
    refused({}, {1}, {.lease = 0ms});
    refused({}, {1}, {.lease = 61s});
    EXPECT_TRUE(
        std::holds_alternative<Missing>(ann_.transact({}, [&](Transaction& t) { return rooms_.claim(t, {3}); })));
    const Claimed claimed = won(ann_);
    for (const std::string sql : {"UPDATE room SET pebbles = 0", "SELECT FROM rowlock_fence", "  "}) {
        EXPECT_THROW(
            ann_.transact({},
                          [&](Transaction& t) { static_cast<void>(rooms_.write(t, claimed, {"test.unfenced", sql})); }),
            InvalidInput);
    }
}

}  // namespace
}  // namespace rowlock
