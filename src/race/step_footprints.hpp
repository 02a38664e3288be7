// What each step was ever seen to touch, over all executions.
//
// Whether two steps can be swapped must not depend on what else has happened: a step that waits in one execution
// writes and commits in another, and a reduction that takes the first for all there is loses the second. So a step
// stands for all that it, and those whom it woke, ever did.
// Source: Abdulla, Aronis, Jonsson, Sagonas: Source Sets, JACM 64(4), 2017, definition 3.1, property 6: inserting an
// independent event takes no dependency away.
#pragma once

#include <map>
#include <utility>

#include "race/execution.hpp"

namespace rowlock::race {

class StepFootprints {
  public:
    /// Takes in what the event's steps touched, and widens the event's footprints to all that is known of them. True
    /// where something new was seen: what was explored before has to be explored again.
    bool learn(Event& event);

  private:
    using Key = std::pair<std::size_t, std::size_t>;
    bool widen(const Key& key, const Footprint& seen);

    std::map<Key, Footprint> known_;  ///< By session and step.
};

}  // namespace rowlock::race
