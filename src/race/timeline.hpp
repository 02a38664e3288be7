// An execution as rows and columns, for every kind of report: sessions side by side, time downwards.
#pragma once

#include <string>
#include <vector>

#include "race/execution.hpp"
#include "race/scenario.hpp"

namespace rowlock::race {

struct TimelineRow {
    enum class Kind { step, waits, goes_on, fails, deadlock_check };
    Kind kind = Kind::step;
    std::size_t session = 0;
    std::string step{};
    std::string sql{};            ///< On one line.
    std::string remark{};         ///< What it saw, whom it waits for, how it failed.
    std::vector<bool> waiting{};  ///< Of each session: waits while this happens.
    std::size_t event = 0;        ///< Rows of one event belong together.
};

[[nodiscard]] std::vector<TimelineRow> timeline_of(const Scenario& scenario, const Execution& execution);

/// "a.begin a.next b.begin …", one word an event, as a permutation of a scenario file would have it.
[[nodiscard]] std::string schedule_text(const Scenario& scenario, const Execution& execution);

/// Everything on one line, blanks collapsed, at most `width` characters, the rest cut with "…".
[[nodiscard]] std::string on_one_line(std::string_view text, std::size_t width);

/// Characters, not bytes.
[[nodiscard]] std::size_t text_width(std::string_view text);

}  // namespace rowlock::race
