#include "audit/keyring_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "base/hex.hpp"
#include "crypto/hmac.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t bytes_max = 1U << 20U;

class File {
  public:
    explicit File(int descriptor) : descriptor_(descriptor) {}
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    [[nodiscard]] int get() const { return descriptor_; }
    [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }

  private:
    int descriptor_;
};

[[noreturn]] void fail(const std::string& what, const fs::path& path, int error) {
    throw SetupError("cannot " + what + " " + path.string() + ": " + std::system_category().message(error));
}

fs::path folder_of(const fs::path& path) {
    const fs::path folder = path.parent_path();
    return folder.empty() ? fs::path(".") : folder;
}

void check_is_private(const struct stat& status, const fs::path& path, const std::string& noun) {
    if (!S_ISREG(status.st_mode)) throw SetupError("the " + noun + " " + path.string() + " is not a regular file");
    const unsigned mode = status.st_mode & 07777U;
    if (mode != 0600 && mode != 0400) {
        std::array<char, 8> octal{};
        std::snprintf(octal.data(), octal.size(), "%04o", mode);
        throw SetupError("the " + noun + " " + path.string() + " has mode " + octal.data() +
                         ", but nobody else may read or change it: chmod 600 " + shell_word(path));
    }
    const uid_t user = ::geteuid();
    if (user != 0 && status.st_uid != user) {
        throw SetupError("the " + noun + " " + path.string() + " belongs to user " + std::to_string(status.st_uid) +
                         ", and this is user " + std::to_string(user) + ": chown " + std::to_string(user) + " " +
                         shell_word(path));
    }
    if (static_cast<std::size_t>(status.st_size) > bytes_max) {
        throw SetupError("the " + noun + " " + path.string() + " has " + std::to_string(status.st_size) +
                         " bytes, more than any " + noun);
    }
}

std::string read_all(int descriptor, const fs::path& path, const std::string& noun) {
    // All the room at once, so that growing leaves no copies of keys behind.
    std::string content(bytes_max + 1, '\0');
    std::size_t size = 0;
    while (size < content.size()) {
        const ssize_t got = ::read(descriptor, content.data() + size, content.size() - size);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail("read the " + noun, path, errno);
        if (got == 0) break;
        size += static_cast<std::size_t>(got);
    }
    if (size > bytes_max) throw SetupError("the " + noun + " " + path.string() + " is longer than any " + noun);
    content.resize(size);
    return content;
}

void write_all(int descriptor, std::string_view content, const fs::path& path) {
    while (!content.empty()) {
        const ssize_t written = ::write(descriptor, content.data(), content.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail("write", path, errno);
        content.remove_prefix(static_cast<std::size_t>(written));
    }
}

void sync_folder(const fs::path& folder) {
    const File opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!opened.is_open()) fail("open the folder", folder, errno);
    // EINVAL: a file system that has no such thing for folders.
    if (::fsync(opened.get()) != 0 && errno != EINVAL) fail("make durable the folder", folder, errno);
}

void create_folders(const fs::path& folder) {
    std::error_code ignored;
    if (fs::exists(folder, ignored)) return;
    create_folders(folder_of(folder));
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) fail("make the folder", folder, errno);
    sync_folder(folder_of(folder));
}

/// A file beside the one to be, written and durable; gone again unless it was renamed.
class TemporaryFile {
  public:
    TemporaryFile(const fs::path& target, std::string_view content, const struct stat* like)
        : path_(temporary_path(target)) {
        const File file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
        if (!file.is_open()) fail("make", path_, errno);
        try {
            fill(file.get(), content, like);
        } catch (...) {
            ::unlink(path_.c_str());
            throw;
        }
    }
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    ~TemporaryFile() { ::unlink(path_.c_str()); }

    [[nodiscard]] const fs::path& path() const { return path_; }

  private:
    static fs::path temporary_path(const fs::path& target) {
        std::array<std::byte, 8> random{};
        fill_random(random);
        return folder_of(target) / fmt::format(".{}.{}.tmp", target.filename().string(), to_hex(random));
    }

