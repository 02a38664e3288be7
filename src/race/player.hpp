// Plays one session of a scenario on a connection of its own: keeps its place in the steps, its variables and its
// transaction, and says what each step did. It never waits; the conductor watches it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "postgres/async_session.hpp"
#include "race/analysis_cache.hpp"
#include "race/execution.hpp"
#include "race/footprint_tracker.hpp"
#include "race/scenario.hpp"
#include "race/step_program.hpp"
#include "race/timeouts.hpp"

namespace rowlock::race {

/// How a player reaches its server.
struct PlayerOptions {
    std::string connection{};
    std::vector<std::pair<std::string, std::string>> settings{};
};

class Player {
  public:
    /// Both must outlive the player.
    Player(const SessionScript& definition, std::size_t index, PlayerOptions options);

    /// Back to the first step, on a fresh connection where the old one is gone. The tracker is new as well.
    void restart(const Catalog& catalog, AnalysisCache& analyses);
    /// Runs a script outside of the steps (the session's setup) to its end; throws ServerError.
    void run_aside(const std::string& script);

    [[nodiscard]] std::optional<std::size_t> next_step() const;
    void start(std::size_t step);
    /// The same, with the session's own time-out set so short that it runs out when the step waits.
    void start_with_timeout(std::size_t step, OwnTimeout timeout);
    /// Takes in what has arrived and goes on as far as it can without waiting.
    void advance();

    enum class Need {
        nothing,  ///< The step is over.
        answer,   ///< The server has not answered yet.
        look,     ///< The transaction is open: its locks are to be looked at before the step goes on.
    };
    [[nodiscard]] Need need() const noexcept { return need_; }
    /// The locks looked at, as `Need::look` asks; the step goes on.
    void give_locks(std::vector<HeldLock> locks);
    /// The step waits for somebody: what it locked, and waits for, so far.
    void note_waiting(std::vector<HeldLock> locks);

    /// What is known of the step; the statements are those since it started.
    [[nodiscard]] StepReport report() const;

    [[nodiscard]] AsyncSession& link() noexcept { return *link_; }
    [[nodiscard]] const AsyncSession& link() const noexcept { return *link_; }
    [[nodiscard]] bool has_link() const noexcept { return link_ != nullptr && !link_->is_lost(); }
    /// Its text may leave something in the session that ROLLBACK does not undo; so may any function, so with functions
    /// of the user's the answer is yes.
    [[nodiscard]] bool keeps_state() const noexcept { return keeps_state_; }
    [[nodiscard]] bool is_disconnected() const noexcept { return disconnected_; }
    [[nodiscard]] int pid() const noexcept { return pid_; }
    [[nodiscard]] std::size_t index() const noexcept { return index_; }
    [[nodiscard]] const SessionScript& definition() const noexcept { return *definition_; }

  private:
    enum class Phase { idle, opening, arming, running, disarming, closing, rolling_back };

    void connect();
    std::vector<AsyncResult> answers_aside(const std::string& script);
    void run_instructions();
    void send_statement(const Instruction& instruction);
    void send_text();
    void continue_statement();
    void keep_row(const Instruction& instruction);
    void keep_values(const Instruction& instruction, const StatementOutcome& outcome);
    [[nodiscard]] bool locks_are_fixed(const Analysis& analysis) const;
    void close();
    void finish_phase();
    void finish_statement(bool committed);
    void fail_statement(std::string sqlstate, std::string message);
    void end_step();
    void collect();
    [[nodiscard]] StatementFacts facts() const;

    const SessionScript* definition_;
    std::size_t index_;
    PlayerOptions options_;
    std::unique_ptr<AsyncSession> link_;
    int pid_ = 0;
    std::string default_isolation_;
    AnalysisCache* analyses_ = nullptr;
    std::optional<FootprintTracker> tracker_;
    Variables variables_;

    std::size_t next_step_ = 0;
    int retries_done_ = 0;
    bool gave_up_ = false;
    bool disconnected_ = false;
    bool keeps_state_ = true;

    Phase phase_ = Phase::idle;
    OwnTimeout timeout_ = OwnTimeout::none;  ///< Of the step under way, where it is to run out.
    Need need_ = Need::nothing;
    std::size_t step_ = 0;
    std::size_t instruction_ = 0;
    bool wrapped_ = false;
    const std::vector<HeldLock>* known_locks_ = nullptr;  ///< Of the statement under way, where they are fixed.
    bool was_in_transaction_ = false;
    bool was_in_failed_transaction_ = false;
    bool failed_ = false;  ///< The statement under way.
    bool step_failed_ = false;
    std::string text_;             ///< The statement under way.
    std::vector<HeldLock> locks_;  ///< As last looked at.
    StepReport report_;
};

}  // namespace rowlock::race
