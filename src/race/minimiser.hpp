// Makes the schedule of a finding as short as it can be, by playing shorter ones.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <tuple>
#include <vector>

#include "race/execution.hpp"
#include "race/stage.hpp"

namespace rowlock::race {

/// Fewest preemptions, then sessions, then events: what is shorter is easier to follow.
[[nodiscard]] std::tuple<std::size_t, std::size_t, std::size_t> size_of(const Execution& execution);

/// Plays these moves; nothing where one of them can't happen there, or where the stage could not do it. `with_locks`
/// asks for the sessions' locks after each.
[[nodiscard]] std::optional<Execution> play_moves(Stage& stage, const std::vector<Move>& moves,
                                                  bool with_locks = false);

struct MinimiserOptions {
    /// True of executions with the finding's symptom.
    std::function<bool(const Execution&)> shows{};
    std::function<bool()> is_out_of_time{};
    std::size_t plays_max = 200;
};

/// Leaves out sessions, brings the events of a session together, and ends sessions early, as long as the symptom shows.
/// What is left is a race still: no serial order of the events that are left shows the symptom.
[[nodiscard]] Execution minimise(Stage& stage, Execution found, const MinimiserOptions& options);

}  // namespace rowlock::race
