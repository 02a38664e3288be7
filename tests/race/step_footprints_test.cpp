#include "race/step_footprints.hpp"

#include <gtest/gtest.h>

namespace rowlock::race::test {
namespace {

Event event_of(std::size_t session, const Footprint& footprint) {
    Event event;
    event.move = {Move::Kind::step, session, 0};
    event.footprint = footprint;
    event.reports.push_back({.session = session, .footprint = footprint});
    return event;
}

Footprint writing(ResourceId table) {
    Footprint footprint;
    footprint.writes.add(table);
    return footprint;
}

TEST(StepFootprints, KeepWhatAStepDidInAnotherExecution) {
    StepFootprints known;
    Event writes = event_of(0, writing(1));
    EXPECT_TRUE(known.learn(writes));
    Event waits = event_of(0, {});
    EXPECT_FALSE(known.learn(waits));
    EXPECT_TRUE(waits.footprint.writes.contains(1));
    EXPECT_TRUE(waits.reports.front().footprint.writes.contains(1));
}

TEST(StepFootprints, CountWhatAWokenStepDidToTheOneThatWokeIt) {
    StepFootprints known;
    Event wakes = event_of(0, {});
    wakes.reports.push_back({.session = 1, .woken = true, .footprint = writing(2)});
    wakes.footprint.unite(writing(2));
    EXPECT_TRUE(known.learn(wakes));
    Event wakes_nobody = event_of(0, {});
    EXPECT_FALSE(known.learn(wakes_nobody));
    EXPECT_TRUE(wakes_nobody.footprint.writes.contains(2));
    Event woken_one = event_of(1, {});
    EXPECT_FALSE(known.learn(woken_one));
    EXPECT_TRUE(woken_one.footprint.writes.contains(2));
}

}  // namespace
}  // namespace rowlock::race::test
