// `rowlock seal`: until nothing is left, until it is told to stop, and whatever dies meanwhile.
#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "cli/command_test.hpp"
#include "rowlock/database.hpp"
#include "rowlock/error.hpp"
#include "server/private_server.hpp"
#include "support/environment.hpp"

namespace rowlock::test {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

constexpr Statement stage_row{"test.stage", "SELECT rowlock.stage($1, 'row.changed', $2)"};

class SealCommand : public CommandOnDatabaseTest {
  protected:
    void stage(const std::string& tenant, int count) const {
        database_.execute(
            fmt::format("BEGIN; SELECT set_config('rowlock.tenant', '{0}', true);"
                        "SELECT rowlock.stage('{0}', 'row.changed', 'row ' || n)"
                        "  FROM generate_series(1, {1}) AS n; COMMIT",
                        tenant, count));
    }
    [[nodiscard]] std::string staged() const { return database_.value("SELECT count(*) FROM rowlock.audit_staged"); }
};

TEST_F(SealCommand, OnceEndsWhenNothingIsStagedAnyMore) {
    stage("acme", 30);
    stage("globex", 5);
    EXPECT_THAT(on_database({"status"}).output, HasSubstr("staged  35 entries wait for the sealer, the oldest for "));
    EXPECT_THAT(on_database({"list", "--tenant", "acme"}).errors,
                HasSubstr("30 entries are staged and not in the log"));
    EXPECT_THAT(on_database({"verify", "--all"}).errors, HasSubstr("35 entries are staged and not in the log yet"));
    const ProcessResult result = on_database({"seal", "--once", "--batch", "7"});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_THAT(result.output, HasSubstr("sealed 35 entries in "));
    EXPECT_THAT(result.output, HasSubstr("; nothing is staged now"));
    EXPECT_EQ(entries("acme"), "30");
    EXPECT_EQ(on_database({"verify", "--all"}).exit_code, 0);
    EXPECT_EQ(on_database({"verify", "--all"}).errors, "");
    const ProcessResult again = on_database({"seal", "--once", "--json"});
    EXPECT_EQ(member(again.output, "sealed"), "0");
    EXPECT_EQ(member(again.output, "staged"), "0");
}

TEST_F(SealCommand, TellsOfWhatItPutsIntoQuarantineAndOfWhatItCanNotSeal) {
    database_.execute(
        "BEGIN; SELECT set_config('rowlock.tenant', 'acme', true);"
        "SELECT rowlock.stage('acme', 'x', 'one', NULL, NULL, '01890a5d-ac96-774b-bcce-000000000001');"
        "SELECT rowlock.stage('acme', 'x', 'two', NULL, NULL, '01890a5d-ac96-774b-bcce-000000000001'); COMMIT");
    const ProcessResult quarantined = on_database({"seal", "--once"});
    EXPECT_EQ(quarantined.exit_code, 1);
    expect_one_line(quarantined, {"1 staged entry was quarantined", "rowlock.audit_quarantined"});
    EXPECT_THAT(on_database({"status"}).output, HasSubstr("1 in quarantine"));

    stage("acme", 1);
    ASSERT_EQ(run({"keys", "new", "--keyring", "other.json"}).exit_code, 0);
    const ProcessResult strange = run({"--db", database_.connection(), "--keyring", "other.json", "seal", "--once"});
    EXPECT_EQ(strange.exit_code, 1);
    expect_one_line(strange, {"tenant acme can't be sealed", "not in the keyring"});
    EXPECT_EQ(staged(), "1");
}

TEST_F(SealCommand, NeedsTheRightToSeal) {
    const TestLogin login = database_.add_login("shop");
    database_.execute("GRANT rowlock_app TO " + login.role);
    const ProcessResult result = on(database_.connection_as(login), {"seal", "--once"});
    EXPECT_EQ(result.exit_code, 2);
    expect_one_line(result, {"42501", "rowlock_sealer seals"});
}

TEST_F(SealCommand, RunsUntilSIGTERMAndThenEndsWell) {
    BackgroundProcess sealer(
        command({"--db", database_.connection(), "--keyring", keyring().string(), "seal", "--poll", "20"}));
    for (int i = 0; i < 3; ++i) {
        stage("acme", 10);
        for (int wait = 0; wait < 1000 && staged() != "0"; ++wait) std::this_thread::sleep_for(10ms);
        EXPECT_EQ(staged(), "0");
    }
    sealer.send(SIGTERM);
    const ProcessResult result = sealer.wait(10s);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_THAT(result.output, HasSubstr("sealed 30 entries in "));
}

TEST_F(SealCommand, ToldToStopAmidABacklogEndsWithTheBatchThatItIsAt) {
    constexpr int backlog = 3200;
    for (int i = 0; i < backlog / 4; ++i) stage("acme", 4);
    BackgroundProcess sealer(command(
        {"--db", database_.connection(), "--keyring", keyring().string(), "seal", "--batch", "4", "--writers", "1"}));
    for (int wait = 0; wait < 1000 && entries("acme") == "0"; ++wait) std::this_thread::sleep_for(5ms);
    sealer.send(SIGTERM);
    const ProcessResult result = sealer.wait(10s);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    const int left = std::stoi(staged());
    EXPECT_GT(left, 0);
    EXPECT_LT(left, backlog);
    EXPECT_EQ(left % 4, 0) << "no transaction in two";
    EXPECT_EQ(entries("acme"), std::to_string(backlog - left));
    EXPECT_THAT(result.output, HasSubstr(fmt::format("sealed {} entries", backlog - left)));
    EXPECT_EQ(on_database({"seal", "--once"}).exit_code, 0);
    EXPECT_EQ(entries("acme"), std::to_string(backlog));
    EXPECT_EQ(on_database({"verify", "--all"}).exit_code, 0);
}

/// Sealers and servers that are killed at any moment, while others stage.
class KilledSealers : public CommandTest {
  protected:
    static constexpr int rows = 3;

