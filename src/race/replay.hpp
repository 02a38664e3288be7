// A schedule in a file: what was done, move by move, and what came of each, so that it can be done again.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "race/execution.hpp"
#include "race/scenario.hpp"
#include "race/stage.hpp"

namespace rowlock::race {

struct ReplayMove {
    Move::Kind kind = Move::Kind::step;
    std::string session{};
    std::string step{};
    std::vector<std::size_t> wake_order{};
    std::string effect{};  ///< What came of it, in a form that can be compared.
};

struct Replay {
    std::string scenario{};  ///< The path of the scenario file.
    std::string isolation{};
    std::vector<ReplayMove> moves{};
    bool ends_early = false;  ///< Sessions have steps left.
};

[[nodiscard]] std::string replay_text(const Scenario& scenario, const std::string& path, const std::string& isolation,
                                      const Execution& execution);

/// Throws ScenarioError.
[[nodiscard]] Replay parse_replay(std::string_view text, std::string_view name);

struct ReplayOutcome {
    Execution execution{};
    /// Where it went another way, and how; empty where it did not.
    std::string divergence{};
};

[[nodiscard]] ReplayOutcome play_again(const Scenario& scenario, const Replay& replay, Stage& stage);

}  // namespace rowlock::race
