#pragma once

#include <algorithm>
#include <chrono>

namespace rowlock::cli {

/// How long one who polls waits when there is nothing to do: doubling up to a longest, so that an idle one costs
/// little, and from the shortest again after work, as more may follow.
class IdleWait {
  public:
    static constexpr std::chrono::milliseconds shortest{5};

    explicit IdleWait(std::chrono::milliseconds longest) : longest_(longest) {}

    void worked() { next_ = shortest; }
    [[nodiscard]] std::chrono::milliseconds next() {
        const std::chrono::milliseconds now = std::min(next_, longest_);
        next_ = now * 2;
        return now;
    }

  private:
    std::chrono::milliseconds longest_;
    std::chrono::milliseconds next_ = shortest;
};

}  // namespace rowlock::cli
