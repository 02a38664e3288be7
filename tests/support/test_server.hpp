// The one PostgreSQL that all server tests share. CTest starts and stops it as a fixture.
#pragma once

#include <filesystem>
#include <string>

namespace rowlock::test {

/// What the fixture wrote for the tests.
struct TestServer {
    std::filesystem::path directory;
    std::string connection;  ///< As the superuser, to the database "rowlock".
};

/// ROWLOCK_TEST_SERVER_FILE of the environment, else the place that the build has set.
[[nodiscard]] std::filesystem::path test_server_file();

/// Throws std::runtime_error, saying how to start it, if the fixture is not up.
[[nodiscard]] TestServer test_server();

/// Starts a fresh one; destroys what an interrupted run has left.
void start_test_server();
/// Removes it with all of its data.
void stop_test_server();

}  // namespace rowlock::test
