// The commits of a git repository, as real input for the demo.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rowlock::cli {

struct Commit {
    std::string hash;
    std::string author;
    std::string date;  ///< ISO 8601.
    std::string subject;
    std::vector<std::string> files;
};

/// Oldest first, at most the newest `count_max`. Throws InvalidInput if `repository` is no git repository or git is not
/// installed.
[[nodiscard]] std::vector<Commit> read_git_log(const std::string& repository, std::size_t count_max);

/// Reads what `git log -z --name-only --format=<git_log_format>` printed.
[[nodiscard]] std::vector<Commit> parse_git_log(std::string_view text);

}  // namespace rowlock::cli
