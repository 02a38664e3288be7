// A fault in one line: what happened, the server's SQLSTATE and message, what to do next.
#pragma once

#include <exception>
#include <string>

#include "cli/context.hpp"

namespace rowlock::cli {

struct Explanation {
    std::string line;
    Exit exit;
};

[[nodiscard]] Explanation explain(const std::exception& fault);
[[nodiscard]] Explanation explain(const std::exception_ptr& fault);

}  // namespace rowlock::cli
