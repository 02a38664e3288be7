// A verdict for a terminal.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "race/checker.hpp"
#include "race/scenario.hpp"
#include "race/timeline_text.hpp"

namespace rowlock::race {

/// Each finding with its timeline, then the verdict on one line.
[[nodiscard]] std::vector<std::string> report_lines(const Scenario& scenario, const CheckResult& result,
                                                    const TextStyle& style);

/// What is wrong, in a sentence.
[[nodiscard]] std::string headline(const Symptom& symptom);

/// "1 preemption, 4 of 6 schedules show it"
[[nodiscard]] std::string extent_text(const Finding& finding, const CheckResult& result);

/// "holds", "race found" …; where no end state was compared with anything, it does not say "holds".
[[nodiscard]] std::string_view verdict_word(const Scenario& scenario, const CheckResult& result);

/// "exhausted: 10 traces of 126 interleavings, READ COMMITTED, statement granularity"
[[nodiscard]] std::string verdict_line(const CheckResult& result);

}  // namespace rowlock::race
