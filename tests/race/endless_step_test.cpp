#include <gtest/gtest.h>

#include "race/check_on_server.hpp"
#include "race/throwaway_cluster.hpp"

namespace rowlock::race::test {
namespace {

TEST(EndlessStep, IsCancelledAndSaidPlainlyAndNothingIsLeft) {
    const ThrowawayCluster cluster;
    const PlayGround ground{.server = cluster.connection()};
    const Scenario scenario = parse_scenario(
        "session a step fine { SELECT 1 } step endless { SELECT pg_sleep(1000) }\nsession b step other { SELECT 1 }\n"
        "invariant \"i\" { SELECT 1 WHERE false }",
        "f.race");
    {
        const ScenarioDatabase database(ground);
        ConductorOptions options = database.conductor_options("");
        options.step_wait_max = std::chrono::milliseconds(200);
        Conductor conductor(scenario, options);
        const CheckResult result = check(scenario, conductor, "", {});
        EXPECT_EQ(result.exit_code(), 3);
        EXPECT_NE(result.summary.problem.find("the step a.endless does not end: 0.2 s"), std::string::npos)
            << result.summary.problem;
    }
    ServerWatch watch(cluster.connection());
    const Rows rows =
        query(watch.session(), {"test.left",
                                "SELECT (SELECT count(*) FROM pg_database WHERE datname LIKE 'rowlock_race%')"
                                " + (SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(1000%'"
                                "    AND pid <> pg_backend_pid())"});
    EXPECT_EQ(rows.only().integer(0), 0);
}

}  // namespace
}  // namespace rowlock::race::test
