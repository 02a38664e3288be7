// Appends gathered from many threads: as gapless as any, told after the commit, each caller told of its own failure.
#include <algorithm>
#include <map>
#include <set>

#include "postgres/audit_fixture.hpp"
#include "rowlock/appender.hpp"
#include "rowlock/error.hpp"
#include "support/cutting_proxy.hpp"
#include "support/test_server.hpp"

namespace rowlock {
namespace {

using namespace std::chrono_literals;

class AppenderTest : public AuditTest {
  protected:
    static AppenderOptions patient() { return {.policy = {.lock_wait_max = 120s, .deadline = 300s}}; }
    /// Sends `count` entries of a tenant and waits for all.
    static std::vector<AppendOutcome> append_all(Appender& appender, const std::string& tenant, int count) {
        std::vector<std::future<AppendOutcome>> futures;
        for (int i = 0; i < count; ++i) {
            futures.push_back(appender.append(TenantId(tenant), {.data = std::to_string(i)}));
        }
        std::vector<AppendOutcome> outcomes;
        for (auto& future : futures) outcomes.push_back(future.get());
        return outcomes;
    }
    std::int64_t transactions() const {
        return std::stoll(server_.value("SELECT count(DISTINCT xmin::text) FROM rowlock.audit_log"));
    }
    /// While it lives, nobody else can append for the tenant.
    class HeldHead {
      public:
        HeldHead(Database& database, const AuditLog& log, const std::string& tenant)
            : holder_([&database, &log, tenant, held = held_.get_future(), &taken = taken_]() mutable {
                  report_fault([&] {
                      database.transact(of(tenant), [&](Transaction& transaction) {
                          static_cast<void>(log.append(transaction, {.action = "held"}));
                          transaction.execute({"test.flush", "SELECT"});
                          taken.set_value();
                          held.wait_for(120s);
                      });
                  });
              }) {
            taken_.get_future().wait_for(120s);
        }
        ~HeldHead() { release(); }
        HeldHead(const HeldHead&) = delete;
        HeldHead& operator=(const HeldHead&) = delete;
        void release() {
            if (!holder_.joinable()) return;
            held_.set_value();
            holder_.join();
        }

