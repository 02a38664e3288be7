// The words of the command line: help, wrong usage, where the options may stand, and where the output goes.
#include <algorithm>

#include "cli/command_test.hpp"

namespace rowlock::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

using Usage = CommandTest;
using UsageOnDatabase = CommandOnDatabaseTest;

TEST_F(Usage, EveryCommandHasHelpThatNamesItAndNothingIsMade) {
    for (const Arguments& path : {Arguments{},
                                  {"server"},
                                  {"server", "start"},
                                  {"server", "stop"},
                                  {"server", "status"},
                                  {"server", "psql"},
                                  {"server", "destroy"},
                                  {"schema"},
                                  {"schema", "install"},
                                  {"schema", "status"},
                                  {"schema", "sql"},
                                  {"schema", "uninstall"},
                                  {"keys"},
                                  {"keys", "new"},
                                  {"keys", "list"},
                                  {"keys", "rotate"},
                                  {"append"},
                                  {"list"},
                                  {"verify"},
                                  {"quota"},
                                  {"quota", "show"},
                                  {"quota", "set"},
                                  {"quota", "recount"},
                                  {"claim"},
                                  {"claim", "status"},
                                  {"claim", "sweep"},
                                  {"claim", "sql"},
                                  {"demo"},
                                  {"bench"},
                                  {"bench", "append"},
                                  {"bench", "verify"},
                                  {"bench", "claim"},
                                  {"bench", "quota"},
                                  {"track"},
                                  {"untrack"},
                                  {"tracked"},
                                  {"bench", "track"},
                                  {"bench", "stage"},
                                  {"bench", "growth"},
                                  {"bench", "chart"},
                                  {"bench", "lifecycle"},
                                  {"status"},
                                  {"bench", "race"}}) {
        Arguments arguments = path;
        arguments.emplace_back("--help");
        const ProcessResult result = run(arguments);
        std::string name = "Usage: rowlock";
        for (const std::string& word : path) name += " " + word;
        EXPECT_EQ(result.exit_code, 0);
        EXPECT_EQ(result.errors, "");
        EXPECT_THAT(result.output, HasSubstr(name));
        for (const std::string& line : lines_of(result.output)) EXPECT_LE(line.size(), 125) << line;
    }
    EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "state"));
}

TEST_F(Usage, WrongUsageIsOneLineThatNamesTheHelpToReadAndMakesNothing) {
    struct Wrong {
        Arguments arguments;
        std::string says;
        std::string help;
    };
    const std::vector<Wrong> all{
        {{}, "needs a command: demo", "rowlock --help"},
        {{"apend"}, "\"apend\" is no command of rowlock", "rowlock --help"},
        {{"--frob", "list"}, "\"--frob\" is not known", "rowlock list --help"},
        {{"server"}, "start, stop, status", "rowlock server --help"},
        {{"server", "begin"}, "\"begin\" is no command of rowlock server", "rowlock server --help"},
        {{"server", "psql", "-Atc"}, "go after --", "rowlock server psql --help"},
        {{"list"}, "--tenant is required", "rowlock list --help"},
        {{"list", "--tenant"}, "--tenant", "rowlock list --help"},
        {{"list", "--tenant", "a", "--from", "0"}, "\"0\" is no whole number from 1 on", "rowlock list --help"},
        {{"list", "--tenant", "a", "--limit", "-1"}, "\"-1\" is no whole number from 1 on", "rowlock list --help"},
        {{"list", "--tenant", "a", "--limit", "1e3"}, "is no whole number", "rowlock list --help"},
        {{"list", "--tenant", "a", "--limit", "99999999999999999999"}, "is no whole number", "rowlock list --help"},
        {{"append", "--jsonl", "-", "--writers", "65"}, "not in range 1 to 64", "rowlock append --help"},
        {{"append", "--tenant", "a", "--tenant", "b"}, "--tenant", "rowlock append --help"},
        {{"append"}, "name the tenant with --tenant", ""},
        {{"append", "--tenant", ""}, "the name is empty", ""},
        {{"append", "--tenant", "a", "--writers", "2"}, "for the lines of --jsonl", ""},
        {{"append", "--tenant", "a", "--skip-bad"}, "for the lines of --jsonl", ""},
        {{"append", "--tenant", "a", "--jsonl", "-"}, "leave out --tenant", ""},
        {{"append", "--tenant", "a", "--entry-id", "7"}, "\"7\" is no UUID", ""},
        {{"append", "--jsonl", "nowhere.jsonl"}, "nowhere.jsonl can't be read: No such file", ""},
        {{"append", "--jsonl", "/tmp"}, "/tmp can't be read: Is a directory", ""},
        {{"verify"}, "--tenant, or say --all", ""},
        {{"verify", "--all", "--tenant", "a"}, "--tenant, or say --all", ""},
        {{"--db", "x", "--data", "y", "server", "status"}, "leave one of them out", ""},
        {{"--keyring", "x", "--keyring-command", "y", "keys", "list"}, "leave one of them out", ""},
        {{"--db", "x", "server", "status"}, "leave out --db", ""},
        {{"--db", "x", "demo"}, "leave out --db", ""},
        {{"--json", "server", "psql"}, "leave out --json", ""},
        {{"schema", "uninstall"}, "--yes", ""},
        {{"demo", "--writers", "1"}, "not in range 2 to 64", "rowlock demo --help"},
    };
    for (const Wrong& wrong : all) {
        const ProcessResult result = run(wrong.arguments);
        EXPECT_EQ(result.exit_code, 2) << wrong.says;
        EXPECT_EQ(result.output, "");
        expect_one_line(result, {wrong.says, wrong.help});
    }
    EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "state"));
    EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "config"));
}

