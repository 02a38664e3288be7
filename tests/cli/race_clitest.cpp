// rowlock race as a person meets it: what it prints, what it refuses, what it leaves behind.
#include <signal.h>

#include <algorithm>
#include <fstream>

#include "cli/command_test.hpp"

namespace rowlock::test {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::string_view max_plus_one = R"(
setup { CREATE TABLE entry(seq int NOT NULL); }
session writer * 2
    step begin { BEGIN }
    step next { SELECT coalesce(max(seq), 0) + 1 AS seq FROM entry \gset }
    step put { INSERT INTO entry VALUES (:seq) }
    step commit { COMMIT }
invariant "no number twice" { SELECT seq FROM entry GROUP BY seq HAVING count(*) > 1 }
)";

constexpr std::string_view waits = R"(
setup { CREATE TABLE account(id int PRIMARY KEY, n int); INSERT INTO account VALUES (7, 0); }
session a
    step begin { BEGIN }
    step lock { SELECT n FROM account WHERE id = 7 FOR UPDATE }
    step commit { COMMIT }
session b
    step raise { UPDATE account SET n = n + 1 WHERE id = 7 }
invariant "never raised" { SELECT n FROM account WHERE n <> 0 }
)";

class Race : public CommandTest {
  protected:
    std::string file(std::string_view text, const std::string& name = "t.race") const {
        std::ofstream(scratch_.path() / name) << text;
        return name;
    }
    [[nodiscard]] ProcessResult race(std::string_view text, Arguments more = {}) const {
        Arguments arguments{"race", file(text)};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run(arguments);
    }
    /// Everything on stderr: "t.race:LINE:COLUMN: …" with the line and a mark under the column.
    void expect_refused(std::string_view text, const std::string& place, const std::string& why,
                        const std::string& line) const {
        const ProcessResult result = race(text);
        EXPECT_EQ(result.exit_code, 2) << text;
        EXPECT_THAT(result.errors, HasSubstr("t.race:" + place + ": "));
        EXPECT_THAT(result.errors, HasSubstr(why));
        EXPECT_THAT(result.errors, HasSubstr("\n    " + line + "\n"));
        EXPECT_EQ(result.output, "");
    }
};

TEST_F(Race, ShowsTheScheduleTheRowsTheOrderThatMattersAndAWayOut) {
    const ProcessResult result = race(max_plus_one);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.errors, "");
    for (const char* part :
         {"\"no number twice\" does not hold", "2 of 3 distinct schedules show it. The shortest has 1 preemption",
          "writer_1", "locks entry ACCESS SHARE", "Rows that must not be there:\n    seq\n    1\n",
          "What matters: 5 writer_2.next comes before 8 writer_1.commit", "The nearest schedule that holds:",
          "exhausted: 3 traces of 70 interleavings, READ COMMITTED, statement granularity"}) {
        EXPECT_THAT(result.output, HasSubstr(part));
    }
}

TEST_F(Race, DrawsAWaitWithWhoHoldsWhichRow) {
    const ProcessResult result = race(waits);
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.output, HasSubstr("It happens without any concurrency"));
    const ProcessResult schedule = race(std::string(waits) + "permutation begin lock raise commit\n");
    for (const char* part : {"locks account (id=7) FOR UPDATE", "┌ raise", "→ waits for a, which holds account", "│",
                             "└ raise   → UPDATE 1"}) {
        EXPECT_THAT(schedule.output, HasSubstr(part));
    }
}

TEST_F(Race, FitsIntoANarrowTerminalAndHasNoColourInAPipe) {
    const ProcessResult result = run_in_shell("COLUMNS=60 \"$rowlock\" race " + file(max_plus_one));
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.output, Not(HasSubstr("\033")));
    for (const std::string& line : lines_of(result.output)) {
        const auto is_start = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
        EXPECT_LE(std::ranges::count_if(line, is_start), 60) << line;
    }
}

TEST_F(Race, PointsAtWhatCannotBeRead) {
    expect_refused("session a\n  step x { SELECT 1 }\npermutation x y\n", "3:15", "no step y", "permutation x y");
    expect_refused("session a\n  step x { }\n  step x { }\n", "3:8", "has a step x already", "  step x { }");
    expect_refused("session a step x { SELECT 1\n", "1:18", "this '{' has no '}'", "session a step x { SELECT 1");
    expect_refused("session a step x { SELECT :n }", "1:27", "variable n is never set",
                   "session a step x { SELECT :n }");
    expect_refused("session a\nsession b step x { SELECT 1 }", "1:9", "session a has no step", "session a");
    expect_refused("session a step x { SELECT 1 } }", "1:31", "'}' is unknown here", "session a step x { SELECT 1 } }");
}

