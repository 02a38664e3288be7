#include "postgres/retry.hpp"

#include <algorithm>

namespace rowlock {

std::optional<std::chrono::milliseconds> wait_before_next(const TransactionPolicy& policy, const FailedAttempt& failed,
                                                          double chance) {
    const bool may_run_again =
        failed.busy ? policy.retry_busy
                    : failed.recovery == Recovery::run_again || failed.recovery == Recovery::reconnect_and_run_again;
    if (!may_run_again || failed.number >= policy.attempts_max) return std::nullopt;
    // Full jitter: writers that failed together must not come back together.
    auto ceiling = policy.backoff_first;
    for (int i = 1; i < failed.number && ceiling < policy.backoff_max; ++i) ceiling *= 2;
    ceiling = std::min(ceiling, policy.backoff_max);
    const auto wait = std::chrono::milliseconds(
        static_cast<std::chrono::milliseconds::rep>(chance * static_cast<double>(ceiling.count() + 1)));
    if (failed.elapsed + wait >= policy.deadline) return std::nullopt;
    return wait;
}

}  // namespace rowlock
