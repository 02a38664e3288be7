#include "server/cluster_processes.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <fstream>
#include <iterator>
#include <system_error>

#include "rowlock/error.hpp"
#include "server/bounded_wait.hpp"

namespace rowlock {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds orphan_wait_max{10};

fs::path process_folder(int pid) {
    return fs::path("/proc") / std::to_string(pid);
}

/// A zombie has no program and no working folder, so it is no server process.
bool is_server_process(int pid, const struct stat& data) {
    std::error_code fault;
    const std::string program = fs::read_symlink(process_folder(pid) / "exe", fault).filename().string();
    // The system adds " (deleted)" when an upgrade has replaced the program under a running server.
    if (fault || !(program == "postgres" || program == "postgres (deleted)")) return false;
    struct stat working{};
    return ::stat((process_folder(pid) / "cwd").c_str(), &working) == 0 && working.st_dev == data.st_dev &&
           working.st_ino == data.st_ino;
}

/// Backends show "postgres: …" where the postmaster still shows its arguments.
bool is_backend(int pid) {
    return content_of(process_folder(pid) / "cmdline").starts_with("postgres: ");
}

}  // namespace

std::string content_of(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::optional<PostmasterFile> living_postmaster(const fs::path& data) {
    struct stat folder{};
    if (::stat(data.c_str(), &folder) != 0) return std::nullopt;
    const auto file = parse_postmaster_file(content_of(data / "postmaster.pid"));
    if (!file || !is_server_process(file->pid, folder) || is_backend(file->pid)) return std::nullopt;
    return file;
}

bool is_alive(int pid) {
    const std::string text = content_of(process_folder(pid) / "stat");
    // "pid (name) state …", where the name may hold anything.
    const std::size_t name_end = text.rfind(") ");
    if (name_end == std::string::npos || name_end + 2 >= text.size()) return false;
    return text[name_end + 2] != 'Z' && text[name_end + 2] != 'X';
}

std::vector<int> processes_in(const fs::path& data) {
    std::vector<int> found;
    struct stat folder{};
    if (::stat(data.c_str(), &folder) != 0) return found;
    std::error_code fault;
    for (fs::directory_iterator entry("/proc", fault), end; !fault && entry != end; entry.increment(fault)) {
        const std::string name = entry->path().filename().string();
        int pid = 0;
        const auto [rest, wrong] = std::from_chars(name.data(), name.data() + name.size(), pid);
        if (wrong != std::errc() || rest != name.data() + name.size()) continue;
        if (is_server_process(pid, folder)) found.push_back(pid);
    }
    return found;
}

std::size_t end_orphans(const fs::path& data) {
    std::size_t most = 0;
    const bool all_gone = wait_until(orphan_wait_max, [&] {
        const auto orphans = processes_in(data);
        for (const int pid : orphans) kill(pid, SIGKILL);
        most = std::max(most, orphans.size());
        return orphans.empty();
    });
    if (!all_gone) {
        throw SetupError(
            fmt::format("processes of a dead server in {} do not end although killed: is its disk still "
                        "there?",
                        data.string()));
    }
    return most;
}

}  // namespace rowlock
