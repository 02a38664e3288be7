#include "server/private_server.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <system_error>

#include "server/account.hpp"
#include "server/bounded_wait.hpp"
#include "server/child_process.hpp"
#include "server/cluster_processes.hpp"
#include "server/installation.hpp"
#include "server/server_folder.hpp"
#include "server/server_rules.hpp"

namespace rowlock {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds creation_wait_max{120};
/// Crash recovery replays what was written since the last checkpoint: at most some minutes' worth.
constexpr std::chrono::seconds ready_wait_max{120};
constexpr std::chrono::seconds fast_stop_wait_max{30};
constexpr std::chrono::seconds immediate_stop_wait_max{15};
constexpr std::uintmax_t log_size_max = 16U << 20U;

std::string variable(const char* name) {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing here sets variables
    return value == nullptr ? "" : value;
}

/// Fails with the program's own last words.
void run_or_throw(const Account& account, const Command& command, std::string_view what, const fs::path& where) {
    const CommandResult result = run_as(account, command, creation_wait_max);
    if (result.exit_code == 0) return;
    throw SetupError(fmt::format("{} in {} failed (exit code {} of {}): {}", what, where.string(), result.exit_code,
                                 command.arguments[0], last_complaint(result.output)));
}

/// Brings all that was written to disk, before a name says that it is whole. One flush of the file system instead of
/// one for each of initdb's thousand files, which takes seconds where a disk is busy.
void flush_file_system(const fs::path& folder) {
    const Descriptor directory(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory.open() && syncfs(directory.raw()) == 0) return;
    throw SetupError(fmt::format("the private server: cannot flush {} to disk: {}", folder.string(),
                                 std::generic_category().message(errno)));
}

/// Makes the whole cluster under another name and renames it at the end, so what is called pgdata is never half-made.
/// The programs share the lock: if this process is killed, the next command waits for them instead of racing them.
void create_cluster(const ServerFolder& folder, const Account& account, const FolderLock& lock, bool throwaway) {
    const fs::path draft = folder.path / "pgdata.new";
    const Installation installation = find_installation(account, std::nullopt);
    Command command{.arguments = {(installation.binaries / "initdb").string(), "-D", draft.string(), "-U",
                                  std::string(server_role), "-E", "UTF8", "--locale=C.UTF-8", "--auth-local=peer",
                                  "--auth-host=reject", "--no-sync", "--no-instructions"},
                    .input = {},
                    .kept_descriptor = lock.descriptor()};
    run_or_throw(account, command, "making the private server", folder.path);
    const std::string create_database = fmt::format("CREATE DATABASE {};\n", server_role);
    command.arguments = {(installation.binaries / "postgres").string(), "--single", "-D", draft.string()};
    for (const char* setting : {"exit_on_error=on", "fsync=off"}) {
        command.arguments.insert(command.arguments.end(), {"-c", setting});
    }
    command.arguments.emplace_back("postgres");
    command.input = create_database;
    run_or_throw(account, command, "making the private server's database", folder.path);
    if (!throwaway) flush_file_system(draft);
    std::error_code fault;
    fs::rename(draft, folder.data(), fault);
    if (fault) {
        throw SetupError(fmt::format("the private server: cannot rename {}: {}", draft.string(), fault.message()));
    }
    if (!throwaway) flush_file_system(folder.path);
}

/// PostgreSQL believes any process that bears the number in an old pid file. It is known by now that none is ours, so
/// the files that only name a number go. postmaster.pid stays if its process is gone: it also names the shared memory,
/// which the new server then checks.
void remove_stale_files(const ServerFolder& folder) {
    std::error_code ignored;
    fs::remove(folder.path / ".s.PGSQL.5432", ignored);
    fs::remove(folder.path / ".s.PGSQL.5432.lock", ignored);
    const fs::path pid_file = folder.data() / "postmaster.pid";
    const auto stale = parse_postmaster_file(content_of(pid_file));
    if (!stale || kill(stale->pid, 0) == 0 || errno == EPERM) fs::remove(pid_file, ignored);
}

std::uintmax_t log_size(const ServerFolder& folder) {
    std::error_code fault;
    const std::uintmax_t size = fs::file_size(folder.log(), fault);
    return fault ? 0 : size;
}

/// Waits for the postmaster `pid`. False: it ended. Throws SetupError at the limit, and leaves it running.
bool wait_until_ready(const ServerFolder& folder, int pid) {
    bool ended = false;
    const bool answered = wait_until(ready_wait_max, [&] {
        ended = !is_alive(pid);
        const auto postmaster = living_postmaster(folder.data());
        return ended || (postmaster && postmaster->pid == pid && postmaster->state == PostmasterState::ready);
    });
    if (!answered) {
        throw SetupError(
            fmt::format("the private server (process {}) is not ready after {} s and goes on starting; it "
                        "may be recovering from a crash: run the same again, or look into {}",
                        pid, ready_wait_max.count(), folder.log().string()));
    }
    return !ended;
}

void start_cluster(const ServerFolder& folder, const Account& account, const ServerOptions& options) {
    const auto major = parse_major_version(content_of(folder.data() / "PG_VERSION"));
    if (!major) {
        throw SetupError(
            fmt::format("{} has no readable PG_VERSION, so it is no cluster: restore it, or start afresh "
                        "with `rowlock server destroy`",
                        folder.data().string()));
    }
    const Installation installation = find_installation(account, major);
    end_orphans(folder.data());
    remove_stale_files(folder);
    std::error_code ignored;
    if (log_size(folder) > log_size_max) fs::rename(folder.log(), folder.path / "server.log.old", ignored);
    const std::uintmax_t log_start = log_size(folder);
    std::vector<std::string> arguments{(installation.binaries / "postgres").string()};
    for (auto& argument : server_arguments(folder.path, options.throwaway, options.settings)) {
        arguments.push_back(std::move(argument));
    }
    const int pid = start_detached(account, arguments, folder.log());
    if (wait_until_ready(folder, pid)) return;
    std::string words = content_of(folder.log());
    words.erase(0, std::min<std::size_t>(words.size(), log_start));
    throw SetupError(fmt::format("the private server in {} did not start: {} (more in {})", folder.path.string(),
                                 last_complaint(words), folder.log().string()));
}

/// Down or killed, in that order; true if there was anything to end. For the holder of the lock.
bool stop_cluster(const ServerFolder& folder) {
    const auto postmaster = living_postmaster(folder.data());
    if (!postmaster) return end_orphans(folder.data()) > 0;
    // Not "no pid file": the postmaster removes that a little before its end.
    const auto gone = [&] { return !is_alive(postmaster->pid); };
    kill(postmaster->pid, SIGINT);
    if (wait_until(fast_stop_wait_max, gone)) return true;
    // What it still had in memory comes back from its log at the next start.
    kill(postmaster->pid, SIGQUIT);
    if (wait_until(immediate_stop_wait_max, gone)) return true;
    throw SetupError(fmt::format("the private server in {} (process {}) does not stop: look into {}",
                                 folder.path.string(), postmaster->pid, folder.log().string()));
}

ServerFolder folder_of(const ServerOptions& options) {
    return {options.place.directory};
}

}  // namespace

