#include "race/simulated_stage.hpp"

#include <algorithm>
#include <set>

namespace rowlock::race::test {

namespace {

LockModes modes_of(const SimulatedStep& step) {
    return step.kind == SimulatedStep::Kind::write ? lock_mode::any_row_update : lock_mode::row_for_share;
}

ResourceId resource(int variable) {
    return static_cast<ResourceId>(variable) + 1;
}

}  // namespace

SimulatedStage::SimulatedStage(std::vector<SimulatedSession> sessions, int variables, bool alike)
    : sessions_(std::move(sessions)), variable_count_(variables), alike_(alike) {}

void SimulatedStage::restart() {
    values_.assign(static_cast<std::size_t>(variable_count_), 1);
    states_.assign(sessions_.size(), {});
    waiters_.clear();
}

std::vector<std::size_t> SimulatedStage::blockers(std::size_t session, const SimulatedStep& step) const {
    std::vector<std::size_t> found;
    for (std::size_t other = 0; other < states_.size(); ++other) {
        const auto held = states_[other].held.find(step.variable);
        if (other == session || held == states_[other].held.end()) continue;
        if (modes_conflict(held->second, modes_of(step))) found.push_back(other);
    }
    return found;
}

bool SimulatedStage::is_in_cycle(std::size_t session) const {
    std::set<std::size_t> seen;
    std::vector<std::size_t> open{session};
    while (!open.empty()) {
        const std::size_t at = open.back();
        open.pop_back();
        if (!states_[at].waits_on) continue;
        for (const std::size_t other : blockers(at, sessions_[at][states_[at].next])) {
            if (other == session) return true;
            if (seen.insert(other).second) open.push_back(other);
        }
    }
    return false;
}

std::vector<Move> SimulatedStage::moves() {
    std::vector<Move> moves;
    for (std::size_t session = 0; session < states_.size(); ++session) {
        const State& state = states_[session];
        if (!state.waits_on && state.next < sessions_[session].size()) {
            moves.push_back({Move::Kind::step, session, state.next});
        }
    }
    for (std::size_t session = 0; session < states_.size(); ++session) {
        if (is_in_cycle(session)) moves.push_back({Move::Kind::deadlock_check, session, states_[session].next});
    }
    return moves;
}

void SimulatedStage::end_transaction(std::size_t session, bool commit, Footprint& footprint) {
    State& state = states_[session];
    for (const auto& [variable, value] : state.written) {
        if (!commit) continue;
        values_[static_cast<std::size_t>(variable)] = value;
        footprint.published.add(resource(variable));
    }
    for (const auto& [variable, modes] : state.held) footprint.released.add(resource(variable), modes);
    state.written.clear();
    state.held.clear();
}

StepReport SimulatedStage::run(std::size_t session, bool woken) {
    State& state = states_[session];
    const SimulatedStep step = sessions_[session][state.next];
    StepReport report;
    report.session = session;
    report.step = state.next;
    report.woken = woken;
    const bool locks = step.kind == SimulatedStep::Kind::write || step.kind == SimulatedStep::Kind::lock_shared;
    if (locks) report.footprint.locks.add(resource(step.variable), modes_of(step));
    if (step.kind == SimulatedStep::Kind::write) report.footprint.writes.add(resource(step.variable));
    if (locks && !blockers(session, step).empty()) {
        state.waits_on = step.variable;
        waiters_.push_back(session);
        report.verdict = Verdict::blocked;
        report.blocked_by = blockers(session, step);
        return report;
    }
    state.waits_on.reset();
    const auto own = state.written.find(step.variable);
    const int now = own != state.written.end() ? own->second : values_[static_cast<std::size_t>(step.variable)];
    switch (step.kind) {
        case SimulatedStep::Kind::begin:
            break;
        case SimulatedStep::Kind::read:
        case SimulatedStep::Kind::lock_shared:
            report.footprint.reads.add(resource(step.variable));
            state.seen = now;
            state.told += std::to_string(now) + " ";
            break;
        case SimulatedStep::Kind::write:
            state.written[step.variable] =
                (state.seen * 3 + now * 5 + (alike_ ? 1 : static_cast<int>(session) + 1)) % 9973;
            break;
        case SimulatedStep::Kind::commit:
            end_transaction(session, true, report.footprint);
            break;
        case SimulatedStep::Kind::rollback:
            end_transaction(session, false, report.footprint);
            break;
    }
    if (locks) {
        LockModes& held = state.held[step.variable];
        held = static_cast<LockModes>(held | modes_of(step));
    }
    ++state.next;
    return report;
}

/// The victim of a deadlock: its transaction is undone, and the session gives up.
StepReport SimulatedStage::abort(std::size_t session) {
    State& state = states_[session];
    StepReport report;
    report.session = session;
    report.step = state.next;
    report.verdict = Verdict::failed;
    report.footprint.everything = true;
    end_transaction(session, false, report.footprint);
    state.waits_on.reset();
    std::erase(waiters_, session);
    state.next = sessions_[session].size();
    state.told += "deadlock ";
    return report;
}

void SimulatedStage::wake(Event& event) {
    while (true) {
        std::vector<std::size_t> freed;
        for (const std::size_t session : waiters_) {
            if (blockers(session, sessions_[session][states_[session].next]).empty()) freed.push_back(session);
        }
        if (freed.empty()) return;
        std::size_t taken = 0;
        if (freed.size() > 1) {
            const std::size_t choice = event.wake_choices.size();
            if (choice < event.move.wake_order.size()) taken = event.move.wake_order[choice];
            event.wake_choices.push_back({freed, taken});
        }
        std::erase(waiters_, freed[taken]);
        event.reports.push_back(run(freed[taken], true));
    }
}

Event SimulatedStage::perform(const Move& move) {
    Event event;
    event.move = move;
    event.reports.push_back(move.kind == Move::Kind::deadlock_check ? abort(move.session) : run(move.session, false));
    wake(event);
    for (const StepReport& report : event.reports) event.footprint.unite(report.footprint);
    return event;
}

Ending SimulatedStage::finish() {
    Ending ending;
    for (const int value : values_) ending.final_state += std::to_string(value) + " ";
    std::vector<std::string> told;
    for (const State& state : states_) told.push_back(state.told);
    // Sessions that are alike are not told apart.
    if (alike_) std::ranges::sort(told);
    for (const std::string& text : told) ending.final_state += "/ " + text;
    ending.serial_state = ending.final_state;
    return ending;
}

}  // namespace rowlock::race::test
