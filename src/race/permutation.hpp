// Plays a permutation that the file lists, as isolationtester would.
#pragma once

#include "race/execution.hpp"
#include "race/scenario.hpp"
#include "race/stage.hpp"

namespace rowlock::race {

/// A step of a session that waits is put off until the session goes on; a deadlock's victim is the session with the
/// shortest deadlock_timeout of its own, of equals the one that has waited longest. Steps that a retry brings back are
/// played at the end. What can't be played is named in the ending's problem.
[[nodiscard]] Execution play_permutation(const Scenario& scenario, const Permutation& permutation, Stage& stage);

}  // namespace rowlock::race
