#include <gtest/gtest.h>

#include "race/check_on_server.hpp"
#include "race/generated_race.hpp"
#include "race/permutation.hpp"
#include "race/stage.hpp"
#include "race/throwaway_cluster.hpp"

namespace rowlock::race::test {
namespace {

/// Plays each permutation that a scenario lists.
std::vector<Execution> play_listed(std::string_view text) {
    const ThrowawayCluster cluster;
    const PlayGround ground{.server = cluster.connection()};
    const Scenario scenario = parse_scenario(text, "f.race");
    const ScenarioDatabase database(ground);
    Conductor conductor(scenario, database.conductor_options(""));
    std::vector<Execution> played;
    for (const Permutation& permutation : scenario.permutations) {
        played.push_back(with_reruns([&] { return play_permutation(scenario, permutation, conductor); }));
    }
    return played;
}

TEST(CancelledWaiter, HearsOfItWhenItIsSentAndNotWhenItsLockIsFree) {
    const std::vector<Execution> played = play_listed(R"(
        setup { CREATE TABLE t (n int); CREATE TABLE waiter (pid int); }
        session holder
          step hold { BEGIN; LOCK TABLE t }
          step cancel { SELECT pg_cancel_backend(pid) FROM waiter }
          step end { COMMIT }
        session waiter
          step tell { INSERT INTO waiter SELECT pg_backend_pid() }
          step wait { SELECT n FROM t }
        permutation hold tell wait cancel end
    )");
    const Execution& execution = played.front();
    ASSERT_EQ(execution.events.size(), 5U);
    const Event& cancel = execution.events[3];
    ASSERT_EQ(cancel.reports.size(), 2U);
    EXPECT_EQ(cancel.reports[1].statements.back().sqlstate, "57014");
    EXPECT_EQ(execution.events[4].reports.size(), 1U);
}

TEST(EndedSession, IsNoticedAtTheStepThatEndsIt) {
    const CheckResult result = RaceRunner().check_text(R"(
        setup { CREATE TABLE t (v int); INSERT INTO t VALUES (0); CREATE TABLE pids (pid int); }
        session a
          step end { SELECT pg_terminate_backend(pid) FROM pids }
        session b
          on_error stop
          step tell { INSERT INTO pids VALUES (pg_backend_pid()) }
          step write { UPDATE t SET v = v + 10 }
        invariant "b has written" { SELECT v FROM t WHERE v <> 10 }
    )");
    ASSERT_EQ(result.findings.size(), 1U);
    const std::vector<Event>& shown = result.findings[0].execution.events;
    ASSERT_EQ(shown.size(), 3U) << "the refused step is part of it";
    EXPECT_EQ(shown[0].move.session, 1U);
    EXPECT_EQ(shown[1].move.session, 0U);
    EXPECT_EQ(shown[2].move.session, 1U);
}

TEST(CancelledWaiter, RunsIntoItsOwnTimeoutWhereAPermutationLeavesNobodyElseToGoOn) {
    const std::vector<Execution> played = play_listed(R"(
        setup { CREATE TABLE t (n int) }
        session holder
          step hold { BEGIN; LOCK TABLE t }
          step end { COMMIT }
        session waiter
          step limit { BEGIN; SET LOCAL lock_timeout = '10ms' }
          step wait { LOCK TABLE t }
          step rest { ROLLBACK }
        permutation hold limit wait rest end
        permutation hold limit wait end rest
    )");
    const Execution& alone = played.front();
    EXPECT_EQ(alone.events[2].reports[0].statements.back().sqlstate, "55P03");
    const Execution& freed = played.back();
    EXPECT_TRUE(freed.events[2].reports[0].is_waiting());
    EXPECT_EQ(freed.events[3].reports[1].statements.back().sqlstate, "");
}

}  // namespace
}  // namespace rowlock::race::test
