#include "server/server_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "rowlock/error.hpp"
#include "server/bounded_wait.hpp"
#include "server/server_rules.hpp"

namespace rowlock {

namespace {

namespace fs = std::filesystem;

/// Long enough for another command's creation and crash recovery.
constexpr std::chrono::seconds lock_wait_max{180};
/// How often a folder may vanish under our hands (others destroying it) before this gives up.
constexpr int vanishings_max = 100;
constexpr std::string_view leftover_prefix = "pgdata.";
constexpr std::string_view marker_text =
    "All in this folder belongs to rowlock's private server; `rowlock server destroy` removes it.\n";

[[noreturn]] void throw_fault(std::string_view what, const fs::path& where, const std::error_code& fault) {
    throw SetupError(fmt::format("the private server: {} {}: {}; name another folder with --data", what, where.string(),
                                 fault.message()));
}

[[noreturn]] void throw_errno(std::string_view what, const fs::path& where) {
    throw_fault(what, where, {errno, std::generic_category()});
}

[[noreturn]] void throw_foreign(const ServerFolder& folder) {
    throw SetupError(
        fmt::format("{} holds something that is not rowlock's private server (it has no file {}): name "
                    "another folder with --data",
                    folder.path.string(), folder.marker().filename().string()));
}

/// The folders above the server's: open to all when root makes them, since the server's account must pass.
void make_parents(const fs::path& folder) {
    const mode_t mode = geteuid() == 0 ? S_IRWXU | S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH : S_IRWXU;
    fs::path parent;
    for (const auto& step : folder.parent_path()) {
        parent /= step;
        if (mkdir(parent.c_str(), mode) == 0 || errno == EEXIST) continue;
        struct stat present{};
        if (const int reason = errno; ::stat(parent.c_str(), &present) != 0) {
            errno = reason;
            throw_errno("cannot make the folder", parent);
        }
    }
}

/// The file appears whole or not at all, and a file that is there is left alone: a person may have changed it.
void write_once(const fs::path& file, std::string_view content, const Account& account) {
    struct stat present{};
    if (lstat(file.c_str(), &present) == 0) return;
    const fs::path draft = file.string() + ".new";
    unlink(draft.c_str());
    const Descriptor output(
        open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!output.open()) throw_errno("cannot write", file);
    if (write(output.raw(), content.data(), content.size()) != static_cast<ssize_t>(content.size()) ||
        fsync(output.raw()) != 0 || (account.switched && fchown(output.raw(), account.user, account.group) != 0) ||
        rename(draft.c_str(), file.c_str()) != 0) {
        throw_errno("cannot write", file);
    }
}

/// The folder is given away last: until then it is root's alone, so nobody can put a link where root is about to write.
void fill_folder(const ServerFolder& folder, const Account& account) {
    write_once(folder.marker(), marker_text, account);
    write_once(folder.path / "pg_hba.conf", host_based_authentication(), account);
    write_once(folder.path / "pg_ident.conf", identity_map(account.name), account);
    write_once(folder.path / "postgresql.conf", server_configuration(), account);
    if (chmod(folder.path.c_str(), S_IRWXU) != 0) throw_errno("cannot close to others the folder", folder.path);
    if (account.switched && lchown(folder.path.c_str(), account.user, account.group) != 0) {
        throw_errno("cannot give to the server's account the folder", folder.path);
    }
}

void check_parents(const ServerFolder& folder, const Account& account) {
    const auto closed = first_closed_parent(account, folder.path);
    if (!closed) return;
    throw SetupError(
        fmt::format("the private server in {} runs as '{}', who can't enter {}: name a folder with --data "
                    "that it can reach, such as /var/lib/rowlock, or open that one with: chmod a+x {}",
                    folder.path.string(), account.name, closed->string(), closed->string()));
}

/// The first file that is none of those that a killed creation leaves behind.
std::optional<fs::path> first_stranger(const ServerFolder& folder, std::error_code& fault) {
    const fs::path draft = folder.marker().filename().string() + ".new";
    for (fs::directory_iterator entry(folder.path, fault), end; !fault && entry != end; entry.increment(fault)) {
        const fs::path name = entry->path().filename();
        if (name != folder.lock().filename() && name != draft) return entry->path();
    }
    return std::nullopt;
}

/// Nothing if the folder changed while it was looked at.
std::optional<FolderKind> kind_at_once(const ServerFolder& folder) {
    struct stat present{};
    if (lstat(folder.path.c_str(), &present) != 0) {
        if (errno == ENOENT) return FolderKind::absent;
        throw_errno("cannot look at", folder.path);
    }
    if (!S_ISDIR(present.st_mode)) return FolderKind::foreign;
    if (lstat(folder.marker().c_str(), &present) == 0) return FolderKind::ours;
    std::error_code fault;
    const auto stranger = first_stranger(folder, fault);
    if (fault == std::errc::no_such_file_or_directory) return FolderKind::absent;
    if (fault) {
        const auto owner = owner_of(folder);
        if (owner && *owner != geteuid() && geteuid() != 0) (void)server_account(folder.path, owner);
        throw_fault("cannot look into", folder.path, fault);
    }
    if (!stranger) return FolderKind::unused;
    // Another command may be making or removing the folder: the marker is the first file to come and the last to go, so
    // only a stranger that stays while there is still no marker is one.
    if (lstat(stranger->c_str(), &present) == 0 && lstat(folder.marker().c_str(), &present) != 0) {
        return FolderKind::foreign;
    }
    return std::nullopt;
}

}  // namespace

FolderKind kind_of(const ServerFolder& folder) {
    constexpr int looks_max = 100;
    for (int look = 0; look < looks_max; ++look) {
        if (const auto kind = kind_at_once(folder)) return *kind;
    }
    throw SetupError(fmt::format(
        "the private server's folder {} is made and removed again and again by another command", folder.path.string()));
}

std::optional<unsigned> owner_of(const ServerFolder& folder) {
    struct stat present{};
    if (lstat(folder.path.c_str(), &present) != 0) return std::nullopt;
    return present.st_uid;
}

std::optional<FolderLock> FolderLock::acquire(const ServerFolder& folder, const Account* account) {
    const auto is_current = [&](const Descriptor& file) {
        struct stat held{};
        struct stat named{};
        return fstat(file.raw(), &held) == 0 && lstat(folder.lock().c_str(), &named) == 0 &&
               held.st_dev == named.st_dev && held.st_ino == named.st_ino;
    };
    Descriptor file;
    bool vanished = false;
    const bool held = wait_until(lock_wait_max, [&] {
        if (!file.open()) {
            file =
                Descriptor(open(folder.lock().c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
            vanished = !file.open() && errno == ENOENT;
            if (vanished) return true;
            if (!file.open()) throw_errno("cannot open the lock", folder.lock());
        }
        if (flock(file.raw(), LOCK_EX | LOCK_NB) != 0) return false;
        if (is_current(file)) return true;
        // Whoever held it before has removed the folder, lock and all: this is a lock on nothing.
        file = Descriptor();
        return false;
    });
    if (vanished) return std::nullopt;
    if (!held) {
        throw SetupError(
            fmt::format("another command has been busy with the private server in {} for {} s: wait for "
                        "it, or stop it",
                        folder.path.string(), lock_wait_max.count()));
    }
    if (account != nullptr && account->switched && fchown(file.raw(), account->user, account->group) != 0) {
        throw_errno("cannot give to the server's account the file", folder.lock());
    }
    return FolderLock(std::move(file));
}

FolderLock prepare_folder(const ServerFolder& folder, const Account& account) {
    for (int attempt = 0; attempt < vanishings_max; ++attempt) {
        make_parents(folder.path);
        check_parents(folder, account);
        if (mkdir(folder.path.c_str(), S_IRWXU) != 0 && errno != EEXIST)
            throw_errno("cannot make the folder", folder.path);
        if (kind_of(folder) == FolderKind::foreign) throw_foreign(folder);
        auto lock = FolderLock::acquire(folder, &account);
        if (!lock) continue;
        if (kind_of(folder) == FolderKind::foreign) throw_foreign(folder);
        fill_folder(folder, account);
        return std::move(*lock);
    }
    throw SetupError(fmt::format("the private server's folder {} is removed again and again by another command",
                                 folder.path.string()));
}

void remove_leftovers(const ServerFolder& folder) {
    std::error_code fault;
    for (fs::directory_iterator entry(folder.path, fault), end; !fault && entry != end; entry.increment(fault)) {
        if (!entry->path().filename().string().starts_with(leftover_prefix)) continue;
        std::error_code refused;
        fs::remove_all(entry->path(), refused);
        if (refused) throw_fault("cannot remove", entry->path(), refused);
    }
    if (fault) throw_fault("cannot look into", folder.path, fault);
}

void remove_folder(const ServerFolder& folder) {
    std::error_code fault;
    // At one stroke, so that a kill from here on leaves no half of a cluster that looks like a whole one.
    const fs::path retired = folder.path / (std::string(leftover_prefix) + "removed");
    remove_leftovers(folder);
    fs::rename(folder.data(), retired, fault);
    for (const auto& entry : fs::directory_iterator(folder.path, fault)) {
        if (entry.path() == folder.lock() || entry.path() == folder.marker()) continue;
        std::error_code refused;
        fs::remove_all(entry.path(), refused);
        if (refused) throw_fault("cannot remove", entry.path(), refused);
    }
    if (fault) throw_fault("cannot look into", folder.path, fault);
    fs::remove(folder.marker(), fault);
    if (!fault) fs::remove(folder.lock(), fault);
    if (fault) throw_fault("cannot remove the files of", folder.path, fault);
    // Not empty: another command was waiting for the lock and is making the folder anew.
    if (rmdir(folder.path.c_str()) != 0 && errno != ENOTEMPTY && errno != EEXIST && errno != ENOENT) {
        throw_errno("cannot remove the folder", folder.path);
    }
}

}  // namespace rowlock
