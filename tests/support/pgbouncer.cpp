#include "support/pgbouncer.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "support/test_server.hpp"

namespace rowlock::test {

namespace {

namespace fs = std::filesystem;

constexpr const char* program = "/usr/sbin/pgbouncer";

void write_files(const fs::path& folder, const PgbouncerOptions& options) {
    const std::string server = test_server().directory.string();
    std::ofstream(folder / "pgbouncer.ini") << "[databases]\n"
                                            << "* = host=" << server << " port=5432\n"
                                            << "[pgbouncer]\n"
                                            << "unix_socket_dir = " << folder.string() << "\n"
                                            << "listen_port = 6432\n"
                                            << "auth_type = trust\n"
                                            << "auth_file = " << (folder / "users.txt").string() << "\n"
                                            << "pool_mode = " << options.pool_mode << "\n"
                                            << "default_pool_size = " << options.pool_size << "\n"
                                            << "max_client_conn = 500\n"
                                            << "ignore_startup_parameters = extra_float_digits\n"
                                            << "admin_users = rowlock\n";
    std::ofstream users(folder / "users.txt");
    users << "\"rowlock\" \"\"\n";
    for (const TestLogin& login : options.logins) {
        users << '"' << login.role << "\" \"" << login.password << "\"\n";
    }
}

}  // namespace

bool Pgbouncer::available() {
    return access(program, X_OK) == 0;
}

Pgbouncer::Pgbouncer(const PgbouncerOptions& options) {
    const fs::path folder = folder_.path();
    write_files(folder, options);
    ProcessOptions start{.arguments = {program, (folder / "pgbouncer.ini").string()},
                         .input = {},
                         .environment = {},
                         .folder = "/",
                         .user = {}};
    // It refuses root. The server's own account may log in there, by the kernel's word.
    struct stat server{};
    if (geteuid() == 0 && stat(test_server().directory.c_str(), &server) == 0) {
        start.user = server.st_uid;
        for (const fs::path& path : {folder, folder / "pgbouncer.ini", folder / "users.txt"}) {
            if (chown(path.c_str(), server.st_uid, server.st_gid) != 0) throw std::runtime_error("chown failed");
        }
    }
    process_ = std::make_unique<BackgroundProcess>(start);
    await_server(connection("rowlock"), *process_);
}

std::string Pgbouncer::connection(const std::string& database) const {
    return "host=" + folder_.path().string() + " port=6432 user=rowlock dbname=" + database;
}

std::string Pgbouncer::connection_as(const std::string& database, const TestLogin& login) const {
    return connection(database) + " user=" + login.role + " password=" + login.password;
}

}  // namespace rowlock::test
