// Staged entries, and the sealer that gives them their numbers.
#include <gmock/gmock.h>

#include <atomic>

#include "postgres/audit_fixture.hpp"
#include "rowlock/error.hpp"
#include "rowlock/sealer.hpp"
#include "support/test_server.hpp"

namespace rowlock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Statement stage_one{"test.stage", "SELECT rowlock.stage($1, $2, $3, $4::text::json, $5, $6::uuid)"};

class SealerTest : public AuditTest {
  protected:
    void SetUp() override {
        AuditTest::SetUp();
        server_.execute("GRANT rowlock_sealer TO " + sealer_login_.role);
        sealing_.emplace(DatabaseOptions{.connection = server_.connection_as(sealer_login_), .role = "rowlock_sealer"});
    }

    static void stage(Transaction& transaction, const std::string& object, const std::optional<std::string>& id = {},
                      const std::string& data = "{}") {
        transaction.execute(stage_one, {transaction.required_tenant(), "row.changed", object, data, "ann", id});
    }
    void stage_in_one(const std::string& tenant, const std::vector<std::string>& objects) {
        app_->transact(of(tenant), [&](Transaction& transaction) {
            for (const std::string& object : objects) stage(transaction, object);
        });
    }
    SealOutcome seal(const std::string& tenant, const SealLimits& limits = {}, bool waits = false) {
        TransactionPolicy policy = of(tenant);
        if (!waits) policy.lock_wait_max = LockWait::skip_locked();
        return sealing_->transact(policy,
                                  [&](Transaction& transaction) { return seal_staged(transaction, log_, limits); });
    }
    /// "appended already_there quarantined", and "more" where a limit was reached.
    static std::string said(const SealOutcome& outcome) {
        const auto* const sealed = std::get_if<Sealed>(&outcome);
        if (sealed == nullptr) return "taken";
        return fmt::format("{} {} {}{}", sealed->appended, sealed->already_there, sealed->quarantined,
                           sealed->more ? " more" : "");
    }
    std::string objects(const std::string& tenant) {
        return server_.value("SELECT string_agg(object, ' ' ORDER BY seq) FROM rowlock.audit_log WHERE tenant_id = '" +
                             tenant + "'");
    }
    [[nodiscard]] std::string staged() const { return server_.value("SELECT count(*) FROM rowlock.audit_staged"); }

    const test::TestLogin sealer_login_ = server_.add_login("sealer");
    std::optional<Database> sealing_;
};

class Staging : public SealerTest {};
/// The queue of notifications is the whole server's, and other tests notify.
class StagingAloneOnAServer : test::ServerOfItsOwn, public SealerTest {};

TEST_F(Staging, BelongsToTheCallersTransaction) {
    EXPECT_THROW(app_->transact(of("acme"),
                                [&](Transaction& transaction) {
                                    stage(transaction, "undone");
                                    throw std::runtime_error("no");
                                }),
                 std::runtime_error);
    app_->transact(of("acme"), [&](Transaction& transaction) {
        stage(transaction, "kept");
        EXPECT_THROW(transaction.savepoint([&] {
            stage(transaction, "undone");
            throw std::runtime_error("no");
        }),
                     std::runtime_error);
    });
    EXPECT_EQ(said(seal("acme")), "1 0 0");
    EXPECT_EQ(objects("acme"), "kept");
}

TEST_F(Staging, GivesIdsOfTheirTimeThatDifferEvenWhereTheSessionSeedsTheServersRandomNumbers) {
    app_->transact(of("acme"), [&](Transaction& transaction) {
        transaction.execute(
            {"test.stage_many", "SELECT setseed(0.5), rowlock.stage('acme', 'x') FROM generate_series(1, 2000) AS n"});
    });
    EXPECT_EQ(server_.value("SELECT count(DISTINCT entry_id) FROM rowlock.audit_staged"), "2000");
    EXPECT_EQ(
        server_.value("SELECT count(*) FROM rowlock.audit_staged"
                      " WHERE entry_id::text ~ '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'"
                      "   AND abs(('x' || left(replace(entry_id::text, '-', ''), 12))::bit(48)::bigint"
                      "           - extract(epoch FROM staged_at) * 1000) < 60000"),
        "2000");
    // The same random bits in all of them: they are in order by the fraction of the millisecond.
    EXPECT_EQ(
        server_.value("SELECT count(*) FROM (SELECT entry_id > lag(entry_id) OVER (ORDER BY staged_id) AS is_later"
                      "                        FROM rowlock.audit_staged) AS s WHERE is_later"),
        "1999");
}

