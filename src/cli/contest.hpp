// Clients that do one thing over and over for a while, all at once, and how long each time took.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

namespace rowlock::cli {

/// What one client has seen; all times in milliseconds.
struct Tally {
    std::size_t client = 0;  ///< Its number, from 0.
    std::minstd_rand dice{};
    std::int64_t done = 0;           ///< What counts as work.
    std::vector<double> answers{};   ///< Until it was told yes.
    std::vector<double> refusals{};  ///< Until it was told no.
};

/// Of all clients together.
struct ContestResult {
    double per_second = 0;
    double answer_median = 0;
    double refusal_median = 0;
    double refusal_p99 = 0;
    std::int64_t refusals = 0;
};

/// The value below which this share of all lies; 0 of none. Sorts them.
[[nodiscard]] double quantile(std::vector<double>& values, double share);

/// The middle one; 0 of none.
[[nodiscard]] double median(std::vector<double> values);

/// Of rounds in turn, the middle one of their ratios: what disturbs one round disturbs its own ratio alone.
[[nodiscard]] double median_ratio(const std::vector<double>& values, const std::vector<double>& to);

[[nodiscard]] double seconds_of(const std::function<void()>& work);

/// A stopwatch from its making on.
class Stopwatch {
  public:
    [[nodiscard]] double milliseconds() const {
        return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
    }

  private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Runs `once` in `clients` threads for so many seconds. The first fault of a client is thrown.
ContestResult run_contest(int clients, double seconds, const std::function<void(Tally&)>& once);

}  // namespace rowlock::cli