ServerPlace default_server_place() {
    const auto folder = server_folder_for(variable("XDG_STATE_HOME"), variable("HOME"), geteuid() == 0);
    if (!folder) {
        throw SetupError(
            "no folder is known for the private server: neither XDG_STATE_HOME nor HOME is set to an "
            "absolute path; name a folder with --data");
    }
    return {*folder};
}

PrivateServer::PrivateServer(ServerOptions options) : options_(std::move(options)) {
    std::error_code fault;
    fs::path folder = fs::weakly_canonical(fs::absolute(options_.place.directory, fault), fault);
    if (fault || options_.place.directory.empty()) {
        throw SetupError(fmt::format("the folder '{}' can't be used for the private server: {}",
                                     options_.place.directory.string(), fault ? fault.message() : "no name"));
    }
    if (!folder.has_filename()) folder = folder.parent_path();
    if (const auto objection = folder_objection(folder)) {
        throw SetupError(
            fmt::format("the folder {} can't be used for the private server, since {}; name another one "
                        "with --data",
                        folder.string(), *objection));
    }
    options_.place.directory = std::move(folder);
}

ServerStatus PrivateServer::ensure_running() {
    if (ServerStatus present = status(); present.running) return present;
    const ServerFolder folder = folder_of(options_);
    const Account account = server_account(folder.path, owner_of(folder));
    const FolderLock lock = prepare_folder(folder, account);
    bool created = false;
    bool started = false;
    // Another command may have started or be stopping it; one that is on its way down is waited for, then replaced.
    const auto postmaster = living_postmaster(folder.data());
    if (!postmaster || !wait_until_ready(folder, postmaster->pid)) {
        remove_leftovers(folder);
        std::error_code unseen;
        created = !fs::exists(folder.data(), unseen);
        if (created) create_cluster(folder, account, lock, options_.throwaway);
        start_cluster(folder, account, options_);
        started = true;
    }
    ServerStatus result = status();
    result.created = created;
    result.started = started;
    return result;
}

