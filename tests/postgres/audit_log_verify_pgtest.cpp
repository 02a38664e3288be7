// Verifying what is untouched: no false alarm, for whoever may look, and with nothing left out.
#include <fmt/core.h>
#include <gmock/gmock.h>

#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "audit/log_reader.hpp"
#include "postgres/audit_fixture.hpp"
#include "support/test_server.hpp"

namespace rowlock {
namespace {

using testing::ElementsAre;

class AuditLogVerification : public AuditTest {
  protected:
    /// Random batches for a tenant, by a keyring that is rotated now and then. Gives back how many entries there are.
    std::int64_t append_at_random(const std::string& tenant, std::mt19937& dice) {
        std::int64_t last = 0;
        for (auto batch = dice() % 6; batch > 0; --batch) {
            if (dice() % 4 == 0) rotated_ = rotated_.rotated();
            const AuditLog log(rotated_);
            std::vector<TenantEntry> entries(1 + dice() % 9, TenantEntry{TenantId(tenant), {}});
            for (TenantEntry& entry : entries) {
                entry.entry.id = EntryId::generate();
                if (dice() % 2 == 0) entry.entry.actor = std::string(dice() % 5, 'a');
                if (dice() % 2 == 0) entry.entry.data = std::to_string(dice());
            }
            const auto outcomes = app_->transact(
                of(tenant), [&](Transaction& transaction) { return log.append_all(transaction, entries); });
            last = std::get<Appended>(outcomes.back()).seq;
        }
        return last;
    }

    Keyring rotated_ = keyring_;
};

TEST_F(AuditLogVerification, RaisesNoFalseAlarmOnRandomLogs) {
    std::mt19937 dice(11);
    for (int round = 0; round < full_or(1000, 60); ++round) {
        const std::string tenant = fmt::format("tenant-{}", round);
        const std::int64_t count = append_at_random(tenant, dice);
        const VerifyOptions options{.progress = {}, .chunk_entries = 1 + round % 20};
        const AuditLog log(rotated_);
        const Verification verification = superuser_.transact(
            {}, [&](Transaction& transaction) { return log.verify(transaction, TenantId(tenant), options); });
        ASSERT_EQ(told(verification), fmt::format("{} {}", count == 0 ? "empty" : "intact", count)) << round;
    }
}

TEST_F(AuditLogVerification, ReadsEveryEntryOnceWhateverTheChunksAre) {
    constexpr int count = 23;
    append_many("acme", count);
    for (const std::int64_t chunk : {1, 2, 7, count - 1, count, count + 1, 1000000}) {
        std::vector<std::int64_t> progress;
        VerifyOptions options{.progress = {}, .chunk_entries = chunk};
        options.progress = [&](std::int64_t done, std::int64_t all) {
            progress.push_back(done);
            EXPECT_EQ(all, count);
        };
        EXPECT_EQ(told(verify("acme", options)), "intact 23") << chunk;
        for (std::size_t i = 0; i < progress.size(); ++i) {
            EXPECT_LE(progress[i], static_cast<std::int64_t>(i + 1) * chunk) << chunk;
        }
    }
}

TEST_F(AuditLogVerification, IsForTheTenantItselfAndForAuditors) {
    append_many("acme", 3);
    append_many("globex", 2);
    Database auditor(DatabaseOptions{.connection = server_.connection(), .role = "rowlock_auditor"});
    const auto told_by = [&](Database& database, const TransactionPolicy& policy, const std::string& tenant) {
        return told(database.transact(
            policy, [&](Transaction& transaction) { return log_.verify(transaction, TenantId(tenant)); }));
    };
    EXPECT_EQ(told_by(*app_, of("acme"), "acme"), "intact 3");
    EXPECT_EQ(told_by(*app_, of("acme"), "globex"), "empty 0") << "not visible, and so not called intact";
    EXPECT_EQ(told_by(*app_, {}, "acme"), "empty 0");
    EXPECT_EQ(told_by(auditor, {}, "acme"), "intact 3");
    EXPECT_EQ(told_by(auditor, {}, "globex"), "intact 2");
}

TEST_F(AuditLogVerification, HasAListOfAllTenantsEvenOfThoseWithoutAStateRow) {
    append_many("b", 2);
    append_many("a", 2);
    append_many("C", 1);
    superuser_.transact({}, [&](Transaction& transaction) {
        transaction.execute_script({"test.tamper",
                                    "ALTER TABLE rowlock.tenant_seq DISABLE TRIGGER ALL;"
                                    "DELETE FROM rowlock.tenant_seq WHERE tenant_id = 'a';"
                                    "ALTER TABLE rowlock.audit_log DISABLE TRIGGER ALL;"
                                    "DELETE FROM rowlock.audit_log WHERE tenant_id = 'C'"});
    });
    const auto tenants = [](Database& database, const TransactionPolicy& policy) {
        return database.transact(policy, [](Transaction& transaction) { return AuditLog::tenants(transaction); });
    };
    EXPECT_THAT(tenants(superuser_, {}), ElementsAre(TenantId("C"), TenantId("a"), TenantId("b")));
    EXPECT_THAT(tenants(*app_, of("b")), ElementsAre(TenantId("b")));
    EXPECT_THAT(tenants(*app_, {}), ElementsAre());
}

TEST_F(AuditLogVerification, SeesOneSnapshotAboveReadCommitted) {
    append_many("acme", 5);
    TransactionPolicy policy;
    policy.isolation = IsolationLevel::repeatable_read;
    superuser_.transact(policy, [&](Transaction& transaction) {
        const VerifyOptions options{.progress = {}, .chunk_entries = 2};
        EXPECT_EQ(told(log_.verify(transaction, TenantId("acme"), options)), "intact 5");
        append_many("acme", 5);
        EXPECT_EQ(told(log_.verify(transaction, TenantId("acme"), options)), "intact 5");
    });
    EXPECT_EQ(verified("acme"), "intact 10");
}

TEST_F(AuditLogVerification, DoesNotReportWhatIsAppendedMeanwhile) {
    append_many("acme", 10);
    int chunks = 0;
    VerifyOptions options{.progress = {}, .chunk_entries = 1};
    options.progress = [&](std::int64_t, std::int64_t) {
        append("acme");
        ++chunks;
    };
    EXPECT_EQ(told(verify("acme", options)), "intact 10");
    EXPECT_GE(chunks, 10);
    EXPECT_EQ(verified("acme"), fmt::format("intact {}", 10 + chunks));
}

/// Reads three entries, a chunk each; while it reads the second one, `meanwhile` is run.
/// On a server of its own, since whoever writes on the server counts.
class GivingWay : test::ServerOfItsOwn, public AuditTest {
  protected:
    using Rests = std::vector<std::chrono::nanoseconds>;

