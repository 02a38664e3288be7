#include "race/copy_order.hpp"

#include <gtest/gtest.h>

namespace rowlock::race::test {
namespace {

/// A step that conflicts with itself, or does nothing.
Event event_of(std::size_t session, std::size_t step, bool writes) {
    Event event;
    event.move = {Move::Kind::step, session, step};
    if (writes) event.footprint.writes.add(1);
    return event;
}

TEST(CopyOrder, IsOffWhereNoTwoSessionsAreAlike) {
    EXPECT_FALSE(CopyOrder({}).is_on());
    EXPECT_FALSE(CopyOrder({0, 1, 2}).is_on());
    EXPECT_TRUE(CopyOrder({0, 1, 0}).is_on());
}

TEST(CopyOrder, HoldsACopyBackAtTheFirstStepThatMattersUntilTheOneBeforeHasPassed) {
    CopyOrder order({0, 0});
    const Event begin = event_of(0, 0, false);
    const Event write = event_of(0, 1, true);
    const Event other_begin = event_of(1, 0, false);
    const Event other_write = event_of(1, 1, true);
    const Event* const played[] = {&begin, &write, &other_begin, &other_write};
    order.set_gates(played);
    ASSERT_TRUE(order.has_gates());
    EXPECT_FALSE(order.holds_back(other_begin.move, Prefix(played).first(1)));
    EXPECT_TRUE(order.holds_back(other_write.move, Prefix(played).first(1)));
    EXPECT_FALSE(order.holds_back(other_write.move, Prefix(played).first(2)));
    EXPECT_FALSE(order.holds_back(write.move, {}));
    EXPECT_TRUE(order.all_have_passed(played));
    EXPECT_FALSE(order.all_have_passed(Prefix(played).first(3)));
    EXPECT_TRUE(order.order_of(played).contains({1, 3}));
}

}  // namespace
}  // namespace rowlock::race::test
