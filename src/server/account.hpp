// Under whose name the private server runs, since PostgreSQL refuses root.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace rowlock {

/// An account of the system. `switched` says that this process is root and must become it first.
struct Account {
    std::string name;
    unsigned user = 0;
    unsigned group = 0;
    bool switched = false;
};

/// The account that this process runs as, without its name.
[[nodiscard]] Account own_account();

/// The account for a server whose folder belongs to user `folder_owner` (nothing if there is no folder yet).
/// Anyone but root: oneself. Root: the folder's owner if that is not root, else `postgres`, else `nobody`.
/// Throws SetupError if the folder is somebody else's, if there is no such account or it has no name, or if this
/// process is root but may not become another (a container without the right to).
[[nodiscard]] Account server_account(const std::filesystem::path& folder, std::optional<unsigned> folder_owner);

/// Turns this process into the account for good. Only for a child between fork and exec: it allocates nothing.
/// False, with errno set, if that can't be.
[[nodiscard]] bool become(const Account& account) noexcept;

/// The name of a user, or its number if it has no name.
[[nodiscard]] std::string user_name(unsigned user);

/// The first of the folders above `folder` that the account can't enter. `folder` is absolute and need not exist.
[[nodiscard]] std::optional<std::filesystem::path> first_closed_parent(const Account& account,
                                                                       const std::filesystem::path& folder);

}  // namespace rowlock
