// What the benchmarks told with --json, as a picture or as a table.
#include <fmt/format.h>

#include <fstream>
#include <iostream>

#include "cli/bars_svg.hpp"
#include "cli/commands/commands.hpp"
#include "cli/output.hpp"
#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

BenchReport read_report(std::istream& lines, const std::string& name) {
    BenchReport report;
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        if (line.empty()) continue;
        const std::string wrong = read_report_line(line, report);
        if (!wrong.empty()) {
            throw InvalidInput(
                fmt::format("{}, line {}: {}: give what benchmarks print with --json", name, number, wrong));
        }
    }
    if (report.bars.empty()) {
        throw InvalidInput(fmt::format("{} has no bar of a benchmark: give what they print with --json", name));
    }
    return report;
}

}  // namespace

Exit bench_chart(const BenchChartOptions& options) {
    std::ifstream file;
    if (options.results != "-") {
        file.open(options.results);
        if (!file) throw SetupError(fmt::format("{} can't be read", options.results));
    }
    const BenchReport report =
        options.results == "-" ? read_report(std::cin, "stdin") : read_report(file, options.results);
    if (options.table) {
        for (const std::string& line : bars_table(report)) print_line(line);
    } else {
        print_line(bars_svg(report));
    }
    return Exit::fine;
}

}  // namespace rowlock::cli
