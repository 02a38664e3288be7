#include "race/explorer.hpp"

#include <algorithm>
#include <utility>

#include "race/copy_order.hpp"
#include "race/happens_before.hpp"

namespace rowlock::race {

namespace {

/// A move that was explored from a state, with what it touched there; not to be repeated until something dependent
/// has happened.
struct Sleeper {
    Move move;
    Footprint footprint;
    std::vector<std::size_t> sessions;  ///< The mover, and whom it woke.
};

struct Node {
    std::vector<Move> moves{};
    std::vector<Move> to_explore{};
    std::vector<Move> explored{};
    std::vector<Sleeper> sleeping{};
    Event event{};
    std::size_t preemptions = 0;  ///< Before this node's move.
    std::vector<WakeChoice> wake_choices{};
};

bool contains(const std::vector<Move>& moves, const Move& move) {
    return std::ranges::find(moves, move) != moves.end();
}

/// Sending a step and sending it so that its time-out runs out are two ways of one process to go on.
bool same_process(const Move& one, const Move& other) {
    const bool one_checks = one.kind == Move::Kind::deadlock_check;
    const bool other_checks = other.kind == Move::Kind::deadlock_check;
    return one_checks == other_checks && one.session == other.session;
}

std::vector<std::size_t> participants(const Event& event) {
    std::vector<std::size_t> sessions{event.move.session};
    for (const StepReport& report : event.reports) sessions.push_back(report.session);
    return sessions;
}

bool is_independent(const Sleeper& sleeper, const Event& event) {
    if (are_dependent(sleeper.footprint, event.footprint)) return false;
    return std::ranges::none_of(sleeper.sessions, [&](std::size_t session) { return takes_part(event, session); });
}

/// An execution that differs from an earlier one with the same moves: something was left to chance.
class Diverged : public StageFault {
  public:
    using StageFault::StageFault;
};

class Exploration {
  public:
    Exploration(Stage& stage, const ExplorerOptions& options, const OnExecution& on_execution)
        : stage_(stage),
          options_(options),
          on_execution_(on_execution),
          footprints_(options.footprints != nullptr ? *options.footprints : own_footprints_),
          copies_(options.reduce ? options.groups : std::vector<std::size_t>{}) {}

    ExplorationSummary run() {
        summary_.used_symmetry = copies_.is_on();
        bool going = true;
        while (going) {
            if (is_over_budget()) {
                for (const Node& node : path_) summary_.open_branches += open_moves(node);
                summary_.open_branches += path_.empty() ? 1U : 0U;
                return summary_;
            }
            if (!play_with_reruns()) return summary_;
            if (stopped_) break;
            if (symmetry_failed_) {
                // The copies turned out not to be alike where it counts: from the start, without.
                copies_.switch_off();
                summary_.used_symmetry = false;
                start_again();
                continue;
            }
            if (std::exchange(learned_, false) && options_.reduce) {
                start_again();
                continue;
            }
            going = next_branch();
        }
        summary_.exhausted = !stopped_;
        return summary_;
    }

  private:
    enum class End { complete, asleep };

    /// What was explored so far rests on something that turned out to be wrong.
    void start_again() {
        summary_.executions = summary_.abandoned = 0;
        learned_ = symmetry_failed_ = false;
        path_.clear();
        copies_.forget_gates();
        if (options_.on_restart) options_.on_restart();
    }

    [[nodiscard]] bool is_over_budget() const {
        return summary_.executions + summary_.abandoned >= options_.executions_max ||
               (options_.is_out_of_time && options_.is_out_of_time());
    }

    /// False where an execution could not be had, however often it was tried.
    bool play_with_reruns() {
        // Only the last node and what comes after it is touched before the execution has ended.
        const std::size_t depth = path_.size();
        const Node last = path_.empty() ? Node{} : path_.back();
        for (std::size_t attempt = 0; attempt <= reruns_max; ++attempt) {
            try {
                play();
                return true;
            } catch (const StageFault& fault) {
                ++summary_.reruns;
                summary_.problem = fault.what();
                path_.resize(depth);
                if (depth > 0) path_.back() = last;
            }
        }
        summary_.server_decided = true;
        return false;
    }

    void play() {
        stage_.restart();
        for (std::size_t depth = 0; depth + 1 < path_.size(); ++depth) repeat(path_[depth]);
        const std::size_t fresh_from = path_.empty() ? 0 : path_.size() - 1;
        if (!path_.empty()) perform_current(path_.back());
        End end = extend();
        if (end == End::complete) end = finish();
        if (end != End::complete) ++summary_.abandoned;
        if (copies_.is_on()) keep_copies_in_order(end);
        if (options_.reduce) find_races(fresh_from);
    }

