// The explorer against a simulated database: every reduction must leave every outcome.
#include "race/explorer.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "race/simulated_stage.hpp"

namespace rowlock::race::test {
namespace {

using Kind = SimulatedStep::Kind;

struct Explored {
    std::set<std::string> outcomes{};
    ExplorationSummary summary{};
};

Explored explore_all(Stage& stage, bool reduce, const std::vector<std::size_t>& groups = {}) {
    ExplorerOptions options;
    options.reduce = reduce;
    options.groups = groups;
    options.executions_max = 400'000;
    Explored explored;
    explored.summary = explore(stage, options, [&](const Execution& execution) {
        explored.outcomes.insert(execution.ending.final_state);
        return true;
    });
    return explored;
}

const SimulatedSession read_then_write{{Kind::begin, 0}, {Kind::read, 0}, {Kind::write, 0}, {Kind::commit, 0}};

SimulatedSession random_session(std::mt19937& dice, int variables, int most) {
    const auto pick = [&](int below) { return static_cast<int>(dice() % static_cast<unsigned>(below)); };
    SimulatedSession session{{Kind::begin, 0}};
    const int steps = 1 + pick(most);
    for (int i = 0; i < steps; ++i) {
        const Kind kinds[] = {Kind::read, Kind::write, Kind::write, Kind::lock_shared};
        session.push_back({kinds[pick(4)], pick(variables)});
    }
    session.push_back({pick(5) == 0 ? Kind::rollback : Kind::commit, 0});
    return session;
}

TEST(Explorer, RunsEveryInterleavingWithoutReduction) {
    const SimulatedSession reads{{Kind::read, 0}, {Kind::read, 0}, {Kind::read, 0}, {Kind::read, 0}};
    SimulatedStage stage({reads, reads}, 1, false);
    const Explored explored = explore_all(stage, false);
    EXPECT_EQ(explored.summary.executions, 70U);
    EXPECT_TRUE(explored.summary.exhausted);
}

TEST(Explorer, RunsIndependentStepsInOneOrderOnly) {
    const SimulatedSession reads{{Kind::read, 0}, {Kind::read, 0}, {Kind::read, 0}, {Kind::read, 0}};
    SimulatedStage stage({reads, reads, reads}, 1, false);
    const Explored explored = explore_all(stage, true);
    EXPECT_EQ(explored.summary.executions, 1U);
    EXPECT_EQ(explored.summary.abandoned, 0U);
}

TEST(Explorer, SaysThatSomethingIsLeftWhenTheBudgetEnds) {
    SimulatedStage stage({read_then_write, read_then_write}, 1, false);
    ExplorerOptions options;
    options.executions_max = 2;
    const auto summary = explore(stage, options, [](const Execution&) { return true; });
    EXPECT_FALSE(summary.exhausted);
    EXPECT_GT(summary.open_branches, 0U);
}

TEST(Explorer, FindsTheSameOutcomesOfALostUpdate) {
    SimulatedStage stage({read_then_write, read_then_write}, 1, false);
    const Explored all = explore_all(stage, false);
    const Explored some = explore_all(stage, true);
    EXPECT_EQ(some.outcomes, all.outcomes);
    EXPECT_EQ(some.summary.executions, 6U);
}

TEST(Explorer, ExploresBothVictimsOfADeadlock) {
    const SimulatedSession up{{Kind::write, 0}, {Kind::write, 1}, {Kind::commit, 0}};
    const SimulatedSession down{{Kind::write, 1}, {Kind::write, 0}, {Kind::commit, 0}};
    SimulatedStage stage({up, down}, 2, false);
    const Explored all = explore_all(stage, false);
    const Explored some = explore_all(stage, true);
    EXPECT_EQ(some.outcomes, all.outcomes);
    EXPECT_EQ(all.outcomes.size(), 4U);
}

TEST(Explorer, LetsEveryWaiterGoFirst) {
    const SimulatedSession writer{{Kind::write, 0}, {Kind::commit, 0}};
    SimulatedStage stage({writer, writer, writer}, 1, false);
    const Explored all = explore_all(stage, false);
    const Explored some = explore_all(stage, true);
    EXPECT_EQ(some.outcomes, all.outcomes);
    EXPECT_EQ(all.outcomes.size(), 6U);
}

/// Programs too small to be told apart prove little, so there are many; the seed is in the message.
class RandomPrograms : public testing::TestWithParam<int> {};

TEST_P(RandomPrograms, GiveTheSameOutcomesWithReduction) {
    for (int i = 0; i < 60; ++i) {
        const auto seed = static_cast<unsigned>(GetParam() * 1000 + i);
        std::mt19937 dice(seed);
        const int variables = 1 + static_cast<int>(dice() % 3);
        std::vector<SimulatedSession> sessions;
        const std::size_t count = i % 3 == 0 ? 3 : 2;
        for (std::size_t s = 0; s < count; ++s) sessions.push_back(random_session(dice, variables, count == 3 ? 2 : 4));
        SimulatedStage stage(sessions, variables, false);
        const Explored all = explore_all(stage, false);
        const Explored some = explore_all(stage, true);
        ASSERT_TRUE(all.summary.exhausted && some.summary.exhausted) << "seed " << seed;
        ASSERT_EQ(some.outcomes, all.outcomes) << "seed " << seed;
        ASSERT_LE(some.summary.executions, all.summary.executions) << "seed " << seed;
    }
}

TEST_P(RandomPrograms, GiveTheSameOutcomesWithSymmetry) {
    for (int i = 0; i < 60; ++i) {
        const auto seed = static_cast<unsigned>(GetParam() * 1000 + i);
        std::mt19937 dice(seed);
        const int variables = 1 + static_cast<int>(dice() % 2);
        const SimulatedSession copied = random_session(dice, variables, i % 2 == 0 ? 2 : 4);
        std::vector<SimulatedSession> sessions{copied, copied};
        std::vector<std::size_t> groups{0, 0};
        if (i % 2 == 0) {
            sessions.push_back(i % 4 == 0 ? copied : random_session(dice, variables, 2));
            groups.push_back(i % 4 == 0 ? 0U : 1U);
        }
        SimulatedStage stage(sessions, variables, true);
        const Explored all = explore_all(stage, false);
        const Explored some = explore_all(stage, true, groups);
        ASSERT_EQ(some.outcomes, all.outcomes) << "seed " << seed;
    }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPrograms, testing::Range(0, 6));

}  // namespace
}  // namespace rowlock::race::test
