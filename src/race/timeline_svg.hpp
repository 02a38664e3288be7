// A timeline as a picture: a lane for each session, time to the right.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "race/scenario.hpp"
#include "race/timeline.hpp"

namespace rowlock::race {

/// Complete by itself. `link_prefix`: each step is a link to "#PREFIXn", n counting from 1; empty: no links.
[[nodiscard]] std::string timeline_svg(const Scenario& scenario, const std::vector<TimelineRow>& rows,
                                       std::string_view link_prefix = {});

}  // namespace rowlock::race