TEST_F(Staging, WaitsForNobodyWhoHoldsTheHead) {
    append_many("acme", 1);
    app_->transact(of("acme"), [&](Transaction& transaction) {
        transaction.execute({"test.hold", "SELECT FROM rowlock.tenant_seq FOR UPDATE"});
        beside_->transact(of("acme", std::chrono::milliseconds(500)),
                          [&](Transaction& beside) { stage(beside, "beside"); });
    });
    EXPECT_EQ(staged(), "1");
}

/// A COMMIT that notifies waits for every other one that does.
TEST_F(StagingAloneOnAServer, NotifiesNobody) {
    // A listener in the midst of a transaction takes nothing out of the queue.
    beside_->transact({}, [](Transaction& transaction) { transaction.execute({"test.listen", "LISTEN anything"}); });
    beside_->transact({}, [&](Transaction& listener) {
        const Statement usage{"test.usage", "SELECT pg_notification_queue_usage() > 0"};
        listener.execute(usage);
        const std::string long_text(7000, 'x');
        app_->transact(of("acme"), [&](Transaction& transaction) {
            for (int i = 0; i < 10; ++i) stage(transaction, long_text + std::to_string(i));
        });
        EXPECT_FALSE(listener.execute(usage).only().boolean(0));
        app_->transact(of("acme"), [&](Transaction& transaction) {
            for (int i = 0; i < 10; ++i) {
                transaction.execute({"test.notify", "SELECT pg_notify('anything', $1)"},
                                    {long_text + std::to_string(i)});
            }
        });
        EXPECT_TRUE(listener.execute(usage).only().boolean(0)) << "the queue's use is what tells";
    });
}

TEST_F(Staging, IsRefusedForAnotherTenantForNoneAndForTheLogsOwnActions) {
    const auto refusal = [&](const TransactionPolicy& policy, const std::string& tenant, const std::string& action) {
        try {
            app_->transact(policy, [&](Transaction& transaction) {
                transaction.execute({"test.stage", "SELECT rowlock.stage($1, $2)"}, {tenant, action});
            });
        } catch (const ServerError& error) {
            return std::string(error.sqlstate());
        }
        return std::string("none");
    };
    EXPECT_EQ(refusal(of("acme"), "globex", "x"), "42501");
    EXPECT_EQ(refusal({}, "acme", "x"), "42501");
    EXPECT_EQ(refusal(of("acme"), "acme", "rowlock.key_rotation"), "22023");
    EXPECT_EQ(refusal(of("acme"), "acme", "x"), "none");
}

TEST_F(Staging, CanNotBeDoneOrUndoneByHand) {
    stage_in_one("acme", {"one"});
    for (const std::string sql :
         {"INSERT INTO rowlock.audit_staged (tenant_id, entry_id) VALUES ('acme', gen_random_uuid())",
          "DELETE FROM rowlock.audit_staged", "UPDATE rowlock.audit_staged SET object = 'other'",
          "TRUNCATE rowlock.audit_staged", "DELETE FROM rowlock.audit_quarantined"}) {
        try {
            app_->transact(of("acme"), [&](Transaction& transaction) { transaction.execute({"test.by_hand", sql}); });
            ADD_FAILURE() << sql;
        } catch (const ServerError& error) {
            EXPECT_EQ(error.sqlstate(), "42501") << sql;
        }
    }
}

