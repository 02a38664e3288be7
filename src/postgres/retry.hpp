// Whether and when a transaction is run again: a decision without a clock or a dice of its own.
#pragma once

#include <chrono>
#include <optional>

#include "rowlock/database.hpp"

namespace rowlock {

struct FailedAttempt {
    int number;  ///< 1 for the first.
    std::chrono::milliseconds elapsed;
    Recovery recovery;
    bool busy;
};

/// How long to wait before the next attempt; nothing if there is none. `chance` is in [0, 1).
[[nodiscard]] std::optional<std::chrono::milliseconds> wait_before_next(const TransactionPolicy& policy,
                                                                        const FailedAttempt& failed, double chance);

}  // namespace rowlock
