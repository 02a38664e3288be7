// Where a scenario is played: the explorer decides what happens next, and a stage makes it happen. The real one runs
// on a server (conductor.hpp), a simulated one in the tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "race/execution.hpp"

namespace rowlock::race {

class Stage {
  public:
    Stage() = default;
    Stage(const Stage&) = delete;
    Stage& operator=(const Stage&) = delete;
    virtual ~Stage() = default;

    /// Puts everything back to where an execution starts.
    virtual void restart() = 0;
    /// What can happen next, in order of the sessions. Empty at the end.
    virtual std::vector<Move> moves() = 0;
    /// Makes it happen, and waits until every session is done or known to wait.
    virtual Event perform(const Move& move) = 0;
    /// Asks every invariant now, in the middle of an execution; the names of those that do not hold.
    virtual std::vector<std::string> look() = 0;
    /// The locks that the sessions hold or wait for now, for people to read.
    virtual std::vector<LockLine> held_locks() { return {}; }
    /// Gives sequences other numbers from the next restart on, so much higher ones; 0: as they were. False where there
    /// is nothing that the server makes up.
    virtual bool shift_invented_values(std::int64_t) { return false; }
    /// Looks at the end state. No further move.
    virtual Ending finish() = 0;
};

/// The stage did something that a rerun may do differently: the execution is void, and is run again.
class StageFault : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// How often a void execution is run again.
inline constexpr std::size_t reruns_max = 5;

/// Plays again while the execution is void; `on_fault` is told of each. Throws the last fault.
template <class Play, class OnFault>
auto with_reruns(Play&& play, OnFault&& on_fault) {
    for (std::size_t attempt = 0;; ++attempt) {
        try {
            return play();
        } catch (const StageFault& fault) {
            on_fault(fault);
            if (attempt == reruns_max) throw;
        }
    }
}
template <class Play>
auto with_reruns(Play&& play) {
    return with_reruns(play, [](const StageFault&) {});
}

/// Something that no rerun would change: the play ends here.
class StageStopped : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

}  // namespace rowlock::race
