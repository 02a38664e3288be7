// Bars and their limits as a picture and as a table; no I/O.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/bars.hpp"

namespace rowlock::cli {

/// What the benchmarks told with --json.
struct BenchReport {
    std::vector<Bar> bars;
    std::vector<double> flushes;  ///< Microseconds, one of each benchmark.
    std::vector<double> loads;
    std::int64_t cores = 0;
};

/// Adds what one line of a benchmark says; lines that are neither a bar nor the machine are passed over. Returns what
/// is wrong with it, empty for nothing.
[[nodiscard]] std::string read_report_line(std::string_view line, BenchReport& report);

/// Flush time, cores and load, on one line.
[[nodiscard]] std::string machine_text(const BenchReport& report);

/// Complete by itself, readable on light and dark paper. Every figure is drawn in parts of its limit.
[[nodiscard]] std::string bars_svg(const BenchReport& report);

/// The same as lines of a Markdown table.
[[nodiscard]] std::vector<std::string> bars_table(const BenchReport& report);

}  // namespace rowlock::cli
