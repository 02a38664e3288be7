// A timeline for a terminal: sessions as columns, time downwards.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "race/scenario.hpp"
#include "race/timeline.hpp"

namespace rowlock::race {

/// How text may look.
struct TextStyle {
    static constexpr std::size_t default_width = 100;
    static constexpr std::size_t width_min = 40;

    std::size_t width = default_width;  ///< Columns that a line may have.
    bool color = false;
};

enum class Ink { plain, strong, faint, good, bad, wait };

/// In colour, where colours are wanted. Nothing is said by colour alone.
[[nodiscard]] std::string inked(const TextStyle& style, Ink ink, std::string_view text);

/// With blanks behind it.
[[nodiscard]] std::string padded(std::string_view text, std::size_t width);

/// Lines of at most `width` characters, broken at blanks where there are some.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, std::size_t width);

[[nodiscard]] std::vector<std::string> timeline_lines(const Scenario& scenario, const std::vector<TimelineRow>& rows,
                                                      const TextStyle& style);

}  // namespace rowlock::race
