#include "race/reduction_comparison.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "race/arena.hpp"
#include "race/checker.hpp"
#include "race/conductor.hpp"
#include "race/explorer.hpp"

namespace rowlock::race::test {

namespace {

/// The same for every order of the sessions.
std::string outcome_by_name(const Scenario& scenario, const Execution& execution) {
    std::vector<std::size_t> order(scenario.sessions.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t session) { return scenario.sessions[session].name; });
    std::string text =
        std::string(execution.ending.kind == Ending::Kind::stuck ? "stuck\n" : "") + execution.ending.final_state;
    std::set<std::string> violated;
    for (const Event& event : execution.events) violated.insert(event.violated.begin(), event.violated.end());
    for (const std::string& name : violated) text += "-- violated at some time: " + name + "\n";
    for (const std::size_t session : order) {
        text += "-- " + scenario.sessions[session].name + "\n";
        for (const Event& event : execution.events) {
            for (const StepReport& report : event.reports) {
                if (report.session != session || report.is_waiting()) continue;
                for (const StatementOutcome& statement : report.statements) {
                    text += statement.sqlstate + statement.tag;
                    for (const auto& row : statement.rows) {
                        for (const auto& value : row) text += "|" + value.value_or("NULL");
                        text += ";";
                    }
                    text += "\n";
                }
            }
        }
    }
    return text;
}

struct Explored {
    std::set<std::string> outcomes{};
    ExplorationSummary summary{};
    std::size_t broken = 0;
};

Explored explore_once(const Scenario& scenario, const std::string& server, const ComparisonOptions& options,
                      bool reduce) {
    const OwnDatabase database(server, fmt::format("rowlock_compare_{}", getpid()));
    ConductorOptions conductor_options;
    conductor_options.connection = database.connection();
    conductor_options.isolation = options.isolation;
    Conductor conductor(scenario, conductor_options);
    ExplorerOptions explorer;
    explorer.reduce = reduce;
    explorer.executions_max = options.executions_max;
    Explored explored;
    explored.summary = explore(conductor, explorer, [&](const Execution& execution) {
        explored.outcomes.insert(outcome_by_name(scenario, execution));
        explored.broken += std::ranges::any_of(execution.ending.answers,
                                               [](const InvariantAnswer& answer) { return !answer.rows.empty(); })
                               ? 1U
                               : 0U;
        return true;
    });
    return explored;
}

std::string first_missing(const std::set<std::string>& from, const std::set<std::string>& in) {
    for (const std::string& outcome : from) {
        if (!in.contains(outcome)) return outcome;
    }
    return {};
}

}  // namespace

Comparison compare_reduction(const Scenario& scenario, const std::string& server, const ComparisonOptions& options) {
    Comparison comparison;
    const Explored all = explore_once(scenario, server, options, false);
    comparison.outcomes = all.outcomes;
    comparison.all = all.summary.executions;
    comparison.whole = all.summary.exhausted;
    comparison.problem = all.summary.problem;
    std::vector<std::size_t> order(scenario.sessions.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    bool first = true;
    do {
        Scenario permuted = scenario;
        for (std::size_t i = 0; i < order.size(); ++i) permuted.sessions[i] = scenario.sessions[order[i]];
        const Explored some = explore_once(permuted, server, options, true);
        comparison.whole = comparison.whole && some.summary.exhausted;
        comparison.reduced_max = std::max(comparison.reduced_max, some.summary.executions);
        if (first) {
            comparison.reduced = some.summary.executions;
            comparison.broken = some.broken;
        }
        first = false;
        if (comparison.problem.empty()) comparison.problem = some.summary.problem;
        // What was not run to its end is a part of the whole all the same.
        const bool agrees =
            all.summary.exhausted ? some.outcomes == all.outcomes : std::ranges::includes(some.outcomes, all.outcomes);
        if (some.summary.exhausted && !agrees) {
            std::string names;
            for (const SessionScript& session : permuted.sessions) names += session.name + " ";
            comparison.difference =
                fmt::format("sessions in the order {}: {} outcomes of {}; missing:\n{}\nextra:\n{}", names,
                            some.outcomes.size(), all.outcomes.size(), first_missing(all.outcomes, some.outcomes),
                            first_missing(some.outcomes, all.outcomes));
            return comparison;
        }
    } while (options.all_orders && std::ranges::next_permutation(order).found);
    return comparison;
}

}  // namespace rowlock::race::test
