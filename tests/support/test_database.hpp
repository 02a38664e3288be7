// A database of a test's own on the shared server.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/process.hpp"

namespace rowlock::test {

/// A role that a test logs in with. Its password is the way in: only the server's own role needs none.
struct TestLogin {
    std::string role;
    std::string password;
};

/// An empty database with a name of its own, dropped at the end with whoever is still in it, and the roles made here.
class TestDatabase {
  public:
    TestDatabase();
    ~TestDatabase();
    TestDatabase(const TestDatabase&) = delete;
    TestDatabase& operator=(const TestDatabase&) = delete;

    [[nodiscard]] const std::string& name() const noexcept { return name_; }

    /// As the server's superuser.
    [[nodiscard]] std::string connection() const;
    [[nodiscard]] std::string connection_as(const TestLogin& login) const;

    /// Makes a role that can log in, named after the database so that tests can't get into each other's way.
    /// `attributes` is SQL, such as "BYPASSRLS"; without it the role may do nothing special.
    const TestLogin& add_login(std::string_view suffix, std::string_view attributes = "");
    [[nodiscard]] const std::vector<TestLogin>& logins() const noexcept { return logins_; }

    /// Runs SQL as the superuser, on a connection of its own; several statements are one transaction.
    /// Throws std::runtime_error with the server's message.
    void execute(std::string_view sql) const;
    /// The same for a query: the first column of its first row; empty for no row and for NULL.
    [[nodiscard]] std::string value(std::string_view sql) const;

  private:
    std::string name_;
    std::vector<TestLogin> logins_;
};

/// Runs SQL anywhere; the first column of the first row. Throws std::runtime_error with the server's message.
std::string run_sql(const std::string& connection, std::string_view sql);

/// Waits until the server or pooler that `process` is answers. Throws std::runtime_error with what it said when it
/// ended instead, or has not answered after a minute.
void await_server(const std::string& connection, BackgroundProcess& process);

}  // namespace rowlock::test
