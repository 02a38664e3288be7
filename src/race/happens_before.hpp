// Which events of an execution had to come before which, and which pairs only happened to.
#pragma once

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "race/execution.hpp"

namespace rowlock::race {

/// The order that every execution of the same trace shares: that of each session, and that of dependent events.
/// An event that wakes a session is one of that session's too.
class HappensBefore {
  public:
    /// `enabling`: pairs where the earlier event let the later one happen, for a reason that no footprint shows.
    explicit HappensBefore(const std::vector<const Event*>& events,
                           const std::set<std::pair<std::size_t, std::size_t>>& enabling = {});

    [[nodiscard]] bool holds(std::size_t earlier, std::size_t later) const { return before_[later][earlier]; }
    /// Two events of different sessions, ordered only by their own dependency, whose order might have been the other
    /// way round.
    [[nodiscard]] bool is_race(std::size_t earlier, std::size_t later) const;
    /// The sessions that could go first, at the place of `earlier`, towards the other order: those that start what
    /// comes between and needs nothing of `earlier`, then `later` itself.
    /// Source: Abdulla, Aronis, Jonsson, Sagonas: Source Sets, JACM 64(4), 2017, section 4.
    [[nodiscard]] std::vector<Move> initials(std::size_t earlier, std::size_t later) const;

  private:
    [[nodiscard]] bool are_ordered(std::size_t earlier, std::size_t later) const;

    const std::vector<const Event*>& events_;
    const std::set<std::pair<std::size_t, std::size_t>> enabling_;
    std::vector<std::vector<bool>> before_;
};

[[nodiscard]] bool takes_part(const Event& event, std::size_t session);

}  // namespace rowlock::race
