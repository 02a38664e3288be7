// An execution as rows and columns, for every kind of report: sessions side by side, time downwards.
#pragma once

#include <string>
#include <vector>

#include "race/checker.hpp"
#include "race/execution.hpp"
#include "race/scenario.hpp"

namespace rowlock::race {

struct TimelineRow {
    enum class Kind { step, waits, goes_on, fails, deadlock_check };
    Kind kind = Kind::step;
    std::size_t session = 0;
    std::string step{};
    std::string sql{};                 ///< On one line; empty where it was shown already, when the step began to wait.
    std::string remark{};              ///< What it saw, whom it waits for, how it failed.
    std::vector<std::string> locks{};  ///< What the session came to hold here.
    std::vector<bool> waiting{};       ///< Of each session: waits while this happens.
    std::size_t event = 0;             ///< Rows of one event belong together.
    bool matters = false;              ///< One of the two events whose order matters.
};

[[nodiscard]] std::vector<TimelineRow> timeline_of(const Scenario& scenario, const Execution& execution);
/// With the two events marked whose order matters.
[[nodiscard]] std::vector<TimelineRow> timeline_of(const Scenario& scenario, const Finding& finding);

/// A word for style sheets: "done", "waits", "goes" or "fails".
[[nodiscard]] std::string_view row_class(TimelineRow::Kind kind);

/// What a session holds after an event, the weak locks left out that a stronger one covers.
[[nodiscard]] std::vector<std::string> held_locks_text(const Event& event, std::size_t session);

/// False for "commit { COMMIT }", where the SQL says no more than the name.
[[nodiscard]] bool tells_more_than_name(const TimelineRow& row);

/// "5 b.next comes before 8 a.commit", in the numbers of the timeline; empty where no such pair is known.
[[nodiscard]] std::string order_text(const Scenario& scenario, const Finding& finding);

/// "a.begin a.next b.begin …", one word an event, as a permutation of a scenario file would have it.
[[nodiscard]] std::string schedule_text(const Scenario& scenario, const Execution& execution);

/// Everything on one line, blanks collapsed, at most `width` characters, the rest cut with "…".
[[nodiscard]] std::string on_one_line(std::string_view text, std::size_t width);

/// Characters, not bytes.
[[nodiscard]] std::size_t text_width(std::string_view text);

}  // namespace rowlock::race