TEST_F(Race, TakesABraceInAStringOrADollarQuoteForText) {
    const ProcessResult result =
        race("session a step x { SELECT '}', $$ } $$, $q$}$q$ }\ninvariant \"i\" { SELECT '}' WHERE false }");
    EXPECT_EQ(result.exit_code, 0) << result.errors;
}

TEST_F(Race, PointsAtTheSetupThatTheServerRefuses) {
    expect_refused("setup {\n  CREATE TABLE t(i int);\n  INSERT INTO u VALUES (1);\n}\nsession a step x { SELECT 1 }\n",
                   "3:15", "relation \"u\" does not exist (SQLSTATE 42P01)", "  INSERT INTO u VALUES (1);");
    expect_refused("session a\n  setup { SELECT 1/0 }\n  step x { SELECT 1 }\n", "2:11", "division by zero",
                   "  setup { SELECT 1/0 }");
}

TEST_F(Race, TakesWhatTheServerSaysToAStepForItsOutcome) {
    const ProcessResult result =
        race("session a step x { SELEC 1 }\nsession b step y { SELECT 1/0 }\ninvariant \"i\" { SELECT 1 WHERE false }");
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_THAT(result.output, HasSubstr("the server refused a.x 42601"));
    EXPECT_THAT(result.output, HasSubstr("the server refused b.y 22012"));
}

TEST_F(Race, GoesOnWhereTheServerKillsASession) {
    const ProcessResult result = race(
        "session a step x { SELECT pg_terminate_backend(pg_backend_pid()) } step z { SELECT 1 }\n"
        "session b step y { SELECT 1 }\ninvariant \"i\" { SELECT 1 WHERE false }");
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_THAT(result.output, HasSubstr("a.x 57P01"));
}

TEST_F(Race, SaysThatAnInvariantCouldNotBeAsked) {
    const ProcessResult result = race("session a step x { SELECT 1 }\ninvariant \"i\" { SELECT nosuch }");
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_THAT(result.output, HasSubstr("\"i\": column \"nosuch\" does not exist"));
}

TEST_F(Race, SaysThatThereAreMoreSessionsThanConnections) {
    std::string text;
    for (int i = 0; i < 7; ++i) text += "session s" + std::to_string(i) + " * 16 step x { SELECT 1 }\n";
    const ProcessResult result = race(text);
    EXPECT_EQ(result.exit_code, 2);
    expect_one_line(result, {"too many clients already", "53300"});
}

TEST_F(Race, WantsFiles) {
    expect_one_line(run({"race"}), {"name a scenario file"});
    expect_one_line(run({"race", "nix.race"}), {"nix.race can't be read"});
    expect_one_line(run({"race", "/"}), {"is a folder"});
}

TEST_F(Race, ReplaysAFindingAndSaysWhereAChangedOneDiverges) {
    const std::string path = file(max_plus_one);
    EXPECT_EQ(run({"race", path, "--save-replay", "r.txt"}).exit_code, 1);
    const ProcessResult same = run({"race", "--replay", "r.txt"});
    EXPECT_EQ(same.exit_code, 1) << same.output << same.errors;
    EXPECT_THAT(same.output, HasSubstr("\"no number twice\" does not hold"));
    EXPECT_EQ(run({"race", "--replay", "r.txt"}).output, same.output) << "the same bytes";
    std::string changed(max_plus_one);
    changed.replace(changed.find("VALUES (:seq)"), 13, "VALUES (:seq + 1)");
    file(changed);
    const ProcessResult other = run({"race", "--replay", "r.txt"});
    EXPECT_EQ(other.exit_code, 3);
    EXPECT_THAT(other.output, HasSubstr("diverged at writer_1.put"));
}

