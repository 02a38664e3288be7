// Whoever appends waits for its own tenant and no other, never for longer than the policy says, and is told so.
#include <atomic>
#include <future>

#include "postgres/audit_fixture.hpp"

namespace rowlock {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// What a client that knows nothing of the queue does. Locks: the state row, FOR UPDATE, until the transaction ends.
constexpr Statement bypass_the_queue{"test.bypass_the_queue",
                                     "SELECT FROM rowlock.tenant_seq WHERE tenant_id = $1 FOR UPDATE"};
/// Locks: the state row, FOR SHARE, until the transaction ends; any number may have that.
constexpr Statement share_the_row{"test.share_the_row",
                                  "SELECT FROM rowlock.tenant_seq WHERE tenant_id = $1 FOR SHARE"};

class AuditLogThatIsBusy : public AuditTest {
  protected:
    /// Appends on a connection of its own and expects to be told Busy, by the statement that waited.
    void expect_busy(const TransactionPolicy& policy, std::string_view statement) {
        const auto began = Clock::now();
        try {
            append_on(*beside_, policy, {});
            ADD_FAILURE() << "appended, though the head was held";
        } catch (const Busy& busy) {
            EXPECT_EQ(busy.sqlstate(), "55P03");
            EXPECT_EQ(busy.limit(), policy.lock_wait_max.limit());
            EXPECT_EQ(busy.report().statement, statement);
            EXPECT_GE(Clock::now() - began, policy.lock_wait_max.limit());
        }
    }
    void while_held(const std::string& tenant, const std::function<void()>& body) {
        app_->transact(of(tenant), [&](Transaction& transaction) {
            static_cast<void>(log_.append(transaction, {.actor = "holder"}));
            body();
        });
    }
};

TEST_F(AuditLogThatIsBusy, LetsOtherTenantsAppend) {
    append("acme");
    while_held("acme", [&] {
        // Each would wait for the transaction around it, and so until the limit.
        for (int i = 0; i < 50; ++i) {
            EXPECT_EQ(said(append_on(*beside_, of("tenant-" + std::to_string(i), 20s), {})), "appended 1");
            EXPECT_EQ(said(append_on(*beside_, of("globex", 20s), {})), "appended " + std::to_string(i + 1));
        }
    });
    expect_gapless("globex", 50);
    expect_gapless("acme", 2);
}

TEST_F(AuditLogThatIsBusy, LetsEverybodyListAndVerify) {
    append_many("acme", 5);
    while_held("acme", [&] {
        beside_->transact(of("acme"),
                          [](Transaction& transaction) { EXPECT_EQ(AuditLog::list(transaction, 1, 10).size(), 5U); });
        EXPECT_EQ(verified("acme"), "intact 5");
    });
}

TEST_F(AuditLogThatIsBusy, SaysSoAtTheLimitToWhoWaitsInTheQueue) {
    append("acme");
    while_held("acme", [&] { expect_busy(of("acme", 300ms), "audit.join_queue"); });
    expect_gapless("acme", 2);
}

TEST_F(AuditLogThatIsBusy, SaysSoAtTheLimitToWhoWaitsForTheRow) {
    append("acme");
    superuser_.transact({}, [&](Transaction& transaction) {
        transaction.execute(bypass_the_queue, {"acme"});
        expect_busy(of("acme", 300ms), "audit.lock_head");
        TransactionPolicy serializable = of("acme", 300ms);
        serializable.isolation = IsolationLevel::serializable;
        expect_busy(serializable, "audit.lock_head");
    });
    expect_gapless("acme", 1);
}

TEST_F(AuditLogThatIsBusy, SaysSoAtTheLimitToWhoWaitsForAnotherFirstUser) {
    while_held("acme", [&] {
        for (const IsolationLevel isolation : {IsolationLevel::repeatable_read, IsolationLevel::serializable}) {
            TransactionPolicy above = of("acme", 300ms);
            above.isolation = isolation;
            expect_busy(above, "audit.make_head");
        }
        expect_busy(of("acme", 300ms), "audit.join_queue");
    });
    expect_gapless("acme", 1);
}

TEST_F(AuditLogThatIsBusy, SaysSoToWhoAppendsForSeveral) {
    append("b");
    const std::vector<TenantEntry> entries{{TenantId("a"), {}}, {TenantId("b"), {}}};
    while_held("b", [&] {
        EXPECT_THROW(static_cast<void>(beside_->transact(
                         {.lock_wait_max = 300ms},
                         [&](Transaction& transaction) { return log_.append_all(transaction, entries); })),
                     Busy);
    });
    EXPECT_EQ(verified("a"), "empty 0");
    expect_gapless("b", 2);
}

TEST_F(AuditLogThatIsBusy, SaysSoAtTheLimitOfTheStatementThoughEachOfFiveHoldersHoldsForLess) {
    append("acme");
    constexpr int holders = 5;
    constexpr auto limit = 1000ms;
    constexpr auto hold = 400ms;
    std::atomic<int> holding = 0;
    std::promise<void> waiter_began;
    const std::shared_future<void> began = waiter_began.get_future().share();
    std::vector<std::thread> crowd;
    for (int i = 0; i < holders; ++i) {
        crowd.emplace_back([&, i] {
            superuser_.transact({}, [&](Transaction& transaction) {
                transaction.execute(share_the_row, {"acme"});
                ++holding;
                began.wait();
                // One after the other: a wait that starts again with each of them would never come to its limit.
                std::this_thread::sleep_for(hold * (i + 1));
            });
        });
    }
    while (holding < holders) std::this_thread::sleep_for(1ms);
    waiter_began.set_value();
    expect_busy(of("acme", limit), "audit.lock_head");
    for (std::thread& holder : crowd) holder.join();
    expect_gapless("acme", 1);
}

TEST_F(AuditLogThatIsBusy, LeavesTheSessionUsable) {
    append("acme");
    Database one(DatabaseOptions{.connection = server_.connection_as(login_), .connections_max = 1});
    const auto backend = [&] {
        return one.transact(of("acme"), [](Transaction& transaction) {
            transaction.execute({"test.touch", "SELECT"});
            return transaction.backend_pid();
        });
    };
    const int before = backend();
    while_held("acme", [&] {
        for (int i = 0; i < 3; ++i) EXPECT_THROW(append_on(one, of("acme", 50ms), {}), Busy);
    });
    EXPECT_EQ(backend(), before);
    EXPECT_EQ(said(append_on(one, of("acme"), {})), "appended 3");
    expect_gapless("acme", 3);
}

TEST_F(AuditLogThatIsBusy, CanBeCaughtInASavepoint) {
    append("acme");
    while_held("acme", [&] {
        beside_->transact(of("acme", 100ms), [&](Transaction& transaction) {
            EXPECT_THROW(transaction.savepoint([&] { return log_.append(transaction, {}); }), Busy);
            EXPECT_EQ(AuditLog::list(transaction, 1, 10).size(), 1U);
        });
    });
    expect_gapless("acme", 2);
}

TEST_F(AuditLogThatIsBusy, IsAValueToWhoAsksForOne) {
    append("acme");
    const auto with_value = [&](Transaction& transaction) { return log_.append(transaction, {}); };
    const auto without_value = [&](Transaction& transaction) { static_cast<void>(log_.append(transaction, {})); };
    while_held("acme", [&] {
        const auto outcome = beside_->try_transact(of("acme", 100ms), with_value);
        ASSERT_TRUE(std::holds_alternative<Busy>(outcome));
        EXPECT_EQ(std::get<Busy>(outcome).sqlstate(), "55P03");
        EXPECT_TRUE(std::holds_alternative<Busy>(beside_->try_transact(of("acme", 100ms), without_value)));
    });
    EXPECT_EQ(said(std::get<AppendOutcome>(beside_->try_transact(of("acme"), with_value))), "appended 3");
    EXPECT_TRUE(std::holds_alternative<std::monostate>(beside_->try_transact(of("acme"), without_value)));
    expect_gapless("acme", 4);
}

TEST_F(AuditLogThatIsBusy, IsAskedAgainIfThePolicySaysSo) {
    append("acme");
    TransactionPolicy policy = of("acme", 50ms);
    policy.retry_busy = true;
    policy.attempts_max = 10000;
    std::atomic<int> runs = 0;
    std::thread waiter;
    while_held("acme", [&] {
        waiter = std::thread([&] {
            const auto body = [&](Transaction& transaction) {
                ++runs;
                return log_.append(transaction, {});
            };
            EXPECT_EQ(said(beside_->transact(policy, body)), "appended 3");
        });
        for (int i = 0; i < 60000 && runs < 3; ++i) std::this_thread::sleep_for(1ms);
    });
    waiter.join();
    EXPECT_GE(runs, 3);
    expect_gapless("acme", 3);
}

}  // namespace
}  // namespace rowlock