    void SetUp() override {
        AuditTest::SetUp();
        append_many("acme", 3);
    }

    Rests rests(const TransactionPolicy& policy, const std::function<void()>& meanwhile) {
        Rests rests;
        superuser_.transact(policy, [&](Transaction& transaction) {
            const TenantId tenant("acme");
            LogRange range;
            read_range(transaction, tenant, range);
            const auto next_chunk = [&](std::int64_t begins) {
                if (begins == 2) meanwhile();
            };
            const auto piece = [](std::span<const std::byte>) {};
            read_pieces(transaction, tenant, range,
                        {1, next_chunk, piece, [&](std::chrono::nanoseconds rest) { rests.push_back(rest); }});
        });
        return rests;
    }

    /// The server itself may write, to gather statistics, but not in every one of so many readings.
    bool rests_at_some_time(std::size_t times, const std::function<void()>& meanwhile) {
        constexpr int readings_max = 50;
        for (int i = 0; i < readings_max; ++i) {
            if (rests({}, meanwhile).size() == times) return true;
        }
        return false;
    }
};

TEST_F(GivingWay, RestsAfterEachChunkDuringWhichAnotherTransactionWrote) {
    EXPECT_TRUE(rests_at_some_time(1, [&] { append("globex"); }));
}

TEST_F(GivingWay, DoesNotRestWhereNobodyWrote) {
    EXPECT_TRUE(rests_at_some_time(0, [] {}));
    EXPECT_TRUE(rests_at_some_time(0, [&] { list("globex"); }));
}

TEST_F(GivingWay, RestsLongerThanTheChunkTookAndNotUntilTheServerLosesPatience) {
    constexpr auto chunk = std::chrono::milliseconds(20);
    const auto slow_chunk = [&] {
        append("globex");
        std::this_thread::sleep_for(chunk);
    };
    EXPECT_THAT(rests({}, slow_chunk), testing::Contains(testing::Ge(chunk * 2)));
    const auto patience = std::chrono::milliseconds(2000);
    const auto slower_chunk = [&] {
        append("globex");
        std::this_thread::sleep_for(patience * 2 / 5);
    };
    EXPECT_THAT(rests({.idle_max = patience}, slower_chunk), testing::Contains(patience / 2));
}

TEST_F(GivingWay, CanNotTellAboveReadCommitted) {
    EXPECT_TRUE(rests({.isolation = IsolationLevel::repeatable_read}, [&] { append("globex"); }).empty());
}

}  // namespace
}  // namespace rowlock
