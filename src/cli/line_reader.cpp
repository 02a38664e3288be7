#include "cli/line_reader.hpp"

#include <fmt/format.h>
#include <sys/types.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

InvalidInput unreadable(const std::string& path, int reason) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the reader is one thread, and the text is copied at once
    return InvalidInput(
        fmt::format("{} can't be read: {}", path == "-" ? "standard input" : path, std::strerror(reason)));
}

}  // namespace

void LineReader::Closer::operator()(std::FILE* file) const noexcept {
    if (file != stdin) std::fclose(file);
}

LineReader::LineReader(const std::string& path) : path_(path) {
    file_.reset(path == "-" ? stdin : std::fopen(path.c_str(), "re"));
    if (!file_) throw unreadable(path, errno);
}

std::optional<std::string> LineReader::next() {
    char* line = nullptr;
    std::size_t capacity = 0;
    errno = 0;
    const ssize_t length = getline(&line, &capacity, file_.get());
    const int reason = errno;
    const std::unique_ptr<char, decltype(&std::free)> guard(line, &std::free);
    if (length < 0) {
        if (std::ferror(file_.get()) != 0) throw unreadable(path_, reason);
        return std::nullopt;
    }
    ++number_;
    std::string text(line, static_cast<std::size_t>(length));
    if (text.ends_with('\n')) text.pop_back();
    if (text.ends_with('\r')) text.pop_back();
    return text;
}

}  // namespace rowlock::cli