/// A checker that is held up for longer than the deadlock detector waits: whom the detector failed in the meantime is
/// chance, and not an outcome of the schedule.
TEST_F(Race, GivesTheSameBytesOnAMachineThatIsTooSlowForDeadlocks) {
    const Arguments words{"race", std::string(ROWLOCK_SCENARIOS) + "/lock-order-twin.race", "--json"};
    const ProcessResult undisturbed = run(words);
    ASSERT_EQ(undisturbed.exit_code, 1) << undisturbed.errors;
    for (int round = 0; round < 4; ++round) {
        BackgroundProcess process(command(words));
        const auto end = std::chrono::steady_clock::now() + limit;
        while (process.running() && std::chrono::steady_clock::now() < end) {
            process.send(SIGSTOP);
            std::this_thread::sleep_for(std::chrono::milliseconds(30));
            process.send(SIGCONT);
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        EXPECT_EQ(process.wait(limit).output, undisturbed.output);
    }
}

/// What a run that was killed left: folders of clusters, and processes that work in them.
class RaceLeftovers : public Race {
  protected:
    /// A run that is in the middle of a step that waits for a session that is stopped.
    [[nodiscard]] std::string long_scenario() const {
        return "setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t SELECT g, 0 FROM generate_series(1, "
               "9) g }\n"
               "session a * 5\n step begin { BEGIN }\n step one { UPDATE t SET n = n + 1 WHERE id = 1 }\n"
               " step two { UPDATE t SET n = n + 1 WHERE id = 2 }\n step commit { COMMIT }\n"
               "invariant \"i\" { SELECT 1 WHERE false }\n";
    }
    /// The cluster's folder of that run, once its server answers.
    [[nodiscard]] std::string cluster_of(pid_t pid) const {
        return run_in_shell(
                   "for i in $(seq 200); do for d in /dev/shm /tmp; do f=$(ls -d $d/rowlock-race-*." +
                   std::to_string(pid) +
                   " 2>/dev/null | head -1); [ -n \"$f\" ] && [ -S $f/.s.PGSQL.5432 ] && sleep 1 && echo $f && exit; "
                   "done; sleep 0.05; done")
            .output;
    }
    [[nodiscard]] std::string processes_in(std::string folder) const {
        folder.erase(std::remove(folder.begin(), folder.end(), '\n'), folder.end());
        return run_in_shell("for p in /proc/[0-9]*; do [ \"$(readlink $p/cwd)\" = \"" + folder +
                            "/pgdata\" ] && echo ${p#/proc/}; done; ls -d \"" + folder + "\" 2>/dev/null || true")
            .output;
    }
};

TEST_F(RaceLeftovers, AreNoneAfterAnInterruption) {
    BackgroundProcess process(command({"race", file(long_scenario()), "--no-symmetry", "--max-seconds", "60"}));
    const std::string folder = cluster_of(process.pid());
    ASSERT_NE(folder, "");
    process.send(SIGINT);
    const ProcessResult result = process.wait(limit);
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_THAT(result.output, HasSubstr("bounded: at least"));
    EXPECT_EQ(processes_in(folder), "");
}

TEST_F(RaceLeftovers, OfAKilledRunAreGoneAtTheNextStart) {
    BackgroundProcess process(command({"race", file(long_scenario()), "--no-symmetry", "--max-seconds", "60"}));
    const std::string folder = cluster_of(process.pid());
    ASSERT_NE(folder, "");
    // Looked at before the kill: after it the next start may be another test's.
    process.send(SIGSTOP);
    ASSERT_NE(processes_in(folder), "") << "the run ended before the kill";
    process.kill_hard();
    EXPECT_EQ(race("session a step x { SELECT 1 }\ninvariant \"i\" { SELECT 1 WHERE false }").exit_code, 0);
    EXPECT_EQ(processes_in(folder), "");
}

TEST_F(RaceLeftovers, OfAServerThatDiesAreNoneAndTheRunSaysSo) {
    BackgroundProcess process(command({"race", file(long_scenario()), "--no-symmetry", "--max-seconds", "60"}));
    const std::string folder = cluster_of(process.pid());
    ASSERT_NE(folder, "");
    static_cast<void>(
        run_in_shell("kill -KILL $(head -1 " + folder.substr(0, folder.find('\n')) + "/pgdata/postmaster.pid)"));
    const ProcessResult result = process.wait(limit);
    EXPECT_EQ(result.exit_code, 3) << result.output << result.errors;
    EXPECT_THAT(result.errors, HasSubstr("the server is gone"));
    EXPECT_EQ(processes_in(folder), "");
}

/// On a server of the user's, the tests' one.
class RaceOnServer : public Race {
  protected:
    [[nodiscard]] ProcessResult race_on(std::string_view text, Arguments more) const {
        Arguments arguments{"race", file(text), "--db", database_.connection()};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run(arguments);
    }
    [[nodiscard]] std::string databases() const {
        return run_sql(database_.connection(), "SELECT count(*) FROM pg_database WHERE datname LIKE 'rowlock_race%'");
    }
    TestDatabase database_;
};

TEST_F(RaceOnServer, PlaysInADatabaseOfItsOwnAndDropsIt) {
    run_sql(database_.connection(), "CREATE TABLE entry AS SELECT 1 AS mine");
    EXPECT_EQ(race_on(max_plus_one, {}).exit_code, 1);
    EXPECT_EQ(databases(), "0");
    EXPECT_EQ(run_sql(database_.connection(), "SELECT mine FROM entry"), "1");
}

TEST_F(RaceOnServer, TakesAnEmptyDatabaseThatItIsAllowedAndLeavesItEmpty) {
    const std::string name = run_sql(database_.connection(), "SELECT current_database()");
    EXPECT_EQ(race_on(max_plus_one, {"--allow-database", name}).exit_code, 1);
    EXPECT_EQ(race_on(max_plus_one, {"--allow-database", name}).exit_code, 1) << "it must be empty again";
}

TEST_F(RaceOnServer, RefusesADatabaseWithAnythingInIt) {
    const std::string name = run_sql(database_.connection(), "SELECT current_database()");
    run_sql(database_.connection(), "CREATE TABLE customer AS SELECT 1 AS id");
    const ProcessResult result = race_on(max_plus_one, {"--allow-database", name});
    EXPECT_EQ(result.exit_code, 2);
    expect_one_line(result, {name, "is not empty", "customer"});
    EXPECT_EQ(run_sql(database_.connection(), "SELECT count(*) FROM customer"), "1");
}

TEST_F(RaceOnServer, LeavesTheOrderOfWaitersToTheServerAndSaysSo) {
    const ProcessResult result = race_on(
        "setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0); }\n"
        "session h step begin { BEGIN } step lock { SELECT 1 FROM t WHERE id = 1 FOR UPDATE } step commit { COMMIT }\n"
        "session a step x { UPDATE t SET n = 1 WHERE id = 1 }\nsession b step y { UPDATE t SET n = 2 WHERE id = 1 }\n"
        "invariant \"i\" { SELECT 1 WHERE false }",
        {});
    EXPECT_EQ(result.exit_code, 3) << result.output;
    EXPECT_EQ(databases(), "0");
}

TEST_F(Race, WantsADatabaseOnlyOnAServerThatIsNamed) {
    expect_one_line(run({"race", file(max_plus_one), "--allow-database", "x"}), {"--allow-database", "--db"});
}

TEST_F(Race, PlaysPgbenchScriptsAsSessions) {
    file("CREATE TABLE entry(seq int NOT NULL);", "tables.sql");
    file("BEGIN;\nSELECT coalesce(max(seq), 0) + 1 AS seq FROM entry \\gset\nINSERT INTO entry VALUES (:seq);\nEND;\n",
         "writer.sql");
    const ProcessResult result =
        run({"race", "--session", "writer.sql", "--session", "writer.sql", "--setup", "tables.sql", "--invariant",
             "SELECT seq FROM entry GROUP BY seq HAVING count(*) > 1"});
    EXPECT_EQ(result.exit_code, 1) << result.errors;
    EXPECT_THAT(result.output, HasSubstr("writer_2"));
    file("\\set n random(1, 9)\nSELECT :n;\n", "dice.sql");
    const ProcessResult refused = run({"race", "--session", "dice.sql"});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.errors, HasSubstr("dice.sql:1:1: \\set is unknown here"));
}

