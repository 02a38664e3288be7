#include "race/copy_order.hpp"

#include <algorithm>

namespace rowlock::race {

CopyOrder::CopyOrder(const std::vector<std::size_t>& groups)
    : groups_(groups), on_(std::set<std::size_t>(groups.begin(), groups.end()).size() < groups.size()) {}

void CopyOrder::set_gates(Prefix events) {
    for (const Event* const event : events) {
        const std::size_t group = groups_[event->move.session];
        const bool matters = are_dependent(event->footprint, event->footprint);
        if (matters && !gates_.contains(group)) gates_[group] = event->move.step;
    }
}

bool CopyOrder::has_passed(std::size_t session, std::size_t step, Prefix events) {
    return std::ranges::any_of(events, [&](const Event* const event) {
        const Move& move = event->move;
        return move.session == session && move.step == step && move.kind != Move::Kind::deadlock_check;
    });
}

std::optional<std::size_t> CopyOrder::copy_before(std::size_t session) const {
    for (std::size_t other = session; other-- > 0;) {
        if (groups_[other] == groups_[session]) return other;
    }
    return std::nullopt;
}

bool CopyOrder::holds_back(const Move& move, Prefix before) const {
    if (!on_ || move.kind == Move::Kind::deadlock_check) return false;
    const auto gate = gates_.find(groups_[move.session]);
    if (gate == gates_.end() || move.step != gate->second) return false;
    const auto copy = copy_before(move.session);
    return copy && !has_passed(*copy, gate->second, before);
}

bool CopyOrder::all_have_passed(Prefix events) const {
    for (std::size_t session = 0; session < groups_.size(); ++session) {
        const auto gate = gates_.find(groups_[session]);
        const bool is_copy = std::ranges::count(groups_, groups_[session]) > 1;
        if (is_copy && gate != gates_.end() && !has_passed(session, gate->second, events)) return false;
    }
    return true;
}

std::set<std::pair<std::size_t, std::size_t>> CopyOrder::order_of(Prefix events) const {
    std::set<std::pair<std::size_t, std::size_t>> order;
    std::map<std::size_t, std::size_t> passed_at;
    for (std::size_t i = 0; i < events.size() && on_; ++i) {
        const Move& move = events[i]->move;
        const auto gate = gates_.find(groups_[move.session]);
        if (gate == gates_.end() || move.step != gate->second || passed_at.contains(move.session)) continue;
        passed_at[move.session] = i;
        const auto copy = copy_before(move.session);
        if (copy && passed_at.contains(*copy)) order.emplace(passed_at[*copy], i);
    }
    return order;
}

}  // namespace rowlock::race
