// Plays a scenario through its interleavings: all of them, or one of each kind.
//
// Two interleavings are of one kind (one Mazurkiewicz trace) where one becomes the other by swapping neighbours that
// are independent; then they end alike and look alike to every session. One of each kind is found by source sets with
// sleep sets.
// Source: Abdulla, Aronis, Jonsson, Sagonas: Source Sets: A Foundation for Optimal Dynamic Partial Order Reduction,
// JACM 64(4), 2017; sleep sets: Godefroid, LNCS 1032, 1996.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "race/execution.hpp"
#include "race/stage.hpp"
#include "race/step_footprints.hpp"

namespace rowlock::race {

struct ExplorerOptions {
    bool reduce = true;
    /// Of each session the group of identical copies that it belongs to; empty: no two are alike.
    std::vector<std::size_t> groups{};
    /// At most so many preemptions: changes of session where the one before could have gone on.
    std::optional<std::size_t> preemptions_max{};
    std::size_t executions_max = 100'000;
    /// What is known of the steps already; null: nothing. Widened by what is seen.
    StepFootprints* footprints = nullptr;
    /// Told when the exploration starts again from the root, since what it rested on turned out to be wrong.
    std::function<void()> on_restart{};
    /// Asked before each execution.
    std::function<bool()> is_out_of_time{};
};

struct ExplorationSummary {
    std::size_t executions = 0;  ///< Played to their end.
    std::size_t abandoned = 0;   ///< Given up on the way: of a kind already seen.
    std::size_t reruns = 0;
    bool exhausted = false;         ///< Nothing is left.
    std::size_t open_branches = 0;  ///< Known to be left when a limit ended it.
    bool server_decided = false;    ///< Some execution never came out the same twice.
    std::string problem{};
    bool used_symmetry = false;
};

/// Called with every execution that ended; false ends the exploration.
using OnExecution = std::function<bool(const Execution&)>;

[[nodiscard]] ExplorationSummary explore(Stage& stage, const ExplorerOptions& options, const OnExecution& on_execution);

/// Changes of session where the one before could have gone on.
[[nodiscard]] std::size_t count_preemptions(const Execution& execution);

}  // namespace rowlock::race
