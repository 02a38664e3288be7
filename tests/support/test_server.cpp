#include "support/test_server.hpp"

#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp

#include <cstdio>
#include <exception>
#include <fstream>
#include <optional>
#include <stdexcept>

#include "server/private_server.hpp"

namespace rowlock::test {

namespace {

namespace fs = std::filesystem;

std::optional<TestServer> recorded_server() {
    std::ifstream file(test_server_file());
    TestServer server;
    std::string directory;
    if (!std::getline(file, server.connection) || !std::getline(file, directory)) return std::nullopt;
    server.directory = directory;
    return server;
}

ServerOptions options_in(const fs::path& directory) {
    return {.place = {directory}, .settings = {{"max_connections", "300"}}, .throwaway = true};
}

void record(const fs::path& directory, const std::string& connection) {
    const fs::path file = test_server_file();
    const fs::path draft = file.string() + ".new";
    std::ofstream(draft) << connection << '\n' << directory.string() << '\n';
    fs::rename(draft, file);
}

void start_in(const fs::path& directory) {
    PrivateServer server(options_in(directory));
    // The record comes first: a start that is killed half-way is then found and removed by the next one.
    record(directory, server.connection("rowlock"));
    server.destroy();
    server.ensure_running();
}

constexpr const char* variable_name = "ROWLOCK_TEST_SERVER_FILE";

void look_for_server_in(const fs::path& file) {
    setenv(variable_name, file.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace

fs::path test_server_file() {
    const char* variable = std::getenv(variable_name);  // NOLINT(concurrency-mt-unsafe)
    return variable == nullptr ? ROWLOCK_TEST_SERVER_FILE : variable;
}

TestServer test_server() {
    auto server = recorded_server();
    if (server) return *server;
    throw std::runtime_error("no test server is up: there is no " + test_server_file().string() +
                             "; run the tests with ctest, or first: test_server start");
}

void start_test_server() {
    stop_test_server();
    try {
        start_in(test_server_file().parent_path() / "test-server");
    } catch (const SetupError&) {
        // The build folder is out of the server account's reach, or its name is too long for a socket.
        std::error_code ignored;
        fs::remove(test_server_file(), ignored);
        std::string folder = "/tmp/rowlock-test-XXXXXX";
        if (mkdtemp(folder.data()) == nullptr) throw;
        start_in(folder);
    }
}

void stop_test_server() {
    const auto server = recorded_server();
    if (!server) return;
    PrivateServer(options_in(server->directory)).destroy();
    fs::remove(test_server_file());
}

ServerOfItsOwn::ServerOfItsOwn() : shared_(test_server_file()) {
    look_for_server_in(scratch_.path() / "test_server.txt");
    start_test_server();
}

ServerOfItsOwn::~ServerOfItsOwn() {
    try {
        stop_test_server();
    } catch (const std::exception& fault) {
        std::fprintf(stderr, "a test's own server is left: %s\n", fault.what());
    }
    look_for_server_in(shared_);
}

}  // namespace rowlock::test
