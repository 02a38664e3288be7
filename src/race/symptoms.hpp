// What is wrong with one execution, by itself.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "race/execution.hpp"
#include "race/scenario.hpp"
#include "race/serial_oracle.hpp"

namespace rowlock::race {

struct Symptom {
    enum class Kind { invariant, stuck, deadlock, not_serial };
    Kind kind = Kind::invariant;
    std::string title{};  ///< Symptoms of one kind and title are one finding.
    std::optional<InvariantAnswer> answer{};

    [[nodiscard]] bool is_like(const Symptom& other) const { return kind == other.kind && title == other.title; }
};

/// `oracle` may be null: then every complete end state is taken for that of a serial order.
[[nodiscard]] std::vector<Symptom> symptoms_of(const Scenario& scenario, const Execution& execution,
                                               const SerialOracle* oracle);

}  // namespace rowlock::race
