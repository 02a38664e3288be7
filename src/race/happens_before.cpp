#include "race/happens_before.hpp"

#include <algorithm>

namespace rowlock::race {

bool takes_part(const Event& event, std::size_t session) {
    return event.move.session == session ||
           std::ranges::any_of(event.reports, [&](const StepReport& report) { return report.session == session; });
}

HappensBefore::HappensBefore(const std::vector<const Event*>& events,
                             const std::set<std::pair<std::size_t, std::size_t>>& enabling)
    : events_(events), enabling_(enabling) {
    before_.assign(events.size(), std::vector<bool>(events.size(), false));
    for (std::size_t later = 0; later < events.size(); ++later) {
        for (std::size_t earlier = later; earlier-- > 0;) {
            if (before_[later][earlier] || !are_ordered(earlier, later)) continue;
            before_[later][earlier] = true;
            for (std::size_t i = 0; i < earlier; ++i) {
                if (before_[earlier][i]) before_[later][i] = true;
            }
        }
    }
}

bool HappensBefore::are_ordered(std::size_t earlier, std::size_t later) const {
    const Event& first = *events_[earlier];
    const Event& second = *events_[later];
    if (enabling_.contains({earlier, later})) return true;
    if (are_dependent(first.footprint, second.footprint)) return true;
    return std::ranges::any_of(second.reports,
                               [&](const StepReport& report) { return takes_part(first, report.session); });
}

bool HappensBefore::is_race(std::size_t earlier, std::size_t later) const {
    if (!before_[later][earlier] || enabling_.contains({earlier, later})) return false;
    // What a session does next can't come before the event that let it go on.
    if (takes_part(*events_[earlier], events_[later]->move.session)) return false;
    for (std::size_t i = earlier + 1; i < later; ++i) {
        if (before_[i][earlier] && before_[later][i]) return false;
    }
    return true;
}

std::vector<Move> HappensBefore::initials(std::size_t earlier, std::size_t later) const {
    std::vector<std::size_t> sequence;
    for (std::size_t i = earlier + 1; i < later; ++i) {
        if (!before_[i][earlier]) sequence.push_back(i);
    }
    sequence.push_back(later);
    std::vector<Move> first;
    for (const std::size_t i : sequence) {
        const bool needs_other =
            std::ranges::any_of(sequence, [&](std::size_t other) { return other < i && before_[i][other]; });
        if (!needs_other) first.push_back(events_[i]->move);
    }
    return first;
}

}  // namespace rowlock::race
