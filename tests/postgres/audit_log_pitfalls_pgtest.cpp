// Pitfalls of those who did this before, and facts of PostgreSQL that the design leans on.
#include <gmock/gmock.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <thread>

#include "postgres/audit_fixture.hpp"
#include "rowlock/error.hpp"
#include "support/test_server.hpp"

namespace rowlock {
namespace {

using testing::HasSubstr;

class AuditLogPitfalls : public AuditTest {};

class SnapshotsOfTheAuditLog : test::ServerOfItsOwn, public AuditTest {
  protected:
    /// The oldest transaction whose dead rows must stay for the session of `pid`; 0: none.
    std::int64_t oldest_needed_by(int pid) const {
        return std::stoll(server_.value(
            fmt::format("SELECT coalesce(backend_xmin::text, '0') FROM pg_stat_activity WHERE pid = {}", pid)));
    }
};

TEST_F(AuditLogPitfalls, ATransactionThatBeganEarlierAndAppendsLaterIsNotRecordedEarlier) {
    app_->transact(of("acme"), [&](Transaction& transaction) {
        transaction.execute({"test.begin", "SELECT 1"});
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        EXPECT_EQ(said(append_on(*beside_, of("acme"), {})), "appended 1");
        EXPECT_EQ(said(log_.append(transaction, {})), "appended 2");
    });
    in_threads(4, [&](int) {
        for (int i = 0; i < full_or(100, 20); ++i) append("acme");
    });
    EXPECT_EQ(server_.value("SELECT count(*) FROM (SELECT recorded_at < lag(recorded_at) OVER (ORDER BY seq) AS back"
                            "                        FROM rowlock.audit_log) AS entry WHERE back"),
              "0");
}

TEST_F(AuditLogPitfalls, AnAppendNeedsNoSecondConnectionAndSoDoesNotLockUpThePool) {
    server_.execute("CREATE TABLE public.orders (id bigint); GRANT INSERT ON public.orders TO rowlock_app");
    Database one(DatabaseOptions{.connection = server_.connection_as(login_),
                                 .connections_max = 1,
                                 .connect_wait_max = std::chrono::seconds(60)});
    in_threads(8, [&](int number) {
        for (int i = 0; i < 10; ++i) {
            one.transact(of("acme"), [&](Transaction& transaction) {
                transaction.execute({"test.order", "INSERT INTO public.orders VALUES ($1)"}, {number});
                static_cast<void>(log_.append(transaction, {}));
            });
        }
    });
    EXPECT_EQ(server_.value("SELECT count(*) FROM public.orders"), "80");
    expect_gapless("acme", 80);
}

/// Two transactions append and change a row, the one in this order, the other in that.
TEST_F(AuditLogPitfalls, AnAppendBeforeARowDeadlocksWithARowBeforeAnAppend) {
    server_.execute(
        "CREATE TABLE public.invoice (paid int); INSERT INTO public.invoice VALUES (0);"
        "GRANT SELECT, UPDATE ON public.invoice TO rowlock_app");
    constexpr Statement pay{"test.pay", "UPDATE public.invoice SET paid = paid + 1", true};
    TransactionPolicy once = of("acme", std::chrono::seconds(30));
    once.attempts_max = 1;
    std::atomic<int> deadlocks{0};
    std::barrier both_hold_one(2);
    in_threads(2, [&](int number) {
        try {
            app_->transact(once, [&](Transaction& transaction) {
                const auto append_one = [&] { static_cast<void>(log_.append(transaction, {})); };
                number == 0 ? append_one() : static_cast<void>(transaction.execute(pay));
                both_hold_one.arrive_and_wait();
                number == 0 ? static_cast<void>(transaction.execute(pay)) : append_one();
            });
        } catch (const ServerError& error) {
            EXPECT_EQ(error.sqlstate(), "40P01");
            ++deadlocks;
        }
    });
    EXPECT_EQ(deadlocks, 1);
    const int rounds = full_or(50, 10);
    in_threads(4, [&](int) {
        for (int i = 0; i < rounds; ++i) {
            app_->transact(once, [&](Transaction& transaction) {
                transaction.execute(pay);
                static_cast<void>(log_.append(transaction, {}));
            });
        }
    });
    expect_gapless("acme", 1 + std::int64_t{4} * rounds);
}

TEST_F(SnapshotsOfTheAuditLog, VerifyingKeepsNoSnapshotFromOneChunkToTheNext) {
    append_many("acme", 6);
    const auto seen_at_chunks = [&](IsolationLevel level) {
        std::vector<std::int64_t> seen;
        TransactionPolicy policy;
        policy.isolation = level;
        superuser_.transact(policy, [&](Transaction& transaction) {
            VerifyOptions options{.progress = {}, .chunk_entries = 2};
            options.progress = [&](std::int64_t, std::int64_t) {
                seen.push_back(oldest_needed_by(transaction.backend_pid()));
                append("globex");
            };
            EXPECT_EQ(told(log_.verify(transaction, TenantId("acme"), options)), "intact 6");
        });
        return seen;
    };
    const auto moving = seen_at_chunks(IsolationLevel::read_committed);
    ASSERT_EQ(moving.size(), 3U);
    EXPECT_LT(moving[0], moving[1]);
    EXPECT_LT(moving[1], moving[2]);
    const auto standing = seen_at_chunks(IsolationLevel::repeatable_read);
    EXPECT_EQ(standing[0], standing[2]) << "of one snapshot for all it would be seen";
}

TEST_F(SnapshotsOfTheAuditLog, ALongTransactionBloatsTheStateRowOnlyWhileItIsOpen) {
    append("acme");
    const auto pages = [&] {
        return std::stoll(server_.value("SELECT pg_relation_size('rowlock.tenant_seq') / 8192"));
    };
    const auto append_some = [&] {
        for (int i = 0; i < 400; ++i) append("acme");
    };
    append_some();
    EXPECT_EQ(pages(), 1) << "each new version of the row takes the place of an older one";
    TransactionPolicy policy;
    policy.isolation = IsolationLevel::repeatable_read;
    superuser_.transact(policy, [&](Transaction& transaction) {
        transaction.execute({"test.snapshot", "SELECT count(*) FROM rowlock.tenant_seq"});
        append_some();
        EXPECT_GT(pages(), 1) << "what the long transaction may still see must stay";
    });
    const auto grown_to = pages();
    append_some();
    EXPECT_LE(pages(), grown_to + 1) << "and no longer than it";
}

TEST_F(AuditLogPitfalls, PostgresqlRefusesCopyFromUnderRowLevelSecuritySoEntriesGoInAsArrays) {
    server_.execute(
        "CREATE TABLE public.walled (tenant_id text); ALTER TABLE public.walled ENABLE ROW LEVEL SECURITY;"
        "CREATE POLICY own ON public.walled USING (true) WITH CHECK (true);"
        "GRANT SELECT, INSERT ON public.walled TO rowlock_app");
    app_->transact({}, [](Transaction& transaction) {
        transaction.execute({"test.insert", "INSERT INTO public.walled SELECT unnest($1::text[])"}, {"{a,b}"});
    });
    try {
        app_->transact(
            {}, [](Transaction& transaction) { transaction.execute({"test.copy", "COPY public.walled FROM STDIN"}); });
        ADD_FAILURE() << "COPY FROM was let in: entries could go in faster";
    } catch (const ServerError& refused) {
        EXPECT_EQ(refused.sqlstate(), "0A000");
        EXPECT_THAT(refused.what(), HasSubstr("row-level security"));
    }
}

TEST_F(AuditLogPitfalls, StagingNotifiesNobodySinceThatWouldSerialiseTheCommitsOfTheWholeServer) {
    EXPECT_EQ(server_.value("SELECT count(*) FROM pg_proc AS f WHERE f.pronamespace = 'rowlock'::regnamespace"
                            "   AND f.prosrc ~* '(pg_notify|\\mnotify\\M)'"),
              "0");
    EXPECT_EQ(server_.value("SELECT count(*) FROM pg_proc WHERE pronamespace = 'rowlock'::regnamespace"
                            "   AND proname = 'stage' AND prolang = (SELECT oid FROM pg_language WHERE lanname = "
                            "'plpgsql')"),
              "1");
}

}  // namespace
}  // namespace rowlock
