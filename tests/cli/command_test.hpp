// What the tests of the command share: it is run as a child process, in folders of the test's own.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "support/process.hpp"
#include "support/scratch_folder.hpp"
#include "support/test_database.hpp"

namespace rowlock::test {

using Arguments = std::vector<std::string>;

class CommandTest : public testing::Test {
  protected:
    /// How the command is started; a test may change it.
    [[nodiscard]] ProcessOptions command(Arguments arguments, std::string input = {}) const;
    [[nodiscard]] ProcessResult run(Arguments arguments, std::string input = {}) const;
    /// The same, through a shell: `script` names the command as "$rowlock".
    [[nodiscard]] ProcessResult run_in_shell(const std::string& script, std::string input = {}) const;
    /// The default place of the keyring, for a command that was told no other.
    [[nodiscard]] std::filesystem::path keyring() const;

    static constexpr std::chrono::seconds limit{120};
    const ScratchFolder scratch_;
};

/// A database of the shared server with the schema in it, and a keyring.
class CommandOnDatabaseTest : public CommandTest {
  protected:
    CommandOnDatabaseTest();
    /// With --db and --keyring for the test's database.
    [[nodiscard]] ProcessResult on_database(Arguments arguments, std::string input = {}) const;
    /// The same with another connection.
    [[nodiscard]] ProcessResult on(const std::string& connection, Arguments arguments, std::string input = {}) const;
    /// How many entries there are, of one tenant or of all.
    [[nodiscard]] std::string entries(std::string_view tenant = {}) const;

    TestDatabase database_;
};

/// Everything on stderr is one line that begins with the program's name and holds each of `parts`.
void expect_one_line(const ProcessResult& result, const std::vector<std::string>& parts);

/// The lines of a text, without an empty one at its end.
[[nodiscard]] std::vector<std::string> lines_of(std::string_view text);

/// A member of a JSON object: a string's value, any other kind's JSON. Fails the test if there is none.
[[nodiscard]] std::string member(std::string_view json, std::string_view name);

}  // namespace rowlock::test
