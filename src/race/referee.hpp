// Asks the invariants, and looks at the end state, on the control connection.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "race/arena.hpp"
#include "race/execution.hpp"
#include "race/scenario.hpp"
#include "race/server_watch.hpp"

namespace rowlock::race {

class Referee {
  public:
    Referee(const Scenario& scenario, ServerWatch& watch, Arena& arena)
        : scenario_(&scenario), watch_(&watch), arena_(&arena) {}

    enum class Which { all, always };
    /// The invariants that do not hold now.
    [[nodiscard]] std::vector<std::string> broken(Which which);
    /// Every invariant's answer, and the state.
    void note_end(Ending& ending);

  private:
    InvariantAnswer ask(std::size_t index);
    bool ask_at_once(Ending& ending);
    void note_state(Ending& ending, std::span<const Rows> answers);

    const Scenario* scenario_;
    ServerWatch* watch_;
    Arena* arena_;
};

}  // namespace rowlock::race
