// Verdicts as one HTML file with nothing outside of it, the timeline as inline SVG; and graphs for Graphviz.
#pragma once

#include <string>
#include <vector>

#include "race/checker.hpp"
#include "race/scenario.hpp"

namespace rowlock::race {

struct HtmlSection {
    std::string title{};
    std::string mark{};  ///< ✓, ✗ or ?
    std::string body{};
    bool bad = false;
};

[[nodiscard]] HtmlSection html_section(const Scenario& scenario, const CheckResult& result);
[[nodiscard]] std::string report_html(const std::vector<HtmlSection>& sections);

/// Who waited for whom in the first finding, with the steps on the edges; a cycle is a deadlock.
[[nodiscard]] std::string report_dot(const Scenario& scenario, const CheckResult& result);

}  // namespace rowlock::race
