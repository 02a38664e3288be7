// With no invariant given: is the end state one that some serial order of the work that was committed gives?
#pragma once

#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "race/catalog.hpp"
#include "race/execution.hpp"
#include "race/invented_values.hpp"
#include "race/scenario.hpp"
#include "race/stage.hpp"

namespace rowlock::race {

/// Why the oracle can't be used, as found out by playing.
class SerialOracleOff : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

class SerialOracle {
  public:
    /// Plays every serial order of every subset of the units on the stage. `unit` must not be `off`. Where columns'
    /// defaults make values up, each order is played twice, with other values: throws SerialOracleOff where these reach
    /// a column that is compared.
    SerialOracle(const Scenario& scenario, Stage& stage);

    /// True where some serial order of the committed sessions ends like this. A session that committed something and
    /// failed at something may count either way.
    [[nodiscard]] bool explains(const Execution& execution) const;

  private:
    std::string state_after(const std::vector<std::size_t>& order);
    void play(const std::vector<std::size_t>& order);
    void play_by_transactions();

    const Scenario* scenario_;
    Stage* stage_;
    std::map<std::set<std::size_t>, std::set<std::string>> states_;  ///< Of each set of sessions.
};

/// Why the oracle would flag correct code here; empty where it would not. What columns' defaults make up is left out of
/// the comparison, so it is no objection.
[[nodiscard]] std::string oracle_objection(const Scenario& scenario, const Catalog& catalog, const TableShapes& shapes);

}  // namespace rowlock::race
