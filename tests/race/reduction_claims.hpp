// A claim of the dependency relation as a scenario on a real server, and how it is held to.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <span>

#include "race/reduction_comparison.hpp"
#include "race/throwaway_cluster.hpp"

namespace rowlock::race::test {

struct Claim {
    std::string_view name;
    std::size_t outcomes_min;  ///< Fewer would mean that the scenario shows nothing.
    std::string_view text;
};

class Reduction : public testing::Test {
  protected:
    void compare(std::span<const Claim> claims) {
        for (const Claim& claim : claims) {
            const Scenario scenario = parse_scenario(claim.text, claim.name);
            ComparisonOptions options;
            if (!scenario.isolations.empty()) options.isolation = scenario.isolations.front();
            const Comparison comparison = compare_reduction(scenario, cluster_.connection(), options);
            EXPECT_EQ(comparison.difference, "") << claim.name;
            EXPECT_TRUE(comparison.whole) << claim.name;
            EXPECT_GE(comparison.outcomes.size(), claim.outcomes_min) << claim.name;
            EXPECT_LE(comparison.reduced_max, comparison.all) << claim.name;
            fmt::print("{:5} {:4} {:3}  {}\n", comparison.all, comparison.reduced_max, comparison.outcomes.size(),
                       claim.name);
        }
    }

    ThrowawayCluster cluster_;
};

}  // namespace rowlock::race::test
