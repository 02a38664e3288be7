#include "support/newer_postgresql.hpp"

#include <signal.h>  // NOLINT(modernize-deprecated-headers): SIGINT, as kill() takes it
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <stdexcept>

#include "support/test_database.hpp"
#include "support/test_server.hpp"

namespace rowlock::test {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds stop_wait_max{60};

/// PostgreSQL refuses root: then the account that the shared server runs under.
std::optional<unsigned> account() {
    struct stat shared{};
    if (geteuid() != 0 || stat(test_server().directory.c_str(), &shared) != 0) return std::nullopt;
    return shared.st_uid;
}

}  // namespace

bool NewerPostgresql::available() {
    return access(ROWLOCK_NEWER_POSTGRESQL "/bin/postgres", X_OK) == 0;
}

NewerPostgresql::NewerPostgresql() {
    const fs::path folder = folder_.path();
    // A copy, since that account may be kept out of the sources' folder.
    fs::copy(ROWLOCK_NEWER_POSTGRESQL, folder / "native",
             fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    const std::optional<unsigned> user = account();
    if (user && chown(folder.c_str(), *user, *user) != 0) throw std::runtime_error("chown failed");
    const std::string programs = (folder / "native" / "bin").string();
    const std::string data = (folder / "data").string();
    const ProcessOptions make{
        .arguments = {programs + "/initdb", "--pgdata=" + data, "--username=rowlock", "--auth=trust", "--encoding=UTF8",
                      "--no-locale", "--no-sync", "--no-instructions"},
        .input = {},
        .environment = {},
        .folder = "/",
        .user = user};
    const ProcessResult made = run_process(make);
    if (made.exit_code != 0) throw std::runtime_error("initdb: " + made.errors + made.output);
    ProcessOptions start = make;
    start.arguments = {programs + "/postgres", "-D", data,       "-k", folder.string(), "-c",
                       "listen_addresses=",    "-c", "fsync=off"};
    server_ = std::make_unique<BackgroundProcess>(start);
    await_server(connection("postgres"), *server_);
}

/// In order, so that it leaves no shared memory behind.
NewerPostgresql::~NewerPostgresql() {
    server_->send(SIGINT);
    static_cast<void>(server_->wait(stop_wait_max));
}

std::string NewerPostgresql::connection(const std::string& database) const {
    return "host=" + folder_.path().string() + " port=5432 user=rowlock dbname=" + database;
}

}  // namespace rowlock::test
