#include "cli/context.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace rowlock::cli {

namespace {

/// COLUMNS says what the terminal can't; more than this is a slip.
constexpr long columns_max = 10'000;

}  // namespace

std::string environment(const char* name) {
    const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing here sets the environment
    return value == nullptr ? std::string() : std::string(value);
}

Style Style::of_this_process() {
    Style style;
    const std::string terminal = environment("TERM");
    const bool dumb = terminal.empty() || terminal == "dumb";
    style.color = isatty(STDOUT_FILENO) == 1 && !dumb && environment("NO_COLOR").empty();
    style.progress = isatty(STDERR_FILENO) == 1 && !dumb;
    if (isatty(STDOUT_FILENO) != 1) style.width = Style::unlimited;
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) style.width = size.ws_col;
    const char* const columns = std::getenv("COLUMNS");  // NOLINT(concurrency-mt-unsafe): before any thread
    const long asked = columns == nullptr ? 0 : std::strtol(columns, nullptr, 10);
    if (asked > 0 && asked < columns_max) style.width = static_cast<std::size_t>(asked);
    return style;
}

}  // namespace rowlock::cli
