// Holds the reduction against running everything: it may leave out executions, never an outcome.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "race/scenario.hpp"

namespace rowlock::race::test {

struct Comparison {
    std::set<std::string> outcomes{};  ///< End states with what each session saw, of all interleavings.
    std::size_t all = 0;               ///< Executions without reduction.
    std::size_t reduced_max = 0;       ///< The most that the reduction needed, over all orders of the sessions.
    std::size_t broken = 0;            ///< Of the reduced executions, in the order of the file.
    std::size_t reduced = 0;           ///< In the order of the file.
    bool whole = true;                 ///< Everything was explored to its end.
    std::string problem{};             ///< Why something was run again or not at all, where it was.
    std::string difference{};          ///< Empty where there is none.
};

struct ComparisonOptions {
    std::string isolation{};
    bool all_orders = true;  ///< With the sessions in every order, not only that of the file.
    std::size_t executions_max = 5'000;
};

/// `server` is a connection to a throw-away cluster.
[[nodiscard]] Comparison compare_reduction(const Scenario& scenario, const std::string& server,
                                           const ComparisonOptions& options = {});

}  // namespace rowlock::race::test
