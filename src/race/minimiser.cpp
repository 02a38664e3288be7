#include "race/minimiser.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "race/explorer.hpp"

namespace rowlock::race {

namespace {

using Moves = std::vector<Move>;

/// Orders of more sessions than this are too many to play for one candidate.
constexpr std::size_t serial_sessions_max = 4;

Moves moves_of(const Execution& execution) {
    Moves moves;
    for (const Event& event : execution.events) moves.push_back(event.move);
    return moves;
}

bool has_waiter(const Execution& execution) {
    std::set<std::size_t> waiting;
    for (const Event& event : execution.events) {
        for (const StepReport& report : event.reports) {
            if (report.is_waiting()) {
                waiting.insert(report.session);
            } else {
                waiting.erase(report.session);
            }
        }
    }
    return !waiting.empty();
}

class Minimiser {
  public:
    Minimiser(Stage& stage, Execution found, const MinimiserOptions& options)
        : stage_(stage), options_(options), best_(std::move(found)), was_stuck_(has_waiter(best_)) {}

    Execution run() {
        bool shorter = true;
        while (shorter) shorter = leave_out_a_session() || bring_events_together() || end_a_session_early();
        return std::move(best_);
    }

  private:
    [[nodiscard]] bool may_play() const {
        return plays_ < options_.plays_max && !(options_.is_out_of_time && options_.is_out_of_time());
    }

    std::optional<Execution> play(const Moves& moves) {
        ++plays_;
        return play_moves(stage_, moves);
    }

    /// The other sessions may have needed it to get into the bad state, or not.
    bool leave_out_a_session() {
        std::set<std::size_t> sessions;
        for (const Event& event : best_.events) sessions.insert(event.move.session);
        for (const std::size_t session : sessions) {
            Moves moves = moves_of(best_);
            std::erase_if(moves, [&](const Move& move) { return move.session == session; });
            if (sessions.size() > 2 && accept(moves, true)) return true;
        }
        return false;
    }

    /// Takes the next events of a session up to where it was last active, or its last ones down to where it goes on.
    bool bring_events_together() {
        if (count_preemptions(best_) <= 1) return false;
        const Moves moves = moves_of(best_);
        for (std::size_t end = 1; end < moves.size(); ++end) {
            const std::size_t session = moves[end - 1].session;
            std::size_t next = end;
            while (next < moves.size() && moves[next].session != session) ++next;
            if (next == end || next == moves.size()) continue;
            std::size_t next_end = next;
            while (next_end < moves.size() && moves[next_end].session == session) ++next_end;
            std::size_t begin = end;
            while (begin > 0 && moves[begin - 1].session == session) --begin;
            for (std::size_t to = next_end; to > next; --to) {
                if (accept(rotated(moves, end, next, to), false)) return true;
            }
            for (std::size_t from = begin; from < end; ++from) {
                if (accept(rotated(moves, from, end, next), false)) return true;
            }
        }
        return false;
    }

    static Moves rotated(Moves moves, std::size_t first, std::size_t middle, std::size_t last) {
        const auto at = [&](std::size_t index) { return moves.begin() + static_cast<std::ptrdiff_t>(index); };
        std::rotate(at(first), at(middle), at(last));
        return moves;
    }

    bool end_a_session_early() {
        const Moves moves = moves_of(best_);
        std::set<std::size_t> tried;
        for (std::size_t i = moves.size(); i-- > 0;) {
            if (!tried.insert(moves[i].session).second) continue;
            Moves shorter = moves;
            shorter.erase(shorter.begin() + static_cast<std::ptrdiff_t>(i));
            if (accept(shorter, true)) return true;
        }
        return false;
    }

    bool accept(const Moves& moves, bool has_less) {
        if (!may_play()) return false;
        std::optional<Execution> execution = play(moves);
        if (!execution || size_of(*execution) >= size_of(best_)) return false;
        if (has_waiter(*execution) != was_stuck_ || !options_.shows(*execution)) return false;
        if (has_less && shows_in_series(moves)) return false;
        best_ = std::move(*execution);
        return true;
    }

    /// True, too, where that can't be found out.
    bool shows_in_series(const Moves& moves) {
        std::map<std::size_t, Moves> by_session;
        for (const Move& move : moves) {
            if (move.kind == Move::Kind::step) by_session[move.session].push_back(move);
        }
        std::vector<std::size_t> order;
        for (const auto& [session, own] : by_session) order.push_back(session);
        if (order.size() > serial_sessions_max) return true;
        do {
            Moves series;
            for (const std::size_t session : order) {
                series.insert(series.end(), by_session[session].begin(), by_session[session].end());
            }
            if (!may_play()) return true;
            const std::optional<Execution> execution = play(series);
            if (!execution || options_.shows(*execution)) return true;
        } while (std::ranges::next_permutation(order).found);
        return false;
    }

    Stage& stage_;
    const MinimiserOptions& options_;
    Execution best_;
    bool was_stuck_;
    std::size_t plays_ = 0;
};

}  // namespace

std::tuple<std::size_t, std::size_t, std::size_t> size_of(const Execution& execution) {
    std::set<std::size_t> sessions;
    for (const Event& event : execution.events) sessions.insert(event.move.session);
    return {count_preemptions(execution), sessions.size(), execution.events.size()};
}

namespace {

std::optional<Execution> play_moves_once(Stage& stage, const Moves& moves, bool with_locks) {
    Execution execution;
    stage.restart();
    for (const Move& move : moves) {
        const std::vector<Move> possible = stage.moves();
        const bool can_happen = std::ranges::any_of(possible, [&](const Move& other) {
            const bool is_check = move.kind == Move::Kind::deadlock_check;
            return other.session == move.session && is_check == (other.kind == Move::Kind::deadlock_check);
        });
        if (!can_happen) return std::nullopt;
        execution.events.push_back(stage.perform(move));
        if (with_locks) execution.events.back().locks = stage.held_locks();
    }
    execution.ending = stage.finish();
    return execution;
}

}  // namespace

std::optional<Execution> play_moves(Stage& stage, const Moves& moves, bool with_locks) {
    try {
        return with_reruns([&] { return play_moves_once(stage, moves, with_locks); });
    } catch (const StageFault&) {
        return std::nullopt;
    }
}

Execution minimise(Stage& stage, Execution found, const MinimiserOptions& options) {
    return Minimiser(stage, std::move(found), options).run();
}

}  // namespace rowlock::race
