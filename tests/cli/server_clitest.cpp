// The private server by the command, and what is made on it at first use.
#include <fstream>

#include "cli/command_test.hpp"
#include "server/private_server.hpp"

namespace rowlock::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Server : public CommandTest {
  protected:
    ~Server() override { EXPECT_EQ(run({"server", "destroy"}).exit_code, 0); }

    [[nodiscard]] std::filesystem::path place() const { return scratch_.path() / "state" / "rowlock"; }
    /// A quick one, in the place where the command looks.
    void start_throwaway() const {
        std::filesystem::create_directory(scratch_.path() / "state");
        PrivateServer({.place = {place()}, .settings = {}, .throwaway = true}).ensure_running();
    }
};

TEST_F(Server, IsStartedStoppedAndDestroyedAndSaysSo) {
    EXPECT_THAT(run({"server", "status"}).output, StartsWith("no private server in "));
    const ProcessResult started = run({"server", "start"});
    EXPECT_EQ(started.exit_code, 0) << started.errors;
    EXPECT_THAT(started.output, HasSubstr("running: PostgreSQL "));
    EXPECT_THAT(started.output, HasSubstr("connect: psql \"host="));
    EXPECT_EQ(run({"server", "start"}).output, started.output) << "a second start changes nothing";
    EXPECT_EQ(run({"server", "stop"}).output, "stopped\n");
    EXPECT_THAT(run({"server", "status"}).output, StartsWith("stopped: "));
    EXPECT_EQ(run({"server", "stop"}).output, "no private server was running\n");
    EXPECT_EQ(run({"server", "destroy"}).output, "destroyed, with everything in it\n");
    EXPECT_EQ(run({"server", "destroy"}).output, "there was no private server\n");
    EXPECT_FALSE(std::filesystem::exists(place()));
}

TEST_F(Server, TellsAllOfItInJson) {
    EXPECT_EQ(member(run({"server", "status", "--json"}).output, "exists"), "false");
    start_throwaway();
    const std::string status = run({"server", "start", "--json"}).output;
    EXPECT_EQ(member(status, "running"), "true");
    EXPECT_EQ(run_sql(member(status, "connection"), "SELECT 1"), "1");
    EXPECT_EQ(member(run({"server", "stop", "--json"}).output, "stopped"), "true");
    EXPECT_EQ(member(run({"server", "stop", "--json"}).output, "stopped"), "false");
    EXPECT_EQ(member(run({"server", "destroy", "--json"}).output, "destroyed"), "true");
}

TEST_F(Server, StopAndDestroyOfAnAbsentOneAreFine) {
    EXPECT_EQ(run({"server", "stop"}).exit_code, 0);
    EXPECT_EQ(run({"server", "destroy"}).exit_code, 0);
    EXPECT_FALSE(std::filesystem::exists(place()));
}

TEST_F(Server, TwoStartsAtOnceEndWithOneServer) {
    BackgroundProcess first(command({"server", "start", "--json"}));
    BackgroundProcess second(command({"server", "start", "--json"}));
    const ProcessResult one = first.wait(limit);
    const ProcessResult two = second.wait(limit);
    EXPECT_EQ(one.exit_code, 0) << one.errors;
    EXPECT_EQ(two.exit_code, 0) << two.errors;
    EXPECT_EQ(member(one.output, "pid"), member(two.output, "pid"));
}

TEST_F(Server, GivesPsqlWhatStandsBehindTheDashes) {
    start_throwaway();
    EXPECT_EQ(run({"server", "psql", "--", "-XAtc", "SELECT current_user"}).output, "rowlock\n");
    EXPECT_EQ(run({"server", "psql", "--", "-XAt"}, "SELECT 42;\n").output, "42\n");
    EXPECT_NE(run({"server", "psql", "--", "-Xc", "SELECT nonsense"}).exit_code, 0);
}

TEST_F(Server, RefusesAFolderWhoseNameIsTooLongForASocket) {
    const std::string folder = (scratch_.path() / std::string(100, 'x')).string();
    for (const char* verb : {"start", "status", "stop", "destroy"}) {
        const ProcessResult result = run({"--data", folder, "server", verb});
        EXPECT_EQ(result.exit_code, 2);
        expect_one_line(result, {"bytes", "--data"});
    }
}

TEST_F(Server, IsNotDestroyedWhereTheFolderIsSomebodyElses) {
    const std::string folder = (scratch_.path() / "mine").string();
    std::filesystem::create_directory(folder);
    std::ofstream(folder + "/thesis.txt") << "years of work";
    for (const char* verb : {"start", "destroy"}) {
        const ProcessResult result = run({"--data", folder, "server", verb});
        EXPECT_EQ(result.exit_code, 2);
        expect_one_line(result, {folder});
    }
    EXPECT_TRUE(std::filesystem::exists(folder + "/thesis.txt"));
}