    /// Up to the node where this execution leaves the one before, everything must happen as it did.
    void repeat(const Node& node) {
        const Event event = stage_.perform(node.event.move);
        bool same = event.reports.size() == node.event.reports.size();
        for (std::size_t i = 0; same && i < event.reports.size(); ++i) {
            const StepReport& now = event.reports[i];
            const StepReport& before = node.event.reports[i];
            same = now.session == before.session && now.verdict == before.verdict;
        }
        if (!same) throw Diverged("the same moves had another effect than before");
    }

    void perform_current(Node& node) {
        const Move move = node.event.move;
        node.event = stage_.perform(move);
        learned_ = footprints_.learn(node.event) || learned_;
        add_wake_orders(node);
        const Move time_out{Move::Kind::time_out, move.session, move.step};
        if (node.event.may_time_out && !contains(node.to_explore, time_out)) {
            node.to_explore.insert(node.to_explore.begin(), time_out);
        }
    }

    /// Where several waiters were free at once, each may go first.
    void add_wake_orders(Node& node) {
        const std::vector<WakeChoice>& choices = node.event.wake_choices;
        for (std::size_t point = node.event.move.wake_order.size(); point < choices.size(); ++point) {
            for (std::size_t other = 0; other < choices[point].sessions.size(); ++other) {
                if (other == choices[point].taken || (options_.reduce && commutes(node.event, choices[point])))
                    continue;
                Move move = node.event.move;
                move.wake_order.clear();
                for (std::size_t i = 0; i < point; ++i) move.wake_order.push_back(choices[i].taken);
                move.wake_order.push_back(other);
                if (!contains(node.to_explore, move)) node.to_explore.insert(node.to_explore.begin(), move);
            }
        }
    }

    /// True where all that the freed sessions did in this event is independent of each other.
    static bool commutes(const Event& event, const WakeChoice& choice) {
        for (std::size_t i = 0; i < event.reports.size(); ++i) {
            for (std::size_t j = i + 1; j < event.reports.size(); ++j) {
                const StepReport& one = event.reports[i];
                const StepReport& other = event.reports[j];
                if (!one.woken || !other.woken) continue;
                if (std::ranges::find(choice.sessions, one.session) == choice.sessions.end()) continue;
                if (one.is_waiting() || other.is_waiting() || one.session == other.session ||
                    are_dependent(one.footprint, other.footprint)) {
                    return false;
                }
            }
        }
        return true;
    }

    std::vector<Sleeper> sleepers_after(const Node& node) const {
        std::vector<Sleeper> still;
        for (const Sleeper& sleeper : node.sleeping) {
            if (is_independent(sleeper, node.event)) still.push_back(sleeper);
        }
        return still;
    }

    [[nodiscard]] std::size_t preemptions_after(const Node& node, std::size_t depth) const {
        if (depth == 0) return 0;
        const std::size_t before = path_[depth - 1].event.move.session;
        const bool could_go_on = std::ranges::any_of(
            node.moves, [&](const Move& move) { return move.kind == Move::Kind::step && move.session == before; });
        return node.preemptions + (could_go_on && node.event.move.session != before ? 1 : 0);
    }

    [[nodiscard]] bool is_allowed(const Node& node, std::size_t depth, const Move& move) const {
        if (!options_.preemptions_max) return true;
        Node trial;
        trial.moves = node.moves;
        trial.preemptions = node.preemptions;
        trial.event.move = move;
        return preemptions_after(trial, depth) <= *options_.preemptions_max;
    }

    End extend() {
        while (true) {
            Node node;
            node.moves = stage_.moves();
            const std::size_t depth = path_.size();
            if (copies_.is_on()) drop_held_back(node.moves, events());
            if (node.moves.empty()) return End::complete;
            if (depth > 0) {
                node.preemptions = preemptions_after(path_.back(), depth - 1);
                if (options_.reduce) node.sleeping = sleepers_after(path_.back());
            }
            if (!choose(node, depth)) return End::asleep;
            path_.push_back(std::move(node));
            perform_current(path_.back());
        }
    }

    /// The first move from a state: the session that is running goes on where it can.
    bool choose(Node& node, std::size_t depth) {
        std::vector<Move> awake;
        for (const Move& move : node.moves) {
            const bool sleeps = std::ranges::any_of(node.sleeping, [&](const Sleeper& s) { return s.move == move; });
            if (!sleeps && is_allowed(node, depth, move)) awake.push_back(move);
        }
        if (awake.empty()) return false;
        Move first = awake.front();
        if (depth > 0) {
            const auto same = std::ranges::find(awake, path_.back().event.move.session, &Move::session);
            if (same != awake.end()) first = *same;
        }
        node.event.move = first;
        for (const Move& move : awake) {
            // Which waiter's detector runs, and whether a time-out does, is never found by a race: all are taken.
            const bool is_wanted = !options_.reduce || move.kind != Move::Kind::step;
            if (is_wanted && move != first) node.to_explore.push_back(move);
        }
        return true;
    }

