// The minimiser, on the simulated database: two sessions lose an update, a third one has nothing to do with it.
#include "race/minimiser.hpp"

#include <gtest/gtest.h>

#include "race/explorer.hpp"
#include "race/simulated_stage.hpp"

namespace rowlock::race::test {
namespace {

using Kind = SimulatedStep::Kind;

const SimulatedSession raise{{Kind::begin}, {Kind::read, 0}, {Kind::write, 0}, {Kind::commit}};
const SimulatedSession bystander{{Kind::begin},  {Kind::read, 1}, {Kind::write, 1},
                                 {Kind::commit}, {Kind::begin},   {Kind::commit}};

std::size_t committed_at(const Execution& execution, std::size_t session) {
    for (std::size_t i = 0; i < execution.events.size(); ++i) {
        if (execution.events[i].move.session == session && execution.events[i].move.step == 3) return i;
    }
    return execution.events.size();
}

std::size_t read_at(const Execution& execution, std::size_t session) {
    for (std::size_t i = 0; i < execution.events.size(); ++i) {
        if (execution.events[i].move.session == session && execution.events[i].move.step == 1) return i;
    }
    return execution.events.size();
}

/// Both read before either committed, and both committed.
bool loses_an_update(const Execution& execution) {
    const std::size_t end = execution.events.size();
    const std::size_t one = committed_at(execution, 0);
    const std::size_t other = committed_at(execution, 1);
    return one < end && other < end && read_at(execution, 0) < other && read_at(execution, 1) < one;
}

class MinimiserTest : public testing::Test {
  protected:
    MinimiserTest() {
        // The longest way there is: each session one step further at a time.
        stage_.restart();
        const std::vector<std::size_t> order{2, 0, 1, 2, 1, 0, 2, 0, 2, 0, 2, 1, 1, 2};
        for (const std::size_t session : order) {
            for (const Move& move : stage_.moves()) {
                if (move.session != session) continue;
                found_.events.push_back(stage_.perform(move));
                break;
            }
        }
        found_.ending = stage_.finish();
    }

    SimulatedStage stage_{{raise, raise, bystander}, 2, false};
    Execution found_;
};

TEST_F(MinimiserTest, LeavesOutTheBystanderAndAllButOnePreemption) {
    ASSERT_TRUE(loses_an_update(found_));
    ASSERT_GT(count_preemptions(found_), 4U);
    const Execution shortest = minimise(stage_, found_, {.shows = loses_an_update, .is_out_of_time = {}});
    EXPECT_TRUE(loses_an_update(shortest));
    EXPECT_EQ(count_preemptions(shortest), 1U);
    EXPECT_EQ(shortest.events.size(), 8U);
    for (const Event& event : shortest.events) EXPECT_NE(event.move.session, 2U);
}

TEST_F(MinimiserTest, KeepsEverythingWhereASerialOrderWouldShowTheSame) {
    const auto always = [](const Execution&) { return true; };
    const Execution shortest = minimise(stage_, found_, {.shows = always, .is_out_of_time = {}});
    EXPECT_EQ(shortest.events.size(), found_.events.size()) << "what is left would be no race";
}

TEST_F(MinimiserTest, StopsWhenTheTimeIsOver) {
    const Execution shortest =
        minimise(stage_, found_, {.shows = loses_an_update, .is_out_of_time = [] { return true; }});
    EXPECT_EQ(count_preemptions(shortest), count_preemptions(found_));
}

}  // namespace
}  // namespace rowlock::race::test
