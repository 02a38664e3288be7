#include "race/symptoms.hpp"

#include <algorithm>

namespace rowlock::race {

namespace {

bool is_deadlock_victim(const Event& event) {
    return std::ranges::any_of(event.reports, [](const StepReport& report) {
        return std::ranges::any_of(report.statements,
                                   [](const auto& statement) { return statement.sqlstate == "40P01"; });
    });
}

/// An application that runs the transaction again has dealt with it.
bool has_unhandled_deadlock(const Execution& execution) {
    return std::ranges::any_of(execution.events, [](const Event& event) {
        return is_deadlock_victim(event) &&
               std::ranges::none_of(event.reports, [](const StepReport& report) { return report.restarts; });
    });
}

}  // namespace

std::vector<Symptom> symptoms_of(const Scenario& scenario, const Execution& execution, const SerialOracle* oracle) {
    std::vector<Symptom> symptoms;
    const auto add = [&](Symptom symptom) {
        const auto is_like = [&](const Symptom& known) { return known.is_like(symptom); };
        if (std::ranges::none_of(symptoms, is_like)) symptoms.push_back(std::move(symptom));
    };
    for (const InvariantAnswer& answer : execution.ending.answers) {
        if (!answer.readable || answer.rows.empty()) continue;
        add({Symptom::Kind::invariant, scenario.invariants[answer.invariant].name, answer});
    }
    for (const Event& event : execution.events) {
        for (const std::string& name : event.violated) add({Symptom::Kind::invariant, name + " (on the way)"});
    }
    if (execution.ending.kind == Ending::Kind::stuck) add({Symptom::Kind::stuck, execution.ending.problem});
    if (has_unhandled_deadlock(execution)) add({Symptom::Kind::deadlock, "deadlock"});
    if (oracle != nullptr && execution.ending.kind == Ending::Kind::complete && !oracle->explains(execution)) {
        add({Symptom::Kind::not_serial, "the end state is that of no serial order"});
    }
    return symptoms;
}

}  // namespace rowlock::race