TEST_F(Staging, ShowsATenantItsOwnRowsAlone) {
    stage_in_one("acme", {"a", "b"});
    stage_in_one("globex", {"c"});
    EXPECT_EQ(app_->transact(of("acme"), count_staged).entries, 2);
    EXPECT_EQ(app_->transact({}, count_staged).entries, 0);
    EXPECT_EQ(sealing_->transact({}, count_staged).entries, 3);
    const auto tenants = sealing_->transact({}, staged_tenants);
    EXPECT_THAT(tenants, ElementsAre(TenantId("acme"), TenantId("globex")));
    server_.execute(
        "INSERT INTO rowlock.audit_quarantined"
        "       (tenant_id, transaction_id, staged_id, entry_id, staged_at, reason)"
        " SELECT tenant_id, transaction_id, staged_id, entry_id, staged_at, 'test' FROM rowlock.audit_staged");
    EXPECT_EQ(app_->transact(of("acme"), count_staged).quarantined, 2);
    EXPECT_EQ(app_->transact({}, count_staged).quarantined, 0);
}

TEST_F(Staging, MakesTimeOrderedIds) {
    stage_in_one("acme", {"one", "two", "three"});
    EXPECT_EQ(server_.value("SELECT bool_and(substr(entry_id::text, 15, 1) = '7'"
                            "           AND substr(entry_id::text, 20, 1) IN ('8', '9', 'a', 'b')"
                            "           AND abs(('x' || translate(left(entry_id::text, 13), '-', ''))::bit(48)::bigint"
                            "                   - extract(epoch FROM staged_at) * 1000) < 1000) FROM "
                            "rowlock.audit_staged"),
              "t");
}

class Sealing : public SealerTest {};

TEST_F(Sealing, NumbersAndSignsAndRecordsTheTimeOfStaging) {
    append_many("acme", 2);
    stage_in_one("acme", {"one", "two"});
    const std::string times =
        server_.value("SELECT string_agg(staged_at::text, ' ' ORDER BY staged_id) FROM rowlock.audit_staged");
    EXPECT_EQ(said(seal("acme")), "2 0 0");
    expect_gapless("acme", 4);
    EXPECT_EQ(server_.value("SELECT string_agg(recorded_at::text, ' ' ORDER BY seq) FROM rowlock.audit_log"
                            " WHERE seq > 2"),
              times);
    EXPECT_EQ(staged(), "0");
    EXPECT_EQ(said(seal("acme")), "0 0 0");
}

TEST_F(Sealing, MakesTheStateRowOfANewTenant) {
    stage_in_one("new", {"one"});
    EXPECT_EQ(said(seal("new")), "1 0 0");
    expect_gapless("new", 1);
}

TEST_F(Sealing, KeepsATransactionTogetherAndInItsOrderWhateverTheLimit) {
    // Two transactions at once, whose rows get their places in turn.
    app_->transact(of("acme"), [&](Transaction& first) {
        stage(first, "a1");
        beside_->transact(of("acme"), [&](Transaction& second) {
            stage(second, "b1");
            stage(first, "a2");
            stage(second, "b2");
        });
        stage(first, "a3");
    });
    stage_in_one("acme", {"c1", "c2", "c3", "c4", "c5"});
    EXPECT_EQ(said(seal("acme", {.entries_max = 2})), "3 0 0 more");
    EXPECT_EQ(objects("acme"), "a1 a2 a3");
    EXPECT_EQ(said(seal("acme", {.entries_max = 2})), "2 0 0 more");
    EXPECT_EQ(said(seal("acme", {.bytes_max = 3})), "5 0 0 more");
    EXPECT_EQ(objects("acme"), "a1 a2 a3 b1 b2 c1 c2 c3 c4 c5");
    expect_gapless("acme", 10);
}

TEST_F(Sealing, TakesWhatIsCommittedLaterThanWhatCameAfterIt) {
    app_->transact(of("acme"), [&](Transaction& early) {
        stage(early, "early");
        beside_->transact(of("acme"), [&](Transaction& late) { stage(late, "late"); });
        EXPECT_EQ(said(seal("acme")), "1 0 0");
    });
    EXPECT_EQ(said(seal("acme")), "1 0 0");
    EXPECT_EQ(objects("acme"), "late early");
    expect_gapless("acme", 2);
}