    End finish() {
        Execution execution;
        for (const Node& node : path_) execution.events.push_back(node.event);
        execution.ending = stage_.finish();
        ++summary_.executions;
        stopped_ = !on_execution_(execution);
        return End::complete;
    }

    /// For each pair that might have happened the other way round: somebody who leads there must be tried first.
    void find_races(std::size_t fresh_from) {
        const std::vector<const Event*> played = events();
        const HappensBefore order(played, copies_.order_of(played));
        for (std::size_t later = fresh_from; later < played.size(); ++later) {
            for (std::size_t earlier = 0; earlier < later; ++earlier) {
                if (order.is_race(earlier, later)) add_reversal(path_[earlier], order.initials(earlier, later));
            }
        }
    }

    static void add_reversal(Node& node, const std::vector<Move>& initials) {
        const auto is_known = [&](const Move& move) {
            const auto same = [&](const Move& other) { return same_process(move, other); };
            return same(node.event.move) || std::ranges::any_of(node.to_explore, same) ||
                   std::ranges::any_of(node.explored, same);
        };
        if (std::ranges::any_of(initials, is_known)) return;
        for (const Move& wanted : initials) {
            for (const Move& move : node.moves) {
                if (!same_process(move, wanted)) continue;
                node.to_explore.push_back(move);
                return;
            }
        }
        // A detector that finds no cycle here can't be what comes first; the cycle needs the event itself.
        const bool only_detectors =
            std::ranges::all_of(initials, [](const Move& move) { return move.kind == Move::Kind::deadlock_check; });
        if (only_detectors) return;
        // None of them can move here, which the theory does not foresee: then everybody is tried.
        for (const Move& move : node.moves) {
            if (!is_known(move)) node.to_explore.push_back(move);
        }
    }

    [[nodiscard]] std::vector<const Event*> events() const {
        std::vector<const Event*> events;
        events.reserve(path_.size());
        for (const Node& node : path_) events.push_back(&node.event);
        return events;
    }

    void drop_held_back(std::vector<Move>& moves, Prefix before) const {
        std::erase_if(moves, [&](const Move& move) { return copies_.holds_back(move, before); });
    }

    void keep_copies_in_order(End end) {
        const std::vector<const Event*> played = events();
        if (!copies_.has_gates()) {
            copies_.set_gates(played);
            for (std::size_t depth = 0; depth < path_.size(); ++depth) {
                drop_held_back(path_[depth].moves, Prefix(played).first(depth));
            }
        }
        symmetry_failed_ = end == End::complete && !copies_.all_have_passed(played);
    }

    static std::size_t open_moves(const Node& node) {
        return static_cast<std::size_t>(
            std::ranges::count_if(node.to_explore, [&](const Move& move) { return !contains(node.explored, move); }));
    }

    /// Back to the deepest state with something left to try.
    bool next_branch() {
        while (!path_.empty()) {
            Node& node = path_.back();
            node.explored.push_back(node.event.move);
            if (options_.reduce) {
                node.sleeping.push_back({node.event.move, node.event.footprint, participants(node.event)});
            }
            for (const Move& move : node.to_explore) {
                const bool sleeps =
                    std::ranges::any_of(node.sleeping, [&](const Sleeper& s) { return s.move == move; });
                if (sleeps || contains(node.explored, move) || !is_allowed(node, path_.size() - 1, move)) continue;
                const Move chosen = move;
                node.event = Event{};
                node.event.move = chosen;
                return true;
            }
            path_.pop_back();
        }
        return false;
    }

    Stage& stage_;
    const ExplorerOptions& options_;
    const OnExecution& on_execution_;
    StepFootprints own_footprints_;
    StepFootprints& footprints_;
    bool learned_ = false;  ///< In this execution a step did what it had not done before.
    ExplorationSummary summary_;
    std::vector<Node> path_;
    CopyOrder copies_;
    bool symmetry_failed_ = false;
    bool stopped_ = false;
};

}  // namespace

ExplorationSummary explore(Stage& stage, const ExplorerOptions& options, const OnExecution& on_execution) {
    return Exploration(stage, options, on_execution).run();
}

std::size_t count_preemptions(const Execution& execution) {
    std::size_t preemptions = 0;
    for (std::size_t i = 1; i < execution.events.size(); ++i) {
        const Event& before = execution.events[i - 1];
        const std::size_t session = before.move.session;
        if (execution.events[i].move.session == session) continue;
        const bool waits = std::ranges::any_of(
            before.reports, [&](const StepReport& report) { return report.session == session && report.is_waiting(); });
        const bool goes_on =
            std::any_of(execution.events.begin() + static_cast<std::ptrdiff_t>(i), execution.events.end(),
                        [&](const Event& event) { return event.move.session == session; });
        preemptions += !waits && goes_on ? 1U : 0U;
    }
    return preemptions;
}

}  // namespace rowlock::race
