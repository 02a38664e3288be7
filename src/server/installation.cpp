#include "server/installation.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <system_error>
#include <vector>

#include "rowlock/error.hpp"
#include "server/child_process.hpp"

namespace rowlock {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds version_wait_max{20};

bool holds_a_server(const fs::path& binaries) {
    return access((binaries / "initdb").c_str(), X_OK) == 0 && access((binaries / "postgres").c_str(), X_OK) == 0;
}

/// /usr/lib/postgresql/15/bin and /usr/pgsql-15/bin: the version stands in the folder's name.
void add_versioned(std::vector<Installation>& found, const fs::path& parent, std::string_view prefix) {
    std::error_code fault;
    for (const auto& entry : fs::directory_iterator(parent, fault)) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with(prefix)) continue;
        const auto major = parse_major_version(std::string_view(name).substr(prefix.size()));
        if (major && holds_a_server(entry.path() / "bin")) found.push_back({*major, entry.path() / "bin"});
    }
}

void add_asked(std::vector<Installation>& found, const Account& account, const fs::path& binaries) {
    if (!binaries.is_absolute() || !holds_a_server(binaries)) return;
    const Command ask{.arguments = {(binaries / "postgres").string(), "--version"}, .input = {}};
    const auto major = parse_major_version(run_as(account, ask, version_wait_max).output);
    if (major) found.push_back({*major, binaries});
}

std::vector<fs::path> search_path() {
    std::vector<fs::path> folders;
    const char* variable = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nothing here sets variables
    std::string_view rest = variable == nullptr ? "" : variable;
    while (!rest.empty()) {
        const std::size_t end = rest.find(':');
        if (end != 0) folders.emplace_back(rest.substr(0, end));
        if (end == std::string_view::npos) break;
        rest.remove_prefix(end + 1);
    }
    return folders;
}

/// The slower places: each costs the start of a program.
void add_from_search_path(std::vector<Installation>& found, const Account& account) {
    for (const fs::path& folder : search_path()) {
        const fs::path config = folder / "pg_config";
        if (folder.is_absolute() && access(config.c_str(), X_OK) == 0) {
            const Command ask{.arguments = {config.string(), "--bindir"}, .input = {}};
            std::string answer = run_as(account, ask, version_wait_max).output;
            while (answer.ends_with('\n')) answer.pop_back();
            add_asked(found, account, answer);
        }
        add_asked(found, account, folder);
    }
}

}  // namespace

Installation find_installation(const Account& account, std::optional<int> wanted) {
    std::vector<Installation> found;
    add_versioned(found, "/usr/lib/postgresql", "");
    add_versioned(found, "/usr", "pgsql-");
    auto chosen = choose_installation(found, wanted);
    if (!chosen || chosen->major < oldest_major_version) {
        add_from_search_path(found, account);
        chosen = choose_installation(found, wanted);
    }
    if (!chosen && wanted) {
        throw SetupError(
            fmt::format("the private server's data was made by PostgreSQL {0}, whose programs are no longer "
                        "installed: install postgresql-{0} again, or start afresh with `rowlock server "
                        "destroy`",
                        *wanted));
    }
    if (!chosen) {
        throw SetupError(
            fmt::format("no PostgreSQL server is installed (looked in /usr/lib/postgresql/*/bin, "
                        "/usr/pgsql-*/bin, `pg_config --bindir` and PATH): install the package "
                        "`postgresql`, {} or newer, or name a server with --db",
                        oldest_major_version));
    }
    if (chosen->major < oldest_major_version) {
        throw SetupError(
            fmt::format("the newest PostgreSQL found is {} in {}, and rowlock needs {} or newer: install "
                        "it, or name a server with --db",
                        chosen->major, chosen->binaries.string(), oldest_major_version));
    }
    return *chosen;
}

}  // namespace rowlock
