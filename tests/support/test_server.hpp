// The one PostgreSQL that all server tests share. CTest starts and stops it as a fixture.
#pragma once

#include <filesystem>
#include <string>

#include "support/scratch_folder.hpp"

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

/// Gives a test a server that no other test is on, as long as it lives: a transaction of one database keeps dead rows
/// of all others from being removed. Goes before the fixture that makes a database.
class ServerOfItsOwn {
  public:
    ServerOfItsOwn();
    ~ServerOfItsOwn();
    ServerOfItsOwn(const ServerOfItsOwn&) = delete;
    ServerOfItsOwn& operator=(const ServerOfItsOwn&) = delete;

  private:
    const ScratchFolder scratch_;
    const std::filesystem::path shared_;
};

}  // namespace rowlock::test
