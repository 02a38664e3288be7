// Which processes of this machine belong to one cluster. Only these are ever signalled.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "server/server_rules.hpp"

namespace rowlock {

/// The content of a file, or an empty text if it can't be read.
[[nodiscard]] std::string content_of(const std::filesystem::path& file);

/// The postmaster that postmaster.pid in `data` names, if that process is there and works in `data`. A number left by
/// a server long dead, which the system may have given to a process of somebody else, is nothing.
[[nodiscard]] std::optional<PostmasterFile> living_postmaster(const std::filesystem::path& data);

/// Whether the process is there and not a zombie.
[[nodiscard]] bool is_alive(int pid);

/// Every PostgreSQL process, postmaster or backend, whose working folder is `data`.
[[nodiscard]] std::vector<int> processes_in(const std::filesystem::path& data);

/// Ends what a dead postmaster left behind. A backend busy with a long computation does not notice that its postmaster
/// died, and as long as it holds the shared memory no new server may start. They are killed at once: a new server
/// recovers from that as from the postmaster's own death, and what they had not committed was lost with it already.
/// Only for a caller that holds the folder's lock and knows that no postmaster lives. Returns how many there were.
/// Throws SetupError if one is still there at the limit.
std::size_t end_orphans(const std::filesystem::path& data);

}  // namespace rowlock
