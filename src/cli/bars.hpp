// What the benchmarks must reach, told in one way by all of them, and the machine's flush beside it.
#pragma once

#include <string>
#include <string_view>

#include "cli/context.hpp"
#include "cli/scratch_database.hpp"

namespace rowlock::cli {

struct Bar {
    std::string what;  ///< Such as "stage, 1 tenant: × plain INSERT".
    double value = 0;
    double limit = 0;
    bool at_most = false;  ///< `limit` is the most that may be, not the least that must be.

    [[nodiscard]] bool met() const { return at_most ? value <= limit : value >= limit; }
};

/// 0.84, 17.3 or 41,397: as many digits as a reader wants.
[[nodiscard]] std::string bar_figure(double value);

/// One line: the figure, what it is, the bar and whether it is met. With --json an object whose first member is `bar`.
void tell_bar(const Context& context, const Bar& bar);

/// How a commit that waits for the disk compares with one that does not: medians of many, in turn, one client.
[[nodiscard]] double flush_microseconds(const ScratchDatabase& scratch);

/// What a figure can't be judged without: the machine's flush, its cores, what else keeps them busy, and whether the
/// server was durable at all. With --json an object whose first member is `flush_microseconds`.
void tell_machine(const Context& context, const ScratchDatabase& scratch);

}  // namespace rowlock::cli
