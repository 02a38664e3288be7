// Files that only their owner may read, written all or not at all.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace rowlock {

/// The content of a regular file of at most 1 MiB with mode 0600 or 0400 that belongs to the effective user (root reads
/// everyone's). Symbolic links are followed; what is checked is the file that was opened. Throws SetupError.
[[nodiscard]] std::string read_keyring_file(const std::filesystem::path& path);

/// Makes a new file with mode 0600, and missing folders with 0700. On return file and name are on the disk. Throws
/// SetupError if anything of this name is there.
void create_keyring_file(const std::filesystem::path& path, std::string_view content);

/// Puts new content in the place of the old in one step; owner and mode stay. `check` is given the old content under a
/// lock that other callers of this function wait for, and may throw.
void replace_keyring_file(const std::filesystem::path& path, std::string_view content,
                          const std::function<void(std::string_view)>& check);

/// The path as one word of a shell, for messages that say what to type.
[[nodiscard]] std::string shell_word(const std::filesystem::path& path);

}  // namespace rowlock