ServerStatus PrivateServer::status() const {
    const ServerFolder folder = folder_of(options_);
    ServerStatus result;
    result.directory = folder.path;
    result.connection = connection(server_role);
    if (kind_of(folder) != FolderKind::ours) return result;
    const auto major = parse_major_version(content_of(folder.data() / "PG_VERSION"));
    result.exists = major.has_value();
    if (major) result.version = std::to_string(*major);
    if (const auto postmaster = living_postmaster(folder.data())) {
        result.pid = postmaster->pid;
        result.running = postmaster->state == PostmasterState::ready;
    }
    return result;
}

bool PrivateServer::stop() {
    const ServerFolder folder = folder_of(options_);
    if (kind_of(folder) != FolderKind::ours) return false;
    const auto lock = FolderLock::acquire(folder, nullptr);
    return lock && stop_cluster(folder);
}

bool PrivateServer::kill_immediately() {
    const ServerFolder folder = folder_of(options_);
    const auto postmaster = living_postmaster(folder.data());
    if (!postmaster) return false;
    kill(postmaster->pid, SIGKILL);
    if (!wait_until(immediate_stop_wait_max, [&] { return !is_alive(postmaster->pid); })) {
        throw SetupError(fmt::format("the private server's process {} does not end although killed", postmaster->pid));
    }
    return true;
}

bool PrivateServer::destroy() {
    const ServerFolder folder = folder_of(options_);
    if (kind_of(folder) == FolderKind::absent) return false;
    if (kind_of(folder) == FolderKind::foreign) {
        throw SetupError(
            fmt::format("{} is not rowlock's private server (it has no file {}), so nothing in it was "
                        "removed",
                        folder.path.string(), folder.marker().filename().string()));
    }
    const auto lock = FolderLock::acquire(folder, nullptr);
    if (!lock || kind_of(folder) == FolderKind::foreign) return false;
    stop_cluster(folder);
    remove_folder(folder);
    return true;
}

std::string PrivateServer::connection(std::string_view database) const {
    return connection_string(options_.place.directory, database);
}

fs::path PrivateServer::binary(std::string_view name) const {
    const ServerFolder folder = folder_of(options_);
    const std::optional<unsigned> owner = owner_of(folder);
    const auto major = parse_major_version(content_of(folder.data() / "PG_VERSION"));
    const Installation installation = find_installation(server_account(folder.path, owner), major);
    const fs::path program = installation.binaries / name;
    if (access(program.c_str(), X_OK) != 0) {
        throw SetupError(
            fmt::format("PostgreSQL's program {} is not installed: there is no {}", name, program.string()));
    }
    return program;
}

}  // namespace rowlock
