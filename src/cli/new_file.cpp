#include "cli/new_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 18U;

SetupError taken(const std::string& path) {
    return SetupError(path + " is already there and is left as it is: choose another name");
}

}  // namespace

NewFile::NewFile(std::string path) : path_(std::move(path)) {
    if (path_ == "-") {
        descriptor_ = STDOUT_FILENO;
        return;
    }
    std::error_code ignored;
    if (std::filesystem::exists(std::filesystem::symlink_status(path_, ignored))) throw taken(path_);
    temporary_ = path_ + "." + std::to_string(::getpid()) + ".tmp";
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor_ < 0) fail("make", errno);
}

NewFile::~NewFile() {
    if (temporary_.empty()) return;
    if (descriptor_ >= 0) ::close(descriptor_);
    ::unlink(temporary_.c_str());
}

void NewFile::fail(const std::string& what, int error) const {
    throw SetupError("cannot " + what + " " + path_ + ": " + std::system_category().message(error));
}

void NewFile::write(std::string_view bytes) {
    buffer_ += bytes;
    if (buffer_.size() >= buffer_bytes) flush();
}

void NewFile::flush() {
    std::string_view left = buffer_;
    while (!left.empty()) {
        const ssize_t written = ::write(descriptor_, left.data(), left.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail("write", errno);
        left.remove_prefix(static_cast<std::size_t>(written));
    }
    buffer_.clear();
}

void NewFile::keep() {
    flush();
    if (temporary_.empty()) return;
    if (::fsync(descriptor_) != 0) fail("make durable", errno);
    const int error = ::link(temporary_.c_str(), path_.c_str()) == 0 ? 0 : errno;
    if (error == EEXIST) throw taken(path_);
    // A file system without hard links.
    const bool named =
        error == 0 || ::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) == 0;
    if (!named && errno == EEXIST) throw taken(path_);
    if (!named) fail("name", errno);
    const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
    const int opened = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened >= 0) {
        ::fsync(opened);
        ::close(opened);
    }
}

}  // namespace rowlock::cli
