#include "cli/git_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

// A record separator before each commit, unit separators between its fields: neither occurs in a commit.
constexpr char record = '\x1e';
constexpr char unit = '\x1f';
constexpr const char* format = "--format=%x1e%H%x1f%an%x1f%aI%x1f%s%x1f";

struct Output {
    std::string text;
    int status = -1;
};

Output output_of(std::vector<std::string> words) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) throw InvalidInput("no pipe to git could be made");
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    pid_t child = 0;
    const int failed = posix_spawnp(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    Output output;
    if (failed == 0) {
        std::array<char, 65536> piece{};
        ssize_t length = 0;
        while ((length = read(ends[0], piece.data(), piece.size())) > 0 || (length < 0 && errno == EINTR)) {
            if (length > 0) output.text.append(piece.data(), static_cast<std::size_t>(length));
        }
        waitpid(child, &output.status, 0);
    }
    close(ends[0]);
    if (failed != 0) throw InvalidInput("git can't be started: install it (apt-get install git)");
    return output;
}

std::string_view take_until(std::string_view& text, char end) {
    const std::size_t at = text.find(end);
    const std::string_view taken = text.substr(0, at);
    text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
    return taken;
}

}  // namespace

std::vector<Commit> parse_git_log(std::string_view text) {
    std::vector<Commit> commits;
    take_until(text, record);
    while (!text.empty()) {
        std::string_view body = take_until(text, record);
        Commit commit;
        commit.hash = take_until(body, unit);
        commit.author = take_until(body, unit);
        commit.date = take_until(body, unit);
        commit.subject = take_until(body, unit);
        while (!body.empty()) {
            std::string_view file = take_until(body, '\0');
            if (file.starts_with('\n')) file.remove_prefix(1);
            if (!file.empty()) commit.files.emplace_back(file);
        }
        commits.push_back(std::move(commit));
    }
    return commits;
}

std::vector<Commit> read_git_log(const std::string& repository, std::size_t count_max) {
    // Reading a log runs nothing of the repository, so who owns the folder does not matter.
    const Output output = output_of({"git", "-c", "safe.directory=*", "-C", repository, "log", "--reverse", "-z",
                                     "--name-only", "--no-renames", fmt::format("--max-count={}", count_max), format});
    if (output.status != 0) {
        throw InvalidInput(
            fmt::format("{} is not a git repository with commits; name one with --repository DIR", repository));
    }
    return parse_git_log(output.text);
}

}  // namespace rowlock::cli