    void fill(int descriptor, std::string_view content, const struct stat* like) const {
        // Whatever the umask took away.
        if (::fchmod(descriptor, like == nullptr ? 0600 : like->st_mode & 0600U) != 0) fail("chmod", path_, errno);
        if (like != nullptr && like->st_uid != ::geteuid() && ::fchown(descriptor, like->st_uid, like->st_gid) != 0) {
            fail("give to its owner", path_, errno);
        }
        write_all(descriptor, content, path_);
        if (::fsync(descriptor) != 0) fail("make durable", path_, errno);
    }

    fs::path path_;
};

/// Gives the file its name unless the name is taken. Returns 0 or an errno.
int name_without_replacing(const fs::path& from, const fs::path& to) {
    if (::link(from.c_str(), to.c_str()) == 0) return 0;
    if (errno != EPERM && errno != EOPNOTSUPP && errno != EMLINK) return errno;
    // A file system without hard links.
    return ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0 ? 0 : errno;
}

}  // namespace

std::string shell_word(const std::filesystem::path& path) {
    const std::string& text = path.string();
    constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@%=";
    if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
    std::string quoted = "'";
    for (const char letter : text) {
        if (letter == '\'') {
            quoted += "'\\''";
        } else {
            quoted += letter;
        }
    }
    return quoted += '\'';
}

std::string read_keyring_file(const std::filesystem::path& path, const SecretFileKind& kind) {
    const std::string noun(kind.noun);
    // Without O_NONBLOCK a FIFO of this name would hang the program.
    const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file.is_open() && (errno == ENOENT || errno == ENOTDIR)) {
        throw SetupError("there is no " + noun + " at " + path.string() + ": make one with " + std::string(kind.maker) +
                         " " + shell_word(path) + ", or name the one you have");
    }
    if (!file.is_open()) fail("open the " + noun, path, errno);
    struct stat status{};
    if (::fstat(file.get(), &status) != 0) fail("look at the " + noun, path, errno);
    check_is_private(status, path, noun);
    return read_all(file.get(), path, noun);
}

void create_keyring_file(const std::filesystem::path& path, std::string_view content, const SecretFileKind& kind) {
    const auto taken = [&]() {
        return SetupError(path.string() + " is already there and is left as it is: " + std::string(kind.why_kept));
    };
    struct stat status{};
    if (::lstat(path.c_str(), &status) == 0) throw taken();
    create_folders(folder_of(path));
    const TemporaryFile temporary(path, content, nullptr);
    const int error = name_without_replacing(temporary.path(), path);
    if (error == EEXIST) throw taken();
    if (error != 0) fail("make the " + std::string(kind.noun), path, error);
    sync_folder(folder_of(path));
}

void replace_keyring_file(const std::filesystem::path& path, std::string_view content,
                          const std::function<void(std::string_view)>& check) {
    // The file itself, not a symbolic link to it, is what must be replaced.
    std::error_code error;
    const fs::path target = fs::canonical(path, error);
    if (error) {
        throw SetupError("there is no keyring at " + path.string() + " to replace (" + error.message() +
                         "): make one with rowlock keys new --keyring " + shell_word(path));
    }
    const File folder(::open(folder_of(target).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder.is_open()) fail("open the folder", folder_of(target), errno);
    // On the folder, since the file is another one after each replacement. Released with the descriptor.
    while (::flock(folder.get(), LOCK_EX) != 0) {
        if (errno != EINTR) fail("lock the folder", folder_of(target), errno);
    }
    std::string old = read_keyring_file(target, keyring_file_kind);
    try {
        check(old);
    } catch (...) {
        wipe(old);
        throw;
    }
    wipe(old);
    struct stat status{};
    if (::stat(target.c_str(), &status) != 0) fail("look at the keyring", target, errno);
    const TemporaryFile temporary(target, content, &status);
    if (::rename(temporary.path().c_str(), target.c_str()) != 0) fail("replace the keyring", target, errno);
    sync_folder(folder_of(target));
}

}  // namespace rowlock
