// Files that only their owner may read, written all or not at all.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace rowlock {

/// What such a file is called in messages.
struct SecretFileKind {
    std::string_view noun;
    std::string_view maker;     ///< The command that makes one, up to the file's name.
    std::string_view why_kept;  ///< Why a standing one is not replaced, and what to do instead.
};
inline constexpr SecretFileKind keyring_file_kind{
    "keyring", "rowlock keys new --keyring",
    "its keys are the only way to verify what they signed; choose another name, or use rowlock keys rotate"};
inline constexpr SecretFileKind signing_key_file_kind{
    "signing key", "rowlock keys new --signing-key",
    "others pin its public half and would trust nothing that a new one signs; choose another name"};

/// The content of a regular file of at most 1 MiB with mode 0600 or 0400 that belongs to the effective user (root reads
/// everyone's). Symbolic links are followed; what is checked is the file that was opened. Throws SetupError.
[[nodiscard]] std::string read_keyring_file(const std::filesystem::path& path, const SecretFileKind& kind);

/// Makes a new file with mode 0600, and missing folders with 0700. On return file and name are on the disk. Throws
/// SetupError if anything of this name is there.
void create_keyring_file(const std::filesystem::path& path, std::string_view content, const SecretFileKind& kind);

/// Puts new content in the place of the old in one step; owner and mode stay. `check` is given the old content under a
/// lock that other callers of this function wait for, and may throw.
void replace_keyring_file(const std::filesystem::path& path, std::string_view content,
                          const std::function<void(std::string_view)>& check);

/// The path as one word of a shell, for messages that say what to type.
[[nodiscard]] std::string shell_word(const std::filesystem::path& path);

}  // namespace rowlock
