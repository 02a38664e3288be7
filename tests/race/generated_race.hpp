// Races made of the library's own statements: text of a scenario, with values in the place of $1, $2 …
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "race/checker.hpp"
#include "race/throwaway_cluster.hpp"

namespace rowlock::race::test {

/// The statement with each $n replaced by the n-th text: a literal, or a variable of the scenario.
[[nodiscard]] std::string with_values(std::string_view sql, const std::vector<std::string>& values);

/// The text with one piece of it taken out or replaced. Fails the test if it is not there.
[[nodiscard]] std::string without(std::string_view text, std::string_view piece, std::string_view instead = "");

/// Plays a scenario to the end, or to its first finding, on a cluster of the test's own.
class RaceRunner {
  public:
    CheckResult check_text(const std::string& text, bool stop_at_first = false);

    /// Fails the test unless every distinct interleaving was played, more than one, none is broken and the server
    /// refused no step. Gives back how many there were.
    std::size_t expect_holds(const std::string& name, const std::string& text);

  private:
    ThrowawayCluster cluster_;
};

}  // namespace rowlock::race::test