TEST_F(Sealing, DropsTheSameEntryAndQuarantinesAnotherOfItsId) {
    const std::string id = EntryId::generate().text();
    const std::string in_log = EntryId::generate().text();
    append("acme",
           {.id = EntryId::parse(in_log), .actor = "ann", .action = "row.changed", .object = "logged", .data = "{}"});
    app_->transact(of("acme"), [&](Transaction& transaction) {
        stage(transaction, "one", id);
        stage(transaction, "one", id);
        stage(transaction, "other", id);
        stage(transaction, "logged", in_log);
        stage(transaction, "logged", in_log, "{\"x\":1}");
        stage(transaction, "last");
    });
    EXPECT_EQ(said(seal("acme")), "2 2 2");
    EXPECT_EQ(objects("acme"), "logged one last");
    EXPECT_EQ(server_.value("SELECT string_agg(object || ': ' || reason, '; ' ORDER BY staged_id)"
                            " FROM rowlock.audit_quarantined"),
              "other: entry 2 has this entry_id with other content; "
              "logged: entry 1 has this entry_id with other content");
    EXPECT_EQ(staged(), "0");
    EXPECT_EQ(sealing_->transact({}, count_staged).quarantined, 2);
    expect_gapless("acme", 3);
}

TEST_F(Sealing, ReadsOnlyWhatItTakesWhateverThePlannerKnows) {
    stage_in_one("old", std::vector<std::string>(300, "x"));
    EXPECT_EQ(said(seal("old")), "300 0 0");
    stage_in_one("old", std::vector<std::string>(300, "x"));
    server_.execute("ANALYZE rowlock.audit_log, rowlock.audit_staged");
    append_many("new", 300);
    for (int i = 0; i < 100; ++i) stage_in_one("new", {"a", "b", "c"});
    const Statement read{"test.read",
                         "SELECT string_agg(relname || ' ' || seq_tup_read + idx_tup_fetch, ', ' ORDER BY relname)"
                         "  FROM pg_stat_xact_all_tables WHERE relname IN ('audit_log', 'audit_staged')"};
    // A session of its own: the server adds what one has not reported yet from before.
    Database fresh{DatabaseOptions{.connection = server_.connection_as(sealer_login_), .role = "rowlock_sealer"}};
    const std::string rows = fresh.transact(of("new"), [&](Transaction& transaction) {
        EXPECT_EQ(said(seal_staged(transaction, log_, {.entries_max = 3})), "3 0 0 more");
        return std::string(transaction.execute(read).only().text(0));
    });
    // Found, deleted, and looked for once more; of the log nothing has these ids.
    EXPECT_THAT(rows, testing::MatchesRegex("audit_log 0, audit_staged 1?[0-9]")) << "of 300 and 600";
}

