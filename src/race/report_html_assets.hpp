// What every HTML report carries with it, so that it needs nothing from outside.
#pragma once

#include <string_view>

namespace rowlock::race {

extern const std::string_view report_style;
extern const std::string_view report_script;

}  // namespace rowlock::race