TEST_F(UsageOnDatabase, GlobalOptionsMayStandBeforeAndBehindTheCommand) {
    const std::string db = database_.connection();
    const Arguments orders[] = {{"--json", "--db", db, "schema", "status"},
                                {"schema", "--db", db, "status", "--json"},
                                {"schema", "status", "--json", "--db", db},
                                {"--db=" + db, "schema", "--json", "status"}};
    for (const Arguments& order : orders) {
        const ProcessResult result = run(order);
        EXPECT_EQ(result.exit_code, 0) << result.errors;
        EXPECT_EQ(member(result.output, "installed"), member(result.output, "current"));
    }
}

TEST_F(UsageOnDatabase, TheEnvironmentNamesTheDatabaseAndTheKeyring) {
    ProcessOptions options = command({"append", "--tenant", "acme"});
    options.environment.emplace_back("ROWLOCK_DB", database_.connection());
    options.environment.emplace_back("ROWLOCK_KEYRING", "/nowhere/keyring.json");
    std::erase_if(options.environment, [](const auto& variable) { return variable.second.empty(); });
    const ProcessResult missing = run_process(options, limit);
    EXPECT_EQ(missing.exit_code, 2);
    expect_one_line(missing, {"/nowhere/keyring.json", "rowlock keys new"});
    options.arguments.insert(options.arguments.end(), {"--keyring", keyring().string()});
    const ProcessResult result = run_process(options, limit);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_EQ(entries(), "1");
}

TEST_F(Usage, DataOnTheCommandLineWinsOverTheDatabaseOfTheEnvironment) {
    ProcessOptions options = command({"--data", (scratch_.path() / "private").string(), "server", "status"});
    options.environment.emplace_back("ROWLOCK_DB", "host=/nowhere");
    const ProcessResult result = run_process(options, limit);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_THAT(result.output, StartsWith("no private server in "));
}

TEST_F(UsageOnDatabase, OutputThatCannotBeWrittenIsAnErrorAndNotSilence) {
    const std::string db = database_.connection();
    const std::string command = "\"$rowlock\" --db \"$db\" schema status";
    const ProcessResult full = run_in_shell(command + " > /dev/full", db);
    EXPECT_EQ(full.exit_code, 2);
    expect_one_line(full, {"standard output can't be written: No space left on device"});
    const ProcessResult closed = run_in_shell(command + " >&-", db);
    EXPECT_EQ(closed.exit_code, 2);
    expect_one_line(closed, {"standard output can't be written: Bad file descriptor"});
    const ProcessResult input = run_in_shell("\"$rowlock\" append --jsonl - <&-");
    EXPECT_EQ(input.exit_code, 2);
    expect_one_line(input, {"standard input can't be read: Bad file descriptor"});
}

TEST_F(UsageOnDatabase, AReaderThatGoesAwayEarlyEndsTheCommandQuietly) {
    std::string lines;
    for (int i = 0; i < 3000; ++i) lines += "{\"tenant\":\"acme\",\"data\":\"" + std::string(100, 'x') + "\"}\n";
    ASSERT_EQ(on_database({"append", "--jsonl", "-"}, lines).exit_code, 0);
    const ProcessResult result = run_in_shell(
        "\"$rowlock\" --json --db \"$db\" list --tenant acme --limit 100000 | head -1; echo ${PIPESTATUS[0]}",
        database_.connection());
    EXPECT_EQ(result.errors, "");
    const auto shown = lines_of(result.output);
    ASSERT_EQ(shown.size(), 2);
    EXPECT_EQ(member(shown[0], "seq"), "1");
    EXPECT_EQ(shown[1], "141") << "128 and SIGPIPE";
}

/// `script` gives the command a terminal of a width; NO_COLOR and a pipe take the colours away.
TEST_F(UsageOnDatabase, ColoursAreForTerminalsOnlyAndNotWithNoColor) {
    ASSERT_EQ(on_database({"append", "--tenant", "acme", "--object", std::string(200, 'o')}).exit_code, 0);
    const std::string list = "\"$rowlock\" --db \"$db\" list --tenant acme";
    const auto on_terminal = [&](const std::string& before) {
        const std::string script = "export TERM=xterm; script -qec 'stty cols 60; " + before + list + "' /dev/null";
        return run_in_shell(script, database_.connection()).output;
    };
    if (run_in_shell("command -v script").exit_code != 0) GTEST_SKIP() << "no script here";
    const std::string colored = on_terminal("");
    EXPECT_THAT(colored, HasSubstr("\033["));
    const std::string plain = on_terminal("NO_COLOR=1 ");
    EXPECT_THAT(plain, testing::Not(HasSubstr("\033[")));
    for (const std::string& line : lines_of(plain)) EXPECT_LE(line.size(), 60 + sizeof("…\r") + 1) << line;
    const std::string piped = run_in_shell(list, database_.connection()).output;
    EXPECT_THAT(piped, HasSubstr(std::string(200, 'o'))) << "nothing is cut in a pipe";
    EXPECT_THAT(piped, testing::Not(HasSubstr("\033[")));
}

}  // namespace
}  // namespace rowlock::test