TEST_F(Sealing, SkipsAHeadThatIsTakenAndWaitsForItIfTold) {
    append_many("acme", 1);
    stage_in_one("acme", {"one"});
    std::thread waiting;
    app_->transact(of("acme"), [&](Transaction& holder) {
        holder.execute({"test.hold", "SELECT FROM rowlock.tenant_seq FOR UPDATE"});
        EXPECT_EQ(said(seal("acme")), "taken");
        waiting = std::thread([&] { report_fault([&] { EXPECT_EQ(said(seal("acme", {}, true)), "1 0 0"); }); });
        for (int i = 0; i < 2000 && server_.value("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0"; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
    });
    waiting.join();
    expect_gapless("acme", 2);
}

TEST_F(Sealing, WaitsInTheQueueOfThoseWhoAppendAfterSoManyMisses) {
    stage_in_one("acme", {"one"});
    constexpr int misses = 3;
    Sealer sealer(*sealing_, log_, {.misses_max = misses});
    std::thread waiting;
    app_->transact(of("acme"), [&](Transaction& holder) {
        static_cast<void>(log_.append(holder, {}));
        for (int i = 0; i < misses; ++i) EXPECT_EQ(sealer.round().sealed.appended, 0);
        waiting = std::thread([&] { report_fault([&] { EXPECT_EQ(sealer.round().sealed.appended, 1); }); });
        const auto queued = [&] {
            return server_.value(
                "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'advisory' AND database ="
                " (SELECT oid FROM pg_database WHERE datname = current_database())");
        };
        for (int i = 0; i < 400 && queued() == "0"; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        EXPECT_EQ(queued(), "1");
    });
    waiting.join();
    expect_gapless("acme", 2);
}

TEST_F(Sealing, WorksWithoutTheRightToPassRowLevelSecurity) {
    // A member does not inherit BYPASSRLS.
    Database as_member{server_.connection_as(sealer_login_)};
    stage_in_one("acme", {"one", "two"});
    stage_in_one("globex", {"three"});
    Sealer sealer(as_member, log_);
    const SealRound round = sealer.round();
    EXPECT_EQ(round.sealed.appended, 3);
    EXPECT_TRUE(round.faults.empty());
    expect_gapless("acme", 2);
}

TEST_F(Sealing, IsRefusedToTheAppAndAboveReadCommitted) {
    stage_in_one("acme", {"one"});
    try {
        static_cast<void>(
            app_->transact(of("acme"), [&](Transaction& transaction) { return seal_staged(transaction, log_); }));
        ADD_FAILURE() << "not refused";
    } catch (const ServerError& error) {
        EXPECT_EQ(error.sqlstate(), "42501");
    }
    TransactionPolicy policy = of("acme");
    policy.isolation = IsolationLevel::repeatable_read;
    EXPECT_THROW(static_cast<void>(sealing_->transact(
                     policy, [&](Transaction& transaction) { return seal_staged(transaction, log_); })),
                 InvalidInput);
    EXPECT_EQ(staged(), "1");
}

TEST_F(Sealing, GoesOnWithOtherTenantsWhereOneCanNotBeSealed) {
    append_many("acme", 1);
    stage_in_one("acme", {"one"});
    stage_in_one("globex", {"two"});
    const AuditLog other{Keyring::generate()};
    Sealer sealer(*sealing_, other);
    const SealRound round = sealer.round();
    EXPECT_EQ(round.sealed.appended, 1);
    ASSERT_EQ(round.faults.size(), 1U);
    EXPECT_EQ(round.faults[0].tenant, TenantId("acme"));
    EXPECT_THAT(round.faults[0].what, HasSubstr("not in the keyring"));
    EXPECT_EQ(staged(), "1");
}

TEST_F(Sealing, GetsItsTurnOnAHeadThatIsNeverFree) {
    append_many("acme", 1);
    stage_in_one("acme", {"one"});
    std::atomic<bool> stop{false};
    std::thread appenders([&] {
        in_threads(4, [&](int) {
            while (!stop) static_cast<void>(append("acme"));
        });
    });
    Sealer sealer(*sealing_, log_, {.misses_max = 3});
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (staged() != "0" && std::chrono::steady_clock::now() < end) {
        EXPECT_TRUE(sealer.round().faults.empty());
    }
    stop = true;
    appenders.join();
    EXPECT_EQ(staged(), "0");
    EXPECT_THAT(verified("acme"), HasSubstr("intact"));
}

TEST_F(Sealing, BySeveralAtOnceSealsEachRowOnceAndKeepsTransactionsWhole) {
    constexpr int writers = 4;
    const int transactions = full_or(150, 40);
    constexpr int rows = 3;
    std::atomic<int> writing{writers};
    in_threads(writers + 3, [&](int number) {
        if (number < writers) {
            Database own{server_.connection_as(login_)};
            for (int i = 0; i < transactions; ++i) {
                own.transact(of(i % 2 == 0 ? "acme" : "globex"), [&](Transaction& transaction) {
                    for (int row = 0; row < rows; ++row) stage(transaction, fmt::format("{}-{}-{}", number, i, row));
                });
            }
            --writing;
            return;
        }
        Sealer sealer(*sealing_, log_, {.limits = {.entries_max = 7}});
        while (writing > 0 || staged() != "0") EXPECT_TRUE(sealer.round().faults.empty());
    });
    for (const std::string tenant : {"acme", "globex"}) {
        expect_gapless(tenant, std::int64_t{writers} * rows * transactions / 2);
        EXPECT_EQ(server_.value("SELECT count(*) FROM (SELECT object, lead(object, 1) OVER w AS second,"
                                "          lead(object, 2) OVER w AS third FROM rowlock.audit_log WHERE tenant_id = '" +
                                tenant +
                                "' WINDOW w AS (ORDER BY seq)) AS run WHERE object LIKE '%-0'"
                                " AND (second <> left(object, -1) || '1' OR third <> left(object, -1) || '2')"),
                  "0");
    }
}

}  // namespace
}  // namespace rowlock
