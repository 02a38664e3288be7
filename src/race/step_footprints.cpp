#include "race/step_footprints.hpp"

namespace rowlock::race {

bool StepFootprints::widen(const Key& key, const Footprint& seen) {
    Footprint& known = known_[key];
    Footprint wider = known;
    wider.unite(seen);
    if (wider == known) return false;
    known = std::move(wider);
    return true;
}

bool StepFootprints::learn(Event& event) {
    bool grew = false;
    for (const StepReport& report : event.reports) {
        grew = widen({report.session, report.step}, report.footprint) || grew;
    }
    // A detector is always dependent with everything, and is not what its session's step does by itself.
    if (event.move.kind != Move::Kind::deadlock_check) {
        grew = widen({event.move.session, event.move.step}, event.footprint) || grew;
    }
    for (StepReport& report : event.reports) {
        report.footprint = known_[{report.session, report.step}];
        event.footprint.unite(report.footprint);
    }
    return grew;
}

}  // namespace rowlock::race