      private:
        std::promise<void> held_;
        std::promise<void> taken_;
        std::thread holder_;
    };
};

TEST_F(AppenderTest, NumbersWithoutGapAndTellsEachCallerItsOwn) {
    Appender appender(*app_, log_, patient());
    const int each = full_or(500, 100);
    std::array<std::vector<std::int64_t>, 16> told;
    in_threads(16, [&](int thread) {
        for (int i = 0; i < each; ++i) {
            const std::string tenant = i % 2 == 0 ? "acme" : "tenant-" + std::to_string(i % 7);
            const AuditEntry entry{.actor = std::to_string(thread), .data = std::to_string(i)};
            const auto outcome = appender.append(TenantId(tenant), entry).get();
            if (tenant == "acme") told.at(static_cast<std::size_t>(thread)).push_back(std::get<Appended>(outcome).seq);
        }
    });
    std::set<std::int64_t> all;
    for (const auto& some : told) {
        EXPECT_TRUE(std::ranges::is_sorted(some)) << "one thread's entries in its order";
        all.insert(some.begin(), some.end());
    }
    const auto count = static_cast<std::int64_t>(all.size());
    EXPECT_EQ(count, 16 * (each / 2 + each % 2));
    EXPECT_EQ(*all.rbegin(), count);
    expect_gapless("acme", count);
    EXPECT_EQ(server_.value("SELECT count(*) FROM rowlock.audit_log"), std::to_string(16 * each));
}

TEST_F(AppenderTest, WritesWhatHasGatheredAsOneTransaction) {
    Appender appender(*app_, log_, patient());
    HeldHead head(*beside_, log_, "acme");
    std::vector<std::future<AppendOutcome>> futures;
    for (int i = 0; i < 100; ++i) futures.push_back(appender.append(TenantId("acme"), {.data = std::to_string(i)}));
    EXPECT_EQ(futures.back().wait_for(0s), std::future_status::timeout) << "told only after the commit";
    head.release();
    for (std::int64_t i = 0; i < 100; ++i) {
        EXPECT_EQ(said(futures[static_cast<std::size_t>(i)].get()), fmt::format("appended {}", i + 2));
    }
    // The holder's, the one that went out at once and waited, and all that gathered behind it.
    EXPECT_LE(transactions(), 3);
    expect_gapless("acme", 101);
}

TEST_F(AppenderTest, TellsACallerOfItsOwnFailureOnly) {
    Appender appender(*app_, log_, patient());
    HeldHead head(*beside_, log_, "acme");
    std::vector<std::future<AppendOutcome>> futures;
    for (int i = 0; i < 60; ++i) {
        AuditEntry entry{.data = std::to_string(i)};
        if (i % 20 == 7) entry.data = "{no json";
        if (i % 20 == 9) entry.action = "rowlock.forged";
        futures.push_back(appender.append(TenantId("acme"), entry));
    }
    head.release();
    for (int i = 0; i < 60; ++i) {
        auto& future = futures[static_cast<std::size_t>(i)];
        if (i % 20 == 7) {
            EXPECT_THROW(
                {
                    try {
                        static_cast<void>(future.get());
                    } catch (const ServerError& error) {
                        EXPECT_EQ(error.sqlstate(), "22P02");
                        throw;
                    }
                },
                ServerError);
        } else if (i % 20 == 9) {
            EXPECT_THROW(static_cast<void>(future.get()), InvalidInput);
        } else {
            EXPECT_NO_THROW(static_cast<void>(future.get())) << i;
        }
    }
    EXPECT_EQ(server_.value("SELECT string_agg(data::text, ' ' ORDER BY seq) = (SELECT string_agg(g::text, ' ')"
                            "  FROM generate_series(0, 59) AS g WHERE g % 20 NOT IN (7, 9))"
                            "  FROM rowlock.audit_log WHERE action IS NULL"),
              "t")
        << "the others, in their order";
    expect_gapless("acme", 55);
}

TEST_F(AppenderTest, KeepsNoTenantWaitingForAnother) {
    Appender appender(*app_, log_, patient());
    HeldHead head(*beside_, log_, "acme");
    auto blocked = appender.append(TenantId("acme"), {});
    EXPECT_EQ(said(append_all(appender, "globex", 3)), "appended 1, appended 2, appended 3");
    EXPECT_EQ(blocked.wait_for(0s), std::future_status::timeout);
    head.release();
    EXPECT_EQ(said(blocked.get()), "appended 2");
}

TEST_F(AppenderTest, IsBusyToThoseWhoseTransactionWasAndWorksOn) {
    Appender appender(*app_, log_, {.policy = {.lock_wait_max = 50ms}});
    HeldHead head(*beside_, log_, "acme");
    EXPECT_THROW(static_cast<void>(appender.append(TenantId("acme"), {}).get()), Busy);
    head.release();
    EXPECT_EQ(said(appender.append(TenantId("acme"), {}).get()), "appended 2");
}

TEST_F(AppenderTest, AppendsAnIdOnceWhoeverGivesIt) {
    Appender appender(*app_, log_, patient());
    const AuditEntry entry{.data = "1"};
    HeldHead head(*beside_, log_, "acme");
    auto one = appender.append(TenantId("acme"), entry);
    auto same = appender.append(TenantId("acme"), entry);
    auto other = appender.append(TenantId("acme"), {.id = entry.id, .data = "2"});
    head.release();
    EXPECT_EQ(said({one.get(), same.get(), other.get()}), "appended 2, already 2, taken 2");
}

TEST_F(AppenderTest, SettlesACommitInDoubtByTheEntryIds) {
    test::CuttingProxy proxy{test::test_server().directory};
    Database wired(DatabaseOptions{.connection = proxy.through(server_.connection_as(login_))});
    Appender appender(wired, log_, patient());
    std::int64_t seq = 0;
    for (const test::Cut cut : {test::Cut::before_commit, test::Cut::after_commit}) {
        for (int round = 0; round < 5; ++round) {
            proxy.cut_next(cut);
            EXPECT_EQ(said(append_all(appender, "acme", 1)), fmt::format("appended {}", ++seq));
        }
    }
    EXPECT_EQ(proxy.cuts(), 10);
    expect_gapless("acme", 10);
}

TEST_F(AppenderTest, LetsCallersWaitWhileTooMuchIsPending) {
    AppenderOptions options = patient();
    options.pending_max = 3;
    Appender appender(*app_, log_, options);
    HeldHead head(*beside_, log_, "acme");
    std::atomic<int> accepted = 0;
    std::vector<std::future<AppendOutcome>> futures;
    std::thread giver([&] {
        for (int i = 0; i < 5; ++i) {
            futures.push_back(appender.append(TenantId("acme"), {}));
            ++accepted;
        }
    });
    for (int i = 0; i < 2000 && accepted < 3; ++i) std::this_thread::sleep_for(5ms);
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(accepted, 3);
    head.release();
    giver.join();
    for (auto& future : futures) future.get();
    expect_gapless("acme", 6);
}

TEST_F(AppenderTest, DrainsWhenItCloses) {
    std::vector<std::future<AppendOutcome>> futures;
    {
        Appender appender(*app_, log_, patient());
        for (int i = 0; i < 500; ++i) futures.push_back(appender.append(TenantId("acme"), {}));
    }
    for (auto& future : futures) EXPECT_EQ(future.wait_for(0s), std::future_status::ready);
    expect_gapless("acme", 500);
}

TEST_F(AppenderTest, RefusesLimitsThatLetNothingThrough) {
    EXPECT_THROW(Appender(*app_, log_, {.writers = 0}), InvalidInput);
    EXPECT_THROW(Appender(*app_, log_, {.batch_entries_max = 0}), InvalidInput);
    EXPECT_THROW(Appender(*app_, log_, {.pending_max = 0}), InvalidInput);
}

}  // namespace
}  // namespace rowlock
