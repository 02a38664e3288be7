// A verdict for a terminal.
#pragma once

#include <string>
#include <vector>

#include "race/checker.hpp"
#include "race/scenario.hpp"

namespace rowlock::race {

/// Lines of at most `width` columns, as far as names allow.
[[nodiscard]] std::vector<std::string> report_lines(const Scenario& scenario, const CheckResult& result,
                                                    std::size_t width);

/// The timeline of one execution alone.
[[nodiscard]] std::vector<std::string> timeline_lines(const Scenario& scenario, const Execution& execution,
                                                      std::size_t width);

/// "exhausted: 10 traces of 126 interleavings, READ COMMITTED, statement granularity"
[[nodiscard]] std::string verdict_line(const CheckResult& result);

}  // namespace rowlock::race