    KilledSealers() {
        server().ensure_running();
        EXPECT_EQ(run({"--data", data_, "verify", "--all"}).exit_code, 3) << "makes the schema and the keyring";
    }
    ~KilledSealers() override { server().destroy(); }

    [[nodiscard]] PrivateServer server() const {
        return PrivateServer({.place = {data_}, .settings = {}, .throwaway = false});
    }
    [[nodiscard]] std::string value(const std::string& sql) const {
        return run_sql(server().connection("rowlock"), sql);
    }
    [[nodiscard]] ProcessOptions sealing() const {
        return command({"--data", data_, "seal", "--batch", "5", "--poll", "5", "--writers", "1"});
    }

    [[nodiscard]] int sealed() const { return std::stoi(value("SELECT count(*) FROM rowlock.audit_log")); }
    void wait_for_more_than(int count) const {
        for (int i = 0; i < 1000 && sealed() <= count; ++i) std::this_thread::sleep_for(2ms);
    }
    /// Stages transactions of three rows until told to stop; counts those whose COMMIT was answered.
    void stage_until(const std::atomic<bool>& stop, int writer, std::atomic<int>& told) const {
        for (int i = 0; !stop; ++i) {
            try {
                Database database(DatabaseOptions{.connection = server().connection("rowlock"), .connections_max = 1});
                for (; !stop; ++i) {
                    const std::string tenant = i % 2 == 0 ? "acme" : "globex";
                    database.transact({.tenant = TenantId(tenant)}, [&](Transaction& transaction) {
                        for (int row = 0; row < rows; ++row) {
                            transaction.execute(stage_row, {tenant, fmt::format("{}-{}-{}", writer, i, row)});
                        }
                    });
                    ++told;
                    std::this_thread::sleep_for(2ms);
                }
            } catch (const Error&) {
                std::this_thread::sleep_for(20ms);  // the server is gone just now
            }
        }
    }

    const std::string data_ = (scratch_.path() / "server").string();
};

TEST_F(KilledSealers, SealEachRowOnceInTheOrderOfItsTransactionGaplessAndIntact) {
    // Two sealers are killed in each; fewer in a build that looks for bugs in each step, and starts slowly.
    const int rounds = full_or(100, 20);
    constexpr int server_kills = 4;
    std::atomic<bool> stop{false};
    std::atomic<int> told{0};
    std::vector<std::thread> writers;
    for (int writer = 0; writer < 2; ++writer) {
        writers.emplace_back([&, writer] { stage_until(stop, writer, told); });
    }
    for (int i = 0; i < rounds; ++i) {
        BackgroundProcess one(sealing());
        BackgroundProcess other(sealing());
        wait_for_more_than(sealed());
        std::this_thread::sleep_for(std::chrono::milliseconds(i % 7 * 3));
        one.kill_hard();
        other.kill_hard();
        if (i % (rounds / server_kills) != 0) continue;
        ASSERT_TRUE(server().kill_immediately());
        server().ensure_running();
    }
    stop = true;
    for (std::thread& writer : writers) writer.join();
    EXPECT_GT(sealed(), rounds) << "the killed ones sealed next to nothing";
    EXPECT_EQ(run({"--data", data_, "seal", "--once"}).exit_code, 0);

    EXPECT_EQ(value("SELECT count(*) FROM rowlock.audit_staged"), "0");
    EXPECT_EQ(value("SELECT count(*) FROM rowlock.audit_log"),
              value("SELECT count(DISTINCT object) FROM rowlock.audit_log"));
    EXPECT_GE(sealed(), told * rows);
    // Each transaction whole, its rows one behind the other.
    EXPECT_EQ(
        value("SELECT count(*) FROM (SELECT object, lead(object, 1) OVER w AS second, lead(object, 2) OVER w AS third"
              "  FROM rowlock.audit_log WINDOW w AS (PARTITION BY tenant_id ORDER BY seq)) AS run"
              " WHERE object LIKE '%-0' AND (second IS DISTINCT FROM left(object, -1) || '1'"
              "                           OR third IS DISTINCT FROM left(object, -1) || '2')"),
        "0");
    EXPECT_EQ(value("SELECT count(*) % 3 FROM rowlock.audit_log"), "0");
    const ProcessResult verified = run({"--data", data_, "verify", "--all"});
    EXPECT_EQ(verified.exit_code, 0) << verified.output;
}

}  // namespace
}  // namespace rowlock::test
