// The one folder that holds all of a private server, and the lock that serialises what is done to it.
#pragma once

#include <filesystem>
#include <optional>

#include "server/account.hpp"
#include "server/child_process.hpp"

namespace rowlock {

/// The names in the folder.
struct ServerFolder {
    std::filesystem::path path;  ///< Absolute, with no symbolic link in it.

    [[nodiscard]] std::filesystem::path data() const { return path / "pgdata"; }
    [[nodiscard]] std::filesystem::path log() const { return path / "server.log"; }
    [[nodiscard]] std::filesystem::path lock() const { return path / "lock"; }
    /// By this file a folder is known as ours; nothing else is ever removed.
    [[nodiscard]] std::filesystem::path marker() const { return path / "rowlock.server"; }
};

/// `unused`: empty, or as a creation left it that was killed at its start.
enum class FolderKind { absent, unused, ours, foreign };

/// Throws SetupError if the folder can't be looked into.
[[nodiscard]] FolderKind kind_of(const ServerFolder& folder);

/// The user that the folder belongs to; nothing if there is no folder.
[[nodiscard]] std::optional<unsigned> owner_of(const ServerFolder& folder);

/// Held by one process at a time, from creation to the end of the object or of the process, however that ends.
class FolderLock {
  public:
    /// Nothing if the folder is not there (any more). `account` gets the lock's file if this process is root.
    /// Throws SetupError if the lock can't be had within its limit.
    [[nodiscard]] static std::optional<FolderLock> acquire(const ServerFolder& folder, const Account* account);

    /// For a child that must keep the lock until its own end.
    [[nodiscard]] int descriptor() const noexcept { return file_.raw(); }

  private:
    explicit FolderLock(Descriptor file) noexcept : file_(std::move(file)) {}
    Descriptor file_;
};

/// Makes the folder and its few files if need be, gives it to the account, and locks it. Can be killed at any point
/// and run again.
/// Throws SetupError if the folder holds something else, can't be made, or can't be entered by the account.
[[nodiscard]] FolderLock prepare_folder(const ServerFolder& folder, const Account& account);

/// Removes what an interrupted creation or removal of data left behind. For the holder of the lock.
void remove_leftovers(const ServerFolder& folder);

/// Removes the folder with all that is in it, in an order that a kill at any point leaves fit for a new start or a
/// new removal. For the holder of the lock. Throws SetupError if something can't be removed.
void remove_folder(const ServerFolder& folder);

}  // namespace rowlock
