// Random scenarios on a real server: the reduction leaves no outcome out, in any order of the sessions.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "race/random_scenario.hpp"
#include "race/reduction_comparison.hpp"
#include "race/throwaway_cluster.hpp"
#include "support/environment.hpp"

namespace rowlock::race::test {
namespace {

/// So many by default; ROWLOCK_RANDOM_SCENARIOS asks for more, ROWLOCK_RANDOM_FROM for other seeds.
constexpr int scenarios_default = 12;

TEST(RandomScenarios, LoseNoOutcomeToTheReduction) {
    const int count = rowlock::test::number_from("ROWLOCK_RANDOM_SCENARIOS", scenarios_default);
    const int first = rowlock::test::number_from("ROWLOCK_RANDOM_FROM", 0);
    const ThrowawayCluster cluster;
    std::size_t all = 0;
    std::size_t reduced = 0;
    int whole = 0;
    for (int seed = first; seed < first + count; ++seed) {
        const std::string text = random_scenario(static_cast<unsigned>(seed));
        ComparisonOptions options;
        options.executions_max = 300;
        options.all_orders = seed % 4 == 0;
        const Comparison comparison =
            compare_reduction(parse_scenario(text, fmt::format("seed {}", seed)), cluster.connection(), options);
        EXPECT_EQ(comparison.difference, "") << "seed " << seed << "\n" << text;
        if (!comparison.whole) continue;
        ++whole;
        all += comparison.all;
        reduced += comparison.reduced;
    }
    fmt::print(
        "seeds {} to {}: {} scenarios compared whole, {} in part; of the whole ones {} executions, {} with"
        " reduction\n",
        first, first + count - 1, whole, count - whole, all, reduced);
}

}  // namespace
}  // namespace rowlock::race::test
