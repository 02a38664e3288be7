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
    Referee(const Scenario& scenario, ServerWatch& watch, Arena& arena);

    /// The invariants that do not hold now.
    [[nodiscard]] std::vector<std::string> broken() { return broken(Which::all); }
    /// Looks with every `invariant always`. It sees each state, not the last one alone, so that of two events which
    /// change what it reads neither can be put before the other: their footprints say so from here on.
    void look_after(Event& event);
    /// Every invariant's answer, and the state.
    void note_end(Ending& ending);

  private:
    enum class Which { all, always };
    std::vector<std::string> broken(Which which);
    InvariantAnswer ask(std::size_t index);
    bool ask_at_once(Ending& ending);
    void note_state(Ending& ending, std::span<const Rows> answers);

    const Scenario* scenario_;
    ServerWatch* watch_;
    Arena* arena_;
    Reach always_reach_;  ///< Of every `invariant always`.
    bool looks_always_;
};

}  // namespace rowlock::race
