// A broken contract is a bug in the program: it stops there and then, with the place named.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <source_location>
#include <string_view>

namespace rowlock {

/// Stops the program unless `holds`. Not for anything that input, a server or another process can bring about.
inline void contract(bool holds, std::string_view rule, std::source_location where = std::source_location::current()) {
    if (holds) return;
    std::fprintf(stderr, "rowlock: contract broken at %s:%u (%s): %.*s\n", where.file_name(),
                 static_cast<unsigned>(where.line()), where.function_name(), static_cast<int>(rule.size()),
                 rule.data());
    std::abort();
}

}  // namespace rowlock
