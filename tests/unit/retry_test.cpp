#include "postgres/retry.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace rowlock {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr double almost_one = 0.999999;

struct Case {
    std::string_view claim;
    TransactionPolicy policy;
    FailedAttempt failed;
    double chance;
    std::optional<milliseconds> wait;
};

TransactionPolicy policy_of(int attempts_max = 5, bool retry_busy = false, milliseconds deadline = 30s) {
    return {.attempts_max = attempts_max,
            .backoff_first = 8ms,
            .backoff_max = 100ms,
            .deadline = deadline,
            .retry_busy = retry_busy};
}

TEST(WaitBeforeNext, decides_by_the_policy) {
    using enum Recovery;
    const std::vector<Case> cases{
        {"a passing reason is run again", policy_of(), {1, 0ms, run_again, false}, 0.0, 0ms},
        {"so is a lost link", policy_of(), {1, 0ms, reconnect_and_run_again, false}, 0.0, 0ms},
        {"a commit in doubt is not", policy_of(), {1, 0ms, ask_server_first, false}, 0.0, {}},
        {"what stays wrong is not", policy_of(), {1, 0ms, give_up, false}, 0.0, {}},
        {"busy is not", policy_of(), {1, 0ms, run_again, true}, 0.0, {}},
        {"busy is, if asked for", policy_of(5, true), {1, 0ms, run_again, true}, 0.0, 0ms},
        {"the last attempt but one is followed", policy_of(), {4, 0ms, run_again, false}, 0.0, 0ms},
        {"the last attempt is not", policy_of(), {5, 0ms, run_again, false}, 0.0, {}},
        {"a single attempt is the last", policy_of(1), {1, 0ms, run_again, false}, 0.0, {}},
        {"within the deadline", policy_of(5, false, 100ms), {1, 99ms, run_again, false}, 0.0, 0ms},
        {"at the deadline it is over", policy_of(5, false, 100ms), {1, 100ms, run_again, false}, 0.0, {}},
        {"a wait that ends past it, too", policy_of(5, false, 100ms), {1, 95ms, run_again, false}, almost_one, {}},
        {"the first ceiling", policy_of(9), {1, 0ms, run_again, false}, almost_one, 8ms},
        {"doubles", policy_of(9), {2, 0ms, run_again, false}, almost_one, 16ms},
        {"and doubles", policy_of(9), {4, 0ms, run_again, false}, almost_one, 64ms},
        {"up to the highest", policy_of(9), {5, 0ms, run_again, false}, almost_one, 100ms},
        {"for good", policy_of(1000), {900, 0ms, run_again, false}, almost_one, 100ms},
        {"half a chance is half the ceiling", policy_of(9), {5, 0ms, run_again, false}, 0.5, 50ms},
    };
    for (const Case& one : cases) {
        EXPECT_EQ(wait_before_next(one.policy, one.failed, one.chance), one.wait) << one.claim;
    }
}

TEST(WaitBeforeNext, spreads_over_all_of_the_time_up_to_the_ceiling) {
    const FailedAttempt failed{4, 0ms, Recovery::run_again, false};
    std::vector<int> hits(65);
    for (int i = 0; i < 6500; ++i) {
        const auto wait = wait_before_next(policy_of(), failed, i / 6500.0);
        ASSERT_TRUE(wait && *wait >= 0ms && *wait <= 64ms);
        ++hits[static_cast<std::size_t>(wait->count())];
    }
    for (const int hit : hits) EXPECT_NEAR(hit, 100, 1);
}

TEST(WaitBeforeNext, never_waits_longer_than_the_highest_ceiling_even_at_first) {
    TransactionPolicy policy = policy_of();
    policy.backoff_first = 500ms;
    EXPECT_EQ(wait_before_next(policy, {1, 0ms, Recovery::run_again, false}, almost_one), 100ms);
    policy.backoff_first = 0ms;
    EXPECT_EQ(wait_before_next(policy, {3, 0ms, Recovery::run_again, false}, almost_one), 0ms);
}

}  // namespace
}  // namespace rowlock
