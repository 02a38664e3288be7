#include "cli/idle_wait.hpp"

#include <gmock/gmock.h>

#include <vector>

namespace rowlock::cli {
namespace {

using namespace std::chrono_literals;

std::vector<std::chrono::milliseconds> next_of(IdleWait& wait, int count) {
    std::vector<std::chrono::milliseconds> waits;
    for (int i = 0; i < count; ++i) waits.push_back(wait.next());
    return waits;
}

TEST(IdleWait, DoublesUpToTheLongest) {
    IdleWait wait(500ms);
    EXPECT_THAT(next_of(wait, 9), testing::ElementsAre(5ms, 10ms, 20ms, 40ms, 80ms, 160ms, 320ms, 500ms, 500ms));
}

TEST(IdleWait, BeginsAnewAfterWork) {
    IdleWait wait(500ms);
    next_of(wait, 9);
    wait.worked();
    EXPECT_THAT(next_of(wait, 2), testing::ElementsAre(5ms, 10ms));
}

TEST(IdleWait, IsNeverLongerThanTheLongest) {
    IdleWait wait(2ms);
    EXPECT_THAT(next_of(wait, 2), testing::ElementsAre(2ms, 2ms));
}

}  // namespace
}  // namespace rowlock::cli
