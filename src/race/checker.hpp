// From a scenario to a verdict.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "race/execution.hpp"
#include "race/explorer.hpp"
#include "race/scenario.hpp"
#include "race/stage.hpp"
#include "race/symptoms.hpp"

namespace rowlock::race {

struct CheckOptions {
    bool reduce = true;
    bool symmetry = true;
    std::size_t executions_max = 20'000;
    std::chrono::milliseconds time_max{60'000};
    bool stop_at_first = false;
    /// The stage can decide who of several waiters goes on first and who is a deadlock's victim. Where it can't, an
    /// execution in which that mattered proves nothing for the others.
    bool decides_wakes = true;
    /// Findings are made as short as they can be, and played once more to look at their locks.
    bool explain = true;
    std::function<bool()> is_interrupted{};
    /// Told now and then how far it is.
    std::function<void(std::size_t executions, std::size_t broken)> progress{};
};

/// Something that must not happen, and the shortest schedule known that makes it happen.
struct Finding {
    Symptom symptom{};
    Execution execution{};
    std::size_t preemptions = 0;
    std::size_t count = 0;         ///< Executions that show it.
    bool in_serial_order = false;  ///< It needs no concurrency at all.
    /// The nearest execution that shows no finding, and the first two events that come the other way round there.
    std::optional<Execution> nearest_good{};
    struct Pair {
        std::size_t first = 0;
        std::size_t second = 0;
    };
    std::optional<Pair> order_that_matters{};
};

struct CheckResult {
    std::string scenario{};
    std::string isolation{};       ///< Of transactions that name none; empty: as the server has it.
    bool names_isolation = false;  ///< Some step names a level of its own.
    bool stopped_at_first = false;
    std::size_t left_to_server = 0;  ///< Executions in which the server chose where the checker should have.
    std::vector<Finding> findings{};
    ExplorationSummary summary{};
    std::size_t serial_orders = 0;
    bool listed = false;  ///< Only the permutations of the file were played.
    /// Steps that the server refused, such as "a.put 23505", and in how many executions.
    std::map<std::string, std::size_t> refusals{};
    std::size_t broken = 0;            ///< Executions with at least one finding.
    std::string interleavings{};       ///< Of all steps, as a number or "more than …".
    std::size_t unreadable = 0;        ///< Executions after which an invariant could not be asked.
    std::string unreadable_problem{};  ///< Of the last of them.
    std::string oracle{};              ///< "session", "transaction", or why it is off.
    std::set<std::string> outcomes{};  ///< Final states with what each session saw.
    std::chrono::milliseconds elapsed{};

    /// 0 exhausted and clean, 1 a finding, 3 could not tell.
    [[nodiscard]] int exit_code() const;
};

/// `objection` says why the serial oracle can't be used; empty where it can.
[[nodiscard]] CheckResult check(const Scenario& scenario, Stage& stage, const std::string& objection,
                                const CheckOptions& options);

/// The end state and everything that each session was told, as one text.
[[nodiscard]] std::string outcome_text(const Scenario& scenario, const Execution& execution);

/// The number of interleavings of the steps.
[[nodiscard]] std::string count_interleavings(const Scenario& scenario);

}  // namespace rowlock::race
