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

void compare(std::string (*write)(unsigned)) {
    const int count = rowlock::test::number_from("ROWLOCK_RANDOM_SCENARIOS", scenarios_default);
    const int first = rowlock::test::number_from("ROWLOCK_RANDOM_FROM", 0);
    const ThrowawayCluster cluster;
    std::size_t all = 0;
    std::size_t reduced = 0;
    int whole = 0;
    for (int seed = first; seed < first + count; ++seed) {
        const std::string text = write(static_cast<unsigned>(seed));
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

TEST(RandomScenarios, LoseNoOutcomeToTheReduction) {
    compare(random_scenario);
}
TEST(RandomScenarios, OfSingleRowsLoseNoOutcomeToTheReduction) {
    compare(random_row_scenario);
}

}  // namespace
}  // namespace rowlock::race::test