TEST_F(Race, WritesASpecThatItReadsAgain) {
    EXPECT_EQ(race(waits, {"--save-spec", "w.spec"}).exit_code, 1);
    const ProcessResult again = run({"race", "w.spec"});
    EXPECT_NE(again.exit_code, 2) << again.errors;
    EXPECT_THAT(again.output, HasSubstr("permutations that the file lists"));
}

TEST_F(Race, AsksAnInvariantAfterEveryEventWhereItSaysAlways) {
    const std::string text =
        "setup { CREATE TABLE t(n int); }\nsession a step in { INSERT INTO t VALUES (1) } step out { DELETE FROM t }\n";
    EXPECT_EQ(race(text + "invariant \"empty\" { SELECT n FROM t }").exit_code, 0);
    const ProcessResult always = race(text + "invariant always \"empty\" { SELECT n FROM t }");
    EXPECT_EQ(always.exit_code, 1);
    EXPECT_THAT(always.output, HasSubstr("\"empty (on the way)\""));
    EXPECT_EQ(race(text + "invariant \"empty\" { SELECT n FROM t }\npermutation in check out").exit_code, 1);
    EXPECT_EQ(race(text + "invariant \"empty\" { SELECT n FROM t }\npermutation in out check").exit_code, 0);
}

}  // namespace
}  // namespace rowlock::test
