// A database small enough to be obviously right: variables, row locks to the end of the transaction, committed reads.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "race/stage.hpp"

namespace rowlock::race::test {

struct SimulatedStep {
    enum class Kind { begin, read, write, lock_shared, commit, rollback };
    Kind kind = Kind::begin;
    int variable = 0;
    bool operator==(const SimulatedStep&) const = default;
};

using SimulatedSession = std::vector<SimulatedStep>;

class SimulatedStage : public Stage {
  public:
    /// `alike`: what a session writes does not tell which one it is.
    SimulatedStage(std::vector<SimulatedSession> sessions, int variables, bool alike);

    void restart() override;
    std::vector<Move> moves() override;
    Event perform(const Move& move) override;
    std::vector<std::string> look() override { return {}; }
    Ending finish() override;

  private:
    struct State {
        std::size_t next = 0;
        int seen = 0;
        std::map<int, int> written{};
        std::map<int, LockModes> held{};
        std::optional<int> waits_on{};
        std::string told{};
    };

    [[nodiscard]] std::vector<std::size_t> blockers(std::size_t session, const SimulatedStep& step) const;
    [[nodiscard]] bool is_in_cycle(std::size_t session) const;
    StepReport run(std::size_t session, bool woken);
    StepReport abort(std::size_t session);
    void end_transaction(std::size_t session, bool commit, Footprint& footprint);
    void wake(Event& event);

    std::vector<SimulatedSession> sessions_;
    int variable_count_;
    bool alike_;
    std::vector<int> values_;
    std::vector<State> states_;
    std::vector<std::size_t> waiters_;
};

}  // namespace rowlock::race::test