TEST_F(Server, IsMadeAtFirstUseWithOneLineForEachThingMade) {
    const ProcessResult first = run({"append", "--tenant", "acme"});
    EXPECT_EQ(first.exit_code, 0) << first.errors;
    const auto told = lines_of(first.errors);
    ASSERT_EQ(told.size(), 2) << first.errors;
    EXPECT_THAT(told[0], HasSubstr("made a private PostgreSQL"));
    EXPECT_THAT(told[1], HasSubstr("made a keyring in " + keyring().string()));
    const ProcessResult second = run({"append", "--tenant", "acme"});
    EXPECT_EQ(second.errors, "");
    EXPECT_THAT(second.output, StartsWith("acme 2 "));
}

TEST_F(Server, TakesEightFirstUsersAtOnce) {
    start_throwaway();
    std::vector<std::unique_ptr<BackgroundProcess>> users;
    for (int i = 0; i < 8; ++i) {
        users.push_back(std::make_unique<BackgroundProcess>(command({"append", "--tenant", "acme"})));
    }
    int keyrings = 0;
    for (const auto& user : users) {
        const ProcessResult result = user->wait(limit);
        EXPECT_EQ(result.exit_code, 0) << result.errors;
        keyrings += result.errors.find("made a keyring") == std::string::npos ? 0 : 1;
    }
    EXPECT_EQ(keyrings, 1);
    const ProcessResult verified = run({"verify", "--tenant", "acme"});
    EXPECT_EQ(verified.exit_code, 0);
    EXPECT_THAT(verified.output, HasSubstr("8 entries"));
}

TEST_F(Server, DoesNotHideALostKeyringBehindANewOne) {
    start_throwaway();
    ASSERT_EQ(run({"append", "--tenant", "acme"}).exit_code, 0);
    std::filesystem::remove(keyring());
    for (const Arguments& arguments : {Arguments{"append", "--tenant", "bolt"}, Arguments{"verify", "--all"}}) {
        const ProcessResult result = run(arguments);
        EXPECT_EQ(result.exit_code, 2);
        expect_one_line(result, {"no keyring at " + keyring().string()});
        EXPECT_FALSE(std::filesystem::exists(keyring()));
    }
}

using Schema = CommandTest;

TEST_F(Schema, IsInstalledOnceReportedAndUninstalledOnlyWithYes) {
    const TestDatabase database;
    const auto on = [&](Arguments arguments) {
        arguments.insert(arguments.begin(), {"--db", database.connection(), "schema"});
        return run(std::move(arguments));
    };
    const ProcessResult before = on({"status"});
    EXPECT_EQ(before.exit_code, 1);
    EXPECT_THAT(before.output, StartsWith("not installed; `rowlock schema install` brings version "));
    const ProcessResult alone = on({"install", "--distributed"});
    EXPECT_EQ(alone.exit_code, 2);
    expect_one_line(alone, {"the database has no Citus", "CREATE EXTENSION citus"});
    EXPECT_THAT(on({"sql", "--distributed"}).output, HasSubstr("create_distributed_table('rowlock.audit_log'"));
    EXPECT_EQ(on({"install", "--distributed", "--partitions", "4"}).exit_code, 2);
    const ProcessResult first = on({"install"});
    EXPECT_EQ(first.exit_code, 0) << first.errors;
    EXPECT_THAT(first.output, HasSubstr("(was not installed)"));
    EXPECT_THAT(first.output, HasSubstr("GRANT rowlock_app"));
    EXPECT_THAT(on({"install"}).output, HasSubstr("there already"));
    EXPECT_THAT(on({"status"}).output, HasSubstr("up to date"));
    const ProcessResult refused = on({"uninstall"});
    EXPECT_EQ(refused.exit_code, 2);
    expect_one_line(refused, {"every entry and number", "--yes"});
    EXPECT_EQ(on({"status"}).exit_code, 0);
    EXPECT_THAT(on({"uninstall", "--yes"}).output, HasSubstr("is gone"));
    EXPECT_THAT(on({"uninstall", "--yes"}).output, HasSubstr("there was no schema rowlock"));
    EXPECT_EQ(member(on({"status", "--json"}).output, "installed"), "0");
}

TEST_F(Schema, PrintedAndRunThroughPsqlByADbaIsUpToDate) {
    TestDatabase database;
    const TestLogin dba = database.add_login("dba", "SUPERUSER");
    const ProcessResult run_by_hand =
        run_in_shell("set -o pipefail; \"$rowlock\" schema sql | psql -qX \"$db\"", database.connection_as(dba));
    ASSERT_EQ(run_by_hand.exit_code, 0) << run_by_hand.errors;
    const ProcessResult result = run({"--db", database.connection(), "schema", "install", "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_EQ(member(result.output, "before"), member(result.output, "installed"));
    EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "state")) << "printing needs no server";
}

TEST_F(Schema, IsInstalledOnceByFourAtOnce) {
    const TestDatabase database;
    std::vector<std::unique_ptr<BackgroundProcess>> installers;
    for (int i = 0; i < 4; ++i) {
        installers.push_back(
            std::make_unique<BackgroundProcess>(command({"--db", database.connection(), "schema", "install"})));
    }
    for (const auto& installer : installers) {
        const ProcessResult result = installer->wait(limit);
        EXPECT_EQ(result.exit_code, 0) << result.errors;
    }
}

}  // namespace
}  // namespace rowlock::test
