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

TEST_F(StatusCommand, TellsTheAgeOfTheLastCheckpointThatWasMade) {
    ASSERT_EQ(on_database({"append", "--tenant", "acme", "--action", "x"}).exit_code, 0);
    const std::string key = (scratch_.path() / "signing.key").string();
    ASSERT_EQ(run({"keys", "new", "--signing-key", key}).exit_code, 0);
    EXPECT_THAT(on_database({"status"}).output,
                HasSubstr("proof   no checkpoint is noted: rowlock checkpoint makes one"));
    EXPECT_THAT(on_database({"status", "--prometheus"}).output,
                HasSubstr("rowlock_last_checkpoint_timestamp_seconds 0\n"));
    EXPECT_THAT(on_database({"status", "--json"}).output, Not(HasSubstr("checkpoint_made_at")));
    const Arguments arguments{"checkpoint", "--out", (scratch_.path() / "a.note").string(), "--signing-key", key};
    ASSERT_EQ(on_database(arguments).exit_code, 0);
    ASSERT_NE(on_database(arguments).exit_code, 0) << "the file is there: none was made";
    database_.execute("UPDATE rowlock.checkpoint_noted SET made_at = made_at - interval '3 days'");
    EXPECT_THAT(on_database({"status"}).output,
                HasSubstr("proof   the last checkpoint noted is 3.0 days old, of 1 tenant, 1 entry\n"));
    const std::string json = on_database({"status", "--json"}).output;
    EXPECT_EQ(member(json, "checkpoint_entries"), "1");
    EXPECT_GT(std::stoll(member(json, "checkpoint_age_ms")), 3LL * 86400 * 1000 - 1);
    EXPECT_THAT(on_database({"status", "--prometheus"}).output,
                testing::ContainsRegex("rowlock_last_checkpoint_timestamp_seconds 1[0-9.e+]+\n"));
    const ProcessResult piped = on_database({"checkpoint", "--out", "-", "--signing-key", key});
    EXPECT_EQ(piped.exit_code, 0);
    EXPECT_EQ(piped.errors, "");
    EXPECT_THAT(on_database({"status"}).output, testing::ContainsRegex("checkpoint noted is [0-9.]+ s old"));
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
