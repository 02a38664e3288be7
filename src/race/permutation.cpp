#include "race/permutation.hpp"

#include <algorithm>
#include <deque>
#include <set>

#include "race/timeouts.hpp"

namespace rowlock::race {

namespace {

/// Retries may bring steps back, but not without end.
constexpr std::size_t extra_steps_max = 1'000;

class PermutationPlayer {
  public:
    PermutationPlayer(const Scenario& scenario, Stage& stage)
        : scenario_(scenario), stage_(stage), put_off_(scenario.sessions.size()) {}

    Execution play(const Permutation& permutation) {
        stage_.restart();
        for (std::size_t i = 0; i < permutation.elements.size(); ++i) {
            const PermutationElement& element = permutation.elements[i];
            if (!element.session) {
                look();
                continue;
            }
            const bool runs_out = has_timeout(*element.session) && nobody_follows(permutation, i);
            put_off_[*element.session].push_back(
                {runs_out ? Move::Kind::time_out : Move::Kind::step, *element.session, element.step});
            play_put_off(*element.session);
            play_all_put_off();
        }
        play_the_rest();
        execution_.ending = stage_.finish();
        return std::move(execution_);
    }

  private:
    [[nodiscard]] bool has_timeout(std::size_t session) const {
        return own_timeout_of(scenario_.sessions[session]) != OwnTimeout::none;
    }

    /// No other session has a step before this one goes on, so a wait ends only when its time is out.
    static bool nobody_follows(const Permutation& permutation, std::size_t at) {
        for (std::size_t next = at + 1; next < permutation.elements.size(); ++next) {
            const std::optional<std::size_t> session = permutation.elements[next].session;
            if (session) return session == permutation.elements[at].session;
        }
        return true;
    }

    [[nodiscard]] bool is_waiting(std::size_t session) const { return waiting_.contains(session); }

    void look() {
        if (execution_.events.empty()) return;
        for (std::string& name : stage_.look()) execution_.events.back().violated.push_back(std::move(name));
    }

    void perform(const Move& move) {
        execution_.events.push_back(stage_.perform(move));
        const Event& event = execution_.events.back();
        for (const StepReport& report : event.reports) {
            if (report.is_waiting()) {
                waiting_.insert(report.session);
            } else {
                waiting_.erase(report.session);
            }
            if (report.gives_up || report.verdict == Verdict::disconnected) given_up_.insert(report.session);
        }
        break_deadlocks();
    }

    void break_deadlocks() {
        const std::vector<Move> moves = stage_.moves();
        const Move* victim = nullptr;
        for (const Move& move : moves) {
            if (move.kind != Move::Kind::deadlock_check) continue;
            if (victim == nullptr || timeout_of(move) < timeout_of(*victim)) victim = &move;
        }
        if (victim != nullptr) perform(*victim);
    }

    [[nodiscard]] std::chrono::milliseconds timeout_of(const Move& move) const {
        return deadlock_timeout_of(scenario_.sessions[move.session]);
    }

    bool play_put_off(std::size_t session) {
        bool any = false;
        while (!put_off_[session].empty() && !is_waiting(session)) {
            const Move move = put_off_[session].front();
            put_off_[session].pop_front();
            if (given_up_.contains(session)) continue;
            perform(move);
            any = true;
        }
        return any;
    }

    void play_all_put_off() {
        bool any = true;
        while (any) {
            any = false;
            for (std::size_t session = 0; session < put_off_.size(); ++session) any = play_put_off(session) || any;
        }
    }

    /// Only what a retry has brought back: a permutation may leave steps out.
    void play_the_rest() {
        for (std::size_t count = 0; count < extra_steps_max; ++count) {
            const std::vector<Move> moves = stage_.moves();
            const auto again = std::ranges::find_if(
                moves, [&](const Move& move) { return move.kind == Move::Kind::step && restarted(move.session); });
            if (again == moves.end()) return;
            perform(*again);
        }
    }

    [[nodiscard]] bool restarted(std::size_t session) const {
        return std::ranges::any_of(execution_.events, [&](const Event& event) {
            return std::ranges::any_of(
                event.reports, [&](const StepReport& report) { return report.session == session && report.restarts; });
        });
    }

    const Scenario& scenario_;
    Stage& stage_;
    std::vector<std::deque<Move>> put_off_;
    std::set<std::size_t> waiting_;
    std::set<std::size_t> given_up_;
    Execution execution_;
};

}  // namespace

Execution play_permutation(const Scenario& scenario, const Permutation& permutation, Stage& stage) {
    return PermutationPlayer(scenario, stage).play(permutation);
}

}  // namespace rowlock::race
