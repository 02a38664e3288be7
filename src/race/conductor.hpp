// The stage on a real server: one connection a session, one that watches, and at any moment at most one session that
// runs. A session that waits is stopped until the lock it waits for is its own; so nothing is left to chance.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "race/arena.hpp"
#include "race/lock_survey.hpp"
#include "race/player.hpp"
#include "race/referee.hpp"
#include "race/scenario.hpp"
#include "race/server_watch.hpp"
#include "race/stage.hpp"
#include "race/waiter.hpp"

namespace rowlock::race {

struct ConductorOptions {
    std::string connection{};  ///< To the database that is the scenario's alone.
    std::string isolation{};   ///< Default for transactions that name none; empty: as the server has it.
    /// The cluster is the checker's own, so its backends may be stopped. Where they may not, who wakes first is the
    /// server's choice.
    bool may_stop_backends = true;
    /// Short, since every deadlock is waited for; longer once the machine was too slow for it.
    std::chrono::milliseconds deadlock_timeout{10};
    /// A step that neither ends nor waits for a session of the scenario is given up after this long.
    std::chrono::milliseconds step_wait_max{10'000};
    /// A wait for somebody outside of the scenario.
    std::chrono::milliseconds others_wait_max{2'000};
};

class Conductor : public Stage {
  public:
    /// Runs the setup. `scenario` must outlive the conductor.
    Conductor(const Scenario& scenario, ConductorOptions options);
    ~Conductor() override;

    void restart() override;
    std::vector<Move> moves() override;
    Event perform(const Move& move) override;
    std::vector<std::string> look() override;
    std::vector<LockLine> held_locks() override;
    bool shift_invented_values(std::int64_t shift) override;
    Ending finish() override;

    [[nodiscard]] const Arena& arena() const noexcept { return *arena_; }

  private:
    using Clock = std::chrono::steady_clock;

    void forget_analyses();
    void make_players();
    void prepare_players();
    void require_in_time();
    void note_running(Clock::time_point when, bool waits_out);
    void be_more_patient();
    void release_waiters();
    StepReport settle(std::size_t session, bool woken, bool waits_out = false);
    void begin_wait(std::size_t session, std::vector<HeldLock> locks, std::vector<std::size_t> blocked_by);
    [[nodiscard]] bool signals_others(const Move& move);
    void let_signals_arrive(Event& event);
    void notice_ended_sessions(std::size_t by);
    void wake_the_freed(Event& event);
    std::vector<std::size_t> freed_waiters();
    StepReport run_deadlock_check(std::size_t session);
    void wait_for_exit(std::size_t session);
    [[nodiscard]] Waiter* waiter(std::size_t session);
    [[nodiscard]] std::vector<std::size_t> sessions_of(const std::vector<int>& pids, bool& others) const;

    const Scenario* scenario_;
    ConductorOptions options_;
    ServerWatch watch_;
    LockSurvey locks_{watch_};
    std::unique_ptr<Arena> arena_;
    std::unique_ptr<Referee> referee_;
    bool is_prepared_ = false;  ///< The sessions' setups have run, so their teardowns have something to undo.
    std::unique_ptr<AnalysisCache> analyses_;
    std::vector<std::unique_ptr<Player>> players_;
    std::vector<Waiter> waiters_;  ///< In order of arrival.
    bool others_block_ = false;
    Clock::time_point seen_running_;  ///< When the session that runs was last known not to wait.
    bool was_late_ = false;
};

}  // namespace rowlock::race
