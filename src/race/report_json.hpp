// A verdict for programs: JSON without times or ids, so that two runs of one scenario give the same bytes.
#pragma once

#include <string>

#include "race/checker.hpp"
#include "race/scenario.hpp"

namespace rowlock::race {

[[nodiscard]] std::string report_json(const Scenario& scenario, const CheckResult& result);

/// A JUnit file's test suite for one scenario: a case for each invariant, and one for the exploration.
/// Source: https://github.com/testmoapp/junitxml
[[nodiscard]] std::string report_junit(const Scenario& scenario, const CheckResult& result);

/// Text fit for XML and HTML.
[[nodiscard]] std::string escaped_markup(std::string_view text);

}  // namespace rowlock::race
