// The second act of the demo: races, on a throw-away server of the checker's own.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/context.hpp"

namespace rowlock::cli {

struct EmbeddedScenario {
    std::string_view name;
    std::string_view text;
};

/// What CMake has put into the binary.
[[nodiscard]] std::span<const EmbeddedScenario> demo_scenarios();

struct DemoRaces {
    std::vector<std::string> lines{};  ///< For people, without an indent.
    std::vector<std::string> json{};   ///< A report each.
    std::filesystem::path report{};    ///< The HTML file, in a new folder under the system's temporary one.
    bool as_expected = true;           ///< Each twin was caught, each safe form held.
};

[[nodiscard]] DemoRaces play_demo_races(const Style& style);

}  // namespace rowlock::cli
