#include "cli/context.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace rowlock::cli {

namespace {

/// COLUMNS says what the terminal can't; more than this is a slip.
constexpr long columns_max = 10'000;

}  // namespace

Style Style::of_this_process() {
    Style style;
    const char* const no_color = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe): before any thread
    const char* const terminal = std::getenv("TERM");      // NOLINT(concurrency-mt-unsafe): before any thread
    const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
    style.color = isatty(STDOUT_FILENO) == 1 && !dumb && (no_color == nullptr || *no_color == '\0');
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
