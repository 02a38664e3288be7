// The benchmarks as commands: what they tell, and what is drawn of it. No figure is judged here.
#include <fstream>

#include "cli/command_test.hpp"

namespace rowlock::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view told =
    R"({"way":"plain","per_second":9000})"
    "\n"
    R"({"bar":"stage, 1 tenant: × plain INSERT","value":0.84,"limit":0.85,"at_most":false})"
    "\n"
    R"({"bar":"a < b","value":17,"limit":64,"at_most":true})"
    "\n"
    R"({"flush_microseconds":312.4,"cores":2,"load":1.5})"
    "\n";

using BenchChart = CommandTest;

TEST_F(BenchChart, DrawsEveryBarAndWhatItMissedWithTheMachineBesideThem) {
    const ProcessResult result = run({"bench", "chart", "-"}, std::string(told));
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_THAT(result.output,
                AllOf(HasSubstr("<svg xmlns="), HasSubstr("stage, 1 tenant: × plain INSERT"),
                      HasSubstr(">0.84 (≥ 0.85) missed<"), HasSubstr("a &lt; b"), HasSubstr(">17.0 (≤ 64.0)<"),
                      HasSubstr("312 µs a flush"), HasSubstr("prefers-color-scheme:dark"), HasSubstr("</svg>")));
    // Nothing is fetched from elsewhere, and a program draws nothing.
    EXPECT_THAT(result.output, Not(testing::AnyOf(HasSubstr("href"), HasSubstr("url("), HasSubstr("<script"))));
}

TEST_F(BenchChart, WritesTheSameAsATable) {
    const ProcessResult result = run({"bench", "chart", "--table", "-"}, std::string(told));
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_THAT(lines_of(result.output),
                AllOf(Contains("| stage, 1 tenant: × plain INSERT | 0.84 | ≥ 0.85 | **missed** |"),
                      Contains("| a < b | 17.0 | ≤ 64.0 | met |")));
}

TEST_F(BenchChart, RefusesWhatNoBenchmarkPrints) {
    struct Wrong {
        std::string input;
        std::string says;
    };
    for (const auto& [input, says] : std::vector<Wrong>{
             {"", "stdin has no bar"},
             {"{}\n", "stdin has no bar"},
             {std::string(told) + "{\"bar\":", "line 5"},
             {R"({"bar":"x","value":"0.84","limit":1})", "line 1: a bar has a text, a value and a limit"},
             {R"({"bar":7,"value":1,"limit":1})", "line 1: a bar has a text, a value and a limit"}}) {
        const ProcessResult result = run({"bench", "chart", "-"}, input);
        EXPECT_EQ(result.exit_code, 2) << input;
        EXPECT_EQ(result.output, "") << input;
        expect_one_line(result, {says, "--json"});
    }
    expect_one_line(run({"bench", "chart", "nowhere.jsonl"}), {"nowhere.jsonl can't be read"});
}

using Bench = CommandOnDatabaseTest;

/// Only one: the database that a benchmark makes beside --db has a fixed name.
TEST_F(Bench, TellsBarsAndMachineThatCanBeDrawnAndNeedsThePeersFilesToBeThere) {
    const ProcessResult growth =
        on_database({"bench", "growth", "--entries", "2000", "--clients", "2", "--seconds", "0.1", "--json"});
    EXPECT_EQ(growth.exit_code, 0) << growth.errors;
    EXPECT_EQ(member(lines_of(growth.output).front(), "entries"), "2000");
    EXPECT_GT(std::stod(member(lines_of(growth.output).front(), "verify_old_mebibytes")), 0);

    const ProcessResult stage =
        on_database({"bench", "stage", "--clients", "2", "--seconds", "0.1", "--backlog", "200", "--json"});
    EXPECT_EQ(stage.exit_code, 0) << stage.errors;
    EXPECT_THAT(stage.output, HasSubstr(R"("sealed":200)"));

    const ProcessResult chart = run({"bench", "chart", "--table", "-"}, growth.output + stage.output);
    EXPECT_EQ(chart.exit_code, 0) << chart.errors;
    EXPECT_THAT(chart.output, AllOf(HasSubstr("append to a log of 2,000 entries: × a new log"),
                                    HasSubstr("seal, one sealer: entries/s"), HasSubstr("µs a flush")));

    const std::string folder = (scratch_.path() / "peers").string();
    std::filesystem::create_directory(folder);
    const ProcessResult append = on_database({"bench", "append", "--peer-sql", folder});
    EXPECT_EQ(append.exit_code, 2);
    expect_one_line(append, {folder, "functions/write-message.sql", "`database`"});
    const ProcessResult track = on_database({"bench", "track", "--peer-sql", folder});
    EXPECT_EQ(track.exit_code, 2);
    expect_one_line(track, {folder, "supa_audit--N.N.N.sql"});

    std::filesystem::create_directory(folder + "/functions");
    std::ofstream(folder + "/functions/write-message.sql") << "SELECT 1";
    const ProcessResult half = on_database({"bench", "append", "--peer-sql", folder});
    EXPECT_EQ(half.exit_code, 2);
    expect_one_line(half, {folder + "/schema has no SQL files", "not whole"});
}

}  // namespace
}  // namespace rowlock::test
