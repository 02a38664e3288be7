#include <thread>

#include "cli/command_test.hpp"
#include "rowlock/database.hpp"

namespace rowlock::test {
namespace {

using testing::HasSubstr;
using testing::Not;

using StatusCommand = CommandOnDatabaseTest;

TEST_F(StatusCommand, CountsTheLedgerAndSaysThatNobodyIsThere) {
    EXPECT_THAT(on_database({"status"}).output, HasSubstr("no tenant, or none that this login may see"));
    for (const char* const tenant : {"acme", "acme", "globex"}) {
        ASSERT_EQ(on_database({"append", "--tenant", tenant, "--action", "x"}).exit_code, 0);
    }
    const ProcessResult result = on_database({"status"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.output, HasSubstr("ledger  2 tenants, 3 entries, "));
    EXPECT_THAT(result.output, HasSubstr("the longest: acme 2, globex 1"));
    EXPECT_THAT(result.output, HasSubstr("locks   nobody writes to rowlock's tables just now"));
    const std::string metrics = on_database({"status", "--prometheus"}).output;
    EXPECT_THAT(metrics, HasSubstr("# TYPE rowlock_entries gauge\nrowlock_entries 3\n"));
    EXPECT_THAT(metrics, HasSubstr("rowlock_sessions_waiting 0\n"));
    const ProcessResult both = on_database({"status", "--prometheus", "--json"});
    EXPECT_EQ(both.exit_code, 2);
    expect_one_line(both, {"--json or --prometheus, not both"});
}

TEST_F(StatusCommand, TellsWhoHoldsAndWhoWaitsForWhom) {
    ASSERT_EQ(on_database({"append", "--tenant", "acme", "--action", "x"}).exit_code, 0);
    Database holder(DatabaseOptions{.connection = database_.connection(), .application_name = "a long report"});
    Database waiter(DatabaseOptions{.connection = database_.connection(), .application_name = "billing"});
    int waiter_pid = 0;
    std::thread waiting;
    holder.transact({.tenant = TenantId("acme")}, [&](Transaction& held) {
        const Statement lock{"test.lock", "SELECT FROM rowlock.tenant_seq WHERE tenant_id = 'acme' FOR UPDATE", true};
        held.execute(lock);
        waiting = std::thread([&] {
            waiter.transact({.tenant = TenantId("acme"), .lock_wait_max = std::chrono::seconds(20)},
                            [&](Transaction& other) {
                                waiter_pid = other.backend_pid();
                                other.execute(lock);
                            });
        });
        const std::string pid = std::to_string(held.backend_pid());
        std::string told;
        for (int i = 0; i < 200 && told.find("\"blocked_by\":[" + pid) == std::string::npos; ++i) {
            told = on_database({"status", "--json"}).output;
        }
        EXPECT_THAT(told, HasSubstr("\"application\":\"billing\""));
        EXPECT_THAT(told, HasSubstr("\"tables\":\"tenant_seq\""));
        EXPECT_THAT(told, HasSubstr("\"blocked_by\":[" + pid + "]"));
        const std::string screen = on_database({"status"}).output;
        EXPECT_THAT(screen, HasSubstr("2 sessions on rowlock's tables, 1 waiting"));
        EXPECT_THAT(screen, HasSubstr("a long report"));
        EXPECT_THAT(screen, HasSubstr(pid + ", for "));
        EXPECT_THAT(screen, HasSubstr("the oldest transaction is "));
    });
    waiting.join();
    EXPECT_NE(waiter_pid, 0);
    EXPECT_THAT(on_database({"status"}).output, Not(HasSubstr("waiting")));
}

}  // namespace
}  // namespace rowlock::test
