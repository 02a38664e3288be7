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

namespace rowlock::race {

struct CheckOptions {
    bool reduce = true;
    bool symmetry = true;
    std::size_t executions_max = 20'000;
    std::chrono::milliseconds time_max{60'000};
    bool stop_at_first = false;
    std::function<bool()> is_interrupted{};
    /// Told now and then how far it is.
    std::function<void(std::size_t executions, std::size_t broken)> progress{};
};

/// Something that must not happen, and the shortest schedule seen that makes it happen.
struct Finding {
    enum class Kind { invariant, stuck, deadlock, not_serial };
    Kind kind = Kind::invariant;
    std::string title{};
    Execution execution{};
    std::optional<InvariantAnswer> answer{};
    std::size_t preemptions = 0;
    std::size_t count = 0;         ///< Executions that show it.
    bool in_serial_order = false;  ///< It needs no concurrency at all.
    /// The nearest execution that shows no finding, and the first pair of steps that comes the other way round there.
    std::optional<Execution> nearest_good{};
    std::string order_that_matters{};
};

struct CheckResult {
    std::string scenario{};
    std::string isolation{};
    std::vector<Finding> findings{};
    ExplorationSummary summary{};
    std::size_t serial_orders = 0;
    bool listed = false;  ///< Only the permutations of the file were played.
    /// Steps that the server refused, such as "a.put 23505", and in how many executions.
    std::map<std::string, std::size_t> refusals{};
    std::size_t broken = 0;            ///< Executions with at least one finding.
    std::string interleavings{};       ///< Of all steps, as a number or "more than …".
    std::size_t unreadable = 0;        ///< Executions after which an invariant could not be asked.
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
