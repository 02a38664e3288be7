// With no invariant given: is the end state one that some serial order of the work that was committed gives?
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "race/execution.hpp"
#include "race/scenario.hpp"
#include "race/stage.hpp"

namespace rowlock::race {

class Conductor;

class SerialOracle {
  public:
    /// Plays every serial order of every subset of the units on the stage. `unit` must not be `off`.
    SerialOracle(const Scenario& scenario, Stage& stage);

    /// True where some serial order of the committed sessions ends like this. A session that committed something and
    /// failed at something may count either way.
    [[nodiscard]] bool explains(const Execution& execution) const;
    [[nodiscard]] std::size_t executions() const noexcept { return executions_; }

  private:
    void play(const std::vector<std::size_t>& order);
    void play_by_transactions();

    const Scenario* scenario_;
    Stage* stage_;
    std::map<std::set<std::size_t>, std::set<std::string>> states_;  ///< Of each set of sessions.
    std::size_t executions_ = 0;
};

/// Why the oracle would flag correct code here; empty where it would not, or is not asked. What columns' defaults make
/// up is left out of the comparison; that it reaches no other column is found out by playing each serial order with two
/// sets of made-up values.
[[nodiscard]] std::string oracle_objection(const Scenario& scenario, Conductor& conductor);

}  // namespace rowlock::race
