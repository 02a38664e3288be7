#include "cli/contest.hpp"

#include <algorithm>
#include <atomic>
#include <latch>
#include <optional>
#include <thread>

#include "cli/crowd.hpp"

namespace rowlock::cli {

double quantile(std::vector<double>& values, double share) {
    if (values.empty()) return 0;
    std::ranges::sort(values);
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

double median(std::vector<double> values) {
    return quantile(values, 0.5);
}

double median_ratio(const std::vector<double>& values, const std::vector<double>& to) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < values.size(); ++i) ratios.push_back(values[i] / to[i]);
    return median(ratios);
}

double seconds_of(const std::function<void()>& work) {
    const Stopwatch watch;
    work();
    return watch.milliseconds() / 1000;
}

ContestResult run_contest(int clients, double seconds, const std::function<void(Tally&)>& once) {
    std::vector<Tally> tallies(static_cast<std::size_t>(clients));
    std::atomic<bool> stop = false;
    std::latch warm(clients + 1);  // and the one who stops them
    std::optional<Stopwatch> watch;
    run_crowd(tallies.size() + 1, [&](std::size_t i) {
        if (i == tallies.size()) {
            warm.arrive_and_wait();
            watch.emplace();
            std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
            stop = true;
            return;
        }
        tallies[i].client = i;
        tallies[i].dice.seed(static_cast<unsigned>(i + 1));
        try {
            once(tallies[i]);  // connects and plans
        } catch (...) {
            warm.count_down();
            throw;
        }
        tallies[i] = {.client = i, .dice = tallies[i].dice};
        warm.arrive_and_wait();
        while (!stop) once(tallies[i]);
    });
    const double elapsed = watch->milliseconds() / 1000;
    ContestResult result;
    std::vector<double> answers;
    std::vector<double> refusals;
    std::int64_t done = 0;
    for (const Tally& tally : tallies) {
        done += tally.done;
        answers.insert(answers.end(), tally.answers.begin(), tally.answers.end());
        refusals.insert(refusals.end(), tally.refusals.begin(), tally.refusals.end());
    }
    result.per_second = static_cast<double>(done) / elapsed;
    result.answer_median = quantile(answers, 0.5);
    result.refusal_median = quantile(refusals, 0.5);
    result.refusal_p99 = quantile(refusals, 0.99);
    result.refusals = static_cast<std::int64_t>(refusals.size());
    return result;
}

}  // namespace rowlock::cli
