#include "cli/contest.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <latch>
#include <optional>
#include <thread>

namespace rowlock::cli {

namespace {

double quantile(std::vector<double>& values, double share) {
    if (values.empty()) return 0;
    std::ranges::sort(values);
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

}  // namespace

ContestResult run_contest(int clients, double seconds, const std::function<void(Tally&)>& once) {
    std::vector<Tally> tallies(static_cast<std::size_t>(clients));
    std::vector<std::exception_ptr> faults(tallies.size());
    std::atomic<bool> stop = false;
    std::optional<Stopwatch> watch;
    {
        std::latch warm(clients + 1);  // and this thread
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < tallies.size(); ++i) {
            threads.emplace_back([&, i] {
                tallies[i].dice.seed(static_cast<unsigned>(i + 1));
                bool is_warm = false;
                try {
                    once(tallies[i]);  // connects and plans
                    tallies[i] = {tallies[i].dice};
                    warm.arrive_and_wait();
                    is_warm = true;
                    while (!stop) once(tallies[i]);
                } catch (...) {
                    faults[i] = std::current_exception();
                    if (!is_warm) warm.count_down();
                }
            });
        }
        warm.arrive_and_wait();
        watch.emplace();
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
        stop = true;
    }
    const double elapsed = watch->milliseconds() / 1000;
    ContestResult result;
    std::vector<double> answers;
    std::vector<double> refusals;
    std::int64_t done = 0;
    for (std::size_t i = 0; i < tallies.size(); ++i) {
        if (faults[i]) std::rethrow_exception(faults[i]);
        done += tallies[i].done;
        answers.insert(answers.end(), tallies[i].answers.begin(), tallies[i].answers.end());
        refusals.insert(refusals.end(), tallies[i].refusals.begin(), tallies[i].refusals.end());
    }
    result.per_second = static_cast<double>(done) / elapsed;
    result.answer_median = quantile(answers, 0.5);
    result.refusal_median = quantile(refusals, 0.5);
    result.refusal_p99 = quantile(refusals, 0.99);
    result.refusals = static_cast<std::int64_t>(refusals.size());
    return result;
}

}  // namespace rowlock::cli
