// What the tests of the private server share: a folder for one, and children that act on it.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>

#include "server/private_server.hpp"
#include "support/scratch_folder.hpp"
#include "support/test_database.hpp"

namespace rowlock::test {

/// A private server of the test's own, not the shared one; destroyed at the end.
class PrivateServerTest : public testing::Test {
  protected:
    ~PrivateServerTest() override {
        try {
            PrivateServer(options()).destroy();
        } catch (const std::exception& fault) {
            ADD_FAILURE() << fault.what();
        }
    }

    [[nodiscard]] std::filesystem::path folder() const { return scratch_.path() / "server"; }
    [[nodiscard]] ServerOptions options() const { return {.place = {folder()}, .settings = {}}; }
    std::string sql(std::string_view text) const {
        return run_sql(PrivateServer(options()).connection("rowlock"), text);
    }

    const ScratchFolder scratch_;
};

/// Runs `body()` in a child process and gives back its pid. The child's exit code is what `body` returns, 99 for a
/// throw.
template <class Body>
pid_t in_child(Body&& body) {
    const pid_t child = fork();
    if (child != 0) return child;
    int code = 99;
    try {
        code = body();
    } catch (const std::exception& fault) {
        std::fprintf(stderr, "child: %s\n", fault.what());
    }
    _exit(code);
}

inline int exit_code_of(pid_t child) {
    int state = 0;
    waitpid(child, &state, 0);
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

/// The user that a server's folder belongs to.
inline unsigned account_of_server(const std::filesystem::path& folder) {
    struct stat present{};
    return stat(folder.c_str(), &present) == 0 ? present.st_uid : 0;
}

}  // namespace rowlock::test
