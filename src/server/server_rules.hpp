// What the private server decides from plain values: nothing here opens a file or asks a process.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rowlock {

/// What a postmaster says of itself in the last line of postmaster.pid; `unknown` for a file not yet fully written.
enum class PostmasterState { unknown, starting, stopping, ready, standby };

struct PostmasterFile {
    int pid = 0;
    PostmasterState state = PostmasterState::unknown;
};

/// Nothing for a text that names no process above zero, such as that of a single-user server, which is negative.
/// Source: https://github.com/postgres/postgres/blob/REL_15_STABLE/src/include/utils/pidfile.h
[[nodiscard]] std::optional<PostmasterFile> parse_postmaster_file(std::string_view text);

/// The major version in a PG_VERSION file ("15"), a folder's name ("15") or what `postgres --version` prints.
[[nodiscard]] std::optional<int> parse_major_version(std::string_view text);

/// A folder that holds `initdb` and `postgres`, both of one major version.
struct Installation {
    int major = 0;
    std::filesystem::path binaries;
};

/// The installation of major version `wanted`, or the newest if none is wanted. Of equals the first.
[[nodiscard]] std::optional<Installation> choose_installation(std::span<const Installation> found,
                                                              std::optional<int> wanted);

/// Why no server can live in this (absolute) folder: the path of its socket is too long, or holds what libpq or the
/// server would read as something else. Nothing if it can.
[[nodiscard]] std::optional<std::string> folder_objection(const std::filesystem::path& folder);

/// The folder for the private server's state. `state_home` is XDG_STATE_HOME, which counts only when absolute, as its
/// specification says; both may be empty. Root without it gets /var/lib/rowlock, because the account that the server
/// then runs under can't enter root's home. Nothing if neither names a folder.
[[nodiscard]] std::optional<std::filesystem::path> server_folder_for(std::string_view state_home, std::string_view home,
                                                                     bool root);

/// A keyword string of libpq. The port is named because it is part of the socket's name, and PGPORT would change it.
[[nodiscard]] std::string connection_string(const std::filesystem::path& folder, std::string_view database);

/// The role is let in by the kernel's word on who is calling; roles made later need a password.
[[nodiscard]] std::string host_based_authentication();

/// Which accounts may come in as the role of the server: its own, and root, who could become it anyway.
[[nodiscard]] std::string identity_map(std::string_view account);

/// What a person may change; what keeps others out is on the command line, where no file can change it.
[[nodiscard]] std::string server_configuration();

using Settings = std::vector<std::pair<std::string, std::string>>;

/// The arguments of `postgres`, without its own name. `settings` come last and so win, except over what keeps others
/// out: no TCP, and the socket in `folder`, for its owner alone.
[[nodiscard]] std::vector<std::string> server_arguments(const std::filesystem::path& folder, bool throwaway,
                                                        const Settings& settings);

/// The line that says why a program gave up: the last FATAL, PANIC or ERROR of its output, else the last line.
[[nodiscard]] std::string last_complaint(std::string_view output);

inline constexpr std::string_view server_role = "rowlock";
inline constexpr int oldest_major_version = 15;

}  // namespace rowlock
