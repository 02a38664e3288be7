#include "race/throwaway_cluster.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <system_error>

#include "race/signals.hpp"
#include "rowlock/error.hpp"
#include "server/cluster_processes.hpp"

namespace rowlock::race {

namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t memory_wanted = 512U << 20U;

/// Tables that live for a millisecond are best kept where no disk is: truncating a file of them costs more than all
/// the SQL of an execution.
fs::path base_folder() {
    fs::path memory = "/dev/shm";
    struct statvfs room{};
    const bool fits = statvfs(memory.c_str(), &room) == 0 && room.f_bavail * room.f_frsize > memory_wanted;
    if (fits && access(memory.c_str(), W_OK | X_OK) == 0) return memory;
    std::error_code ignored;
    const fs::path temporary = fs::temp_directory_path(ignored);
    return ignored ? fs::path("/tmp") : temporary;
}

std::string prefix() {
    return fmt::format("rowlock-race-{}", geteuid());
}

Descriptor open_lock(const fs::path& path) {
    return Descriptor(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
}

ServerOptions options_in(const fs::path& folder) {
    return {.place = {folder},
            .settings = {{"autovacuum", "off"},
                         {"jit", "off"},
                         {"shared_buffers", "32MB"},
                         {"max_connections", "100"},
                         {"max_prepared_transactions", "20"},
                         {"wal_level", "minimal"},
                         {"max_wal_senders", "0"},
                         {"bgwriter_lru_maxpages", "0"},
                         {"checkpoint_timeout", "1h"},
                         {"max_wal_size", "1GB"},
                         {"logging_collector", "off"},
                         {"log_min_messages", "fatal"}},
            .throwaway = true};
}

/// A stopped backend would not hear that it is to end.
void destroy(const fs::path& folder) {
    std::error_code ignored;
    if (!fs::exists(folder, ignored)) return;
    for (const int pid : processes_in(folder / "pgdata")) resume_process(pid);
    PrivateServer(options_in(folder)).destroy();
    fs::remove_all(folder, ignored);
}

/// A run holds the lock of its folder as long as it lives, however it ends.
void remove_leftovers(const fs::path& base) {
    std::error_code ignored;
    const std::string wanted = prefix() + ".";
    std::vector<fs::path> locks;
    for (const auto& entry : fs::directory_iterator(base, ignored)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with(wanted) && name.ends_with(".lock")) locks.push_back(entry.path());
    }
    for (const fs::path& path : locks) {
        const Descriptor lock = open_lock(path);
        if (!lock.open() || flock(lock.raw(), LOCK_EX | LOCK_NB) != 0) continue;
        destroy(path.parent_path() / path.stem());
        fs::remove(path, ignored);
    }
}

/// initdb takes half a second, a copy of what it made a tenth of that.
fs::path ensure_template(const fs::path& base) {
    fs::path folder = base / (prefix() + "-template");
    std::error_code ignored;
    const fs::path whole = folder / "whole";
    if (fs::exists(whole, ignored)) return folder;
    destroy(folder);
    PrivateServer server(options_in(folder));
    server.ensure_running();
    server.stop();
    const Descriptor mark = open_lock(whole);
    if (!mark.open()) throw SetupError(fmt::format("{} can't be written", whole.string()));
    return folder;
}

/// Owners and modes go along: the server insists on both.
void copy_folder(const fs::path& from, const fs::path& to) {
    const CommandResult result =
        run_as(own_account(), {.arguments = {"/bin/cp", "-a", from.string(), to.string()}, .input = {}},
               std::chrono::seconds(60));
    if (result.exit_code != 0) {
        throw SetupError(fmt::format("the checker's server can't be copied to {}: {}", to.string(), result.output));
    }
    std::error_code ignored;
    fs::remove(to / "whole", ignored);
}

}  // namespace

ThrowawayCluster::ThrowawayCluster() {
    const fs::path base = base_folder();
    const Descriptor all = open_lock(base / (prefix() + ".lock"));
    if (!all.open() || flock(all.raw(), LOCK_EX) != 0) {
        throw SetupError(fmt::format("{} can't be written", (base / (prefix() + ".lock")).string()));
    }
    remove_leftovers(base);
    folder_ = base / fmt::format("{}.{}", prefix(), getpid());
    const fs::path lock = folder_.string() + ".lock";
    lock_ = open_lock(lock);
    if (!lock_.open() || flock(lock_.raw(), LOCK_EX | LOCK_NB) != 0) {
        throw SetupError(fmt::format("{} can't be written", lock.string()));
    }
    copy_folder(ensure_template(base), folder_);
    server_ = std::make_unique<PrivateServer>(options_in(folder_));
    server_->ensure_running();
}

ThrowawayCluster::~ThrowawayCluster() {
    try {
        destroy(folder_);
    } catch (const Error&) {
        return;  // the next start removes it: its lock stays behind
    }
    std::error_code ignored;
    fs::remove(folder_.string() + ".lock", ignored);
}

std::string ThrowawayCluster::connection() const {
    return server_->connection("postgres");
}

}  // namespace rowlock::race
