#include "cli/line_reader.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

constexpr std::size_t piece_bytes = std::size_t{64} << 10U;

InvalidInput unreadable(const std::string& path, int reason) {
    return InvalidInput(fmt::format("{} can't be read: {}", path == "-" ? "standard input" : path,
                                    std::generic_category().message(reason)));
}

}  // namespace

LineReader::LineReader(const std::string& path)
    : path_(path), file_(path == "-" ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (file_ < 0) throw unreadable(path, errno);
    struct stat status{};
    if (fstat(file_, &status) != 0) throw unreadable(path, errno);
    const int mode = fcntl(file_, F_GETFL);
    if (mode >= 0 && (static_cast<unsigned>(mode) & static_cast<unsigned>(O_ACCMODE)) == O_WRONLY) {
        throw unreadable(path, EBADF);
    }
    if (S_ISDIR(status.st_mode)) throw unreadable(path, EISDIR);
}

LineReader::~LineReader() {
    if (file_ > STDIN_FILENO) close(file_);
}

bool LineReader::fill() {
    if (begin_ > 0) {
        buffer_.erase(0, begin_);
        searched_ -= begin_;
        begin_ = 0;
    }
    const std::size_t size = buffer_.size();
    buffer_.resize(size + piece_bytes);
    ssize_t length = -1;
    do {
        length = read(file_, buffer_.data() + size, piece_bytes);
    } while (length < 0 && errno == EINTR);
    if (length < 0) throw unreadable(path_, errno);
    buffer_.resize(size + static_cast<std::size_t>(length));
    return length > 0;
}

std::string LineReader::take_line(std::size_t length, std::size_t with_break) {
    std::string line = buffer_.substr(begin_, length);
    if (line.ends_with('\r')) line.pop_back();
    begin_ += with_break;
    searched_ = begin_;
    ++number_;
    return line;
}

std::optional<std::string> LineReader::next(Interruption& interruption) {
    while (true) {
        const std::size_t end = buffer_.find('\n', searched_);
        if (end != std::string::npos) return take_line(end - begin_, end - begin_ + 1);
        searched_ = buffer_.size();
        if (!interruption.wait_readable(file_)) return std::nullopt;
        if (fill()) continue;
        if (buffer_.empty()) return std::nullopt;
        return take_line(buffer_.size(), buffer_.size());
    }
}

}  // namespace rowlock::cli
