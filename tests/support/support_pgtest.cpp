// The means of the other tests, tested: a fixture that lies would make every promise look kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "support/pgbouncer.hpp"
#include "support/process.hpp"
#include "support/test_database.hpp"
#include "support/test_server.hpp"

namespace rowlock::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST(TestServer, is_the_throwaway_one) {
    EXPECT_EQ(run_sql(test_server().connection, "SHOW max_connections"), "300");
    EXPECT_EQ(run_sql(test_server().connection, "SHOW fsync"), "off");
}

TEST(TestDatabase, is_fresh_and_gone_afterwards_with_its_roles) {
    std::string name;
    std::string role;
    {
        TestDatabase one;
        const TestDatabase other;
        EXPECT_NE(one.name(), other.name());
        one.execute("CREATE TABLE t (id int); INSERT INTO t VALUES (7); GRANT SELECT ON t TO public");
        EXPECT_EQ(one.value("SELECT id FROM t"), "7");
        const TestLogin login = one.add_login("app");
        EXPECT_EQ(run_sql(one.connection_as(login), "SELECT current_user::text || id FROM t"), login.role + "7");
        EXPECT_EQ(one.value("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = '" + login.role + "'"), "f");
        EXPECT_THROW(one.execute("SELECT nothing"), std::runtime_error);
        name = one.name();
        role = login.role;
    }
    EXPECT_EQ(run_sql(test_server().connection, "SELECT count(*) FROM pg_database WHERE datname = '" + name + "'"),
              "0");
    EXPECT_EQ(run_sql(test_server().connection, "SELECT count(*) FROM pg_roles WHERE rolname = '" + role + "'"), "0");
}

TEST(Pgbouncer, gives_one_server_connection_to_one_client_after_the_other) {
    if (!Pgbouncer::available()) GTEST_SKIP() << "pgbouncer is not installed";
    TestDatabase database;
    const TestLogin login = database.add_login("app");
    const Pgbouncer pool({.pool_size = 1, .logins = {login}});
    const std::string superuser = pool.connection(database.name());
    EXPECT_EQ(run_sql(superuser, "SELECT pg_backend_pid()"), run_sql(superuser, "SELECT pg_backend_pid()"));
    EXPECT_EQ(run_sql(pool.connection_as(database.name(), login), "SELECT current_user"), login.role);
}

TEST(RunProcess, gives_back_all_that_a_process_said) {
    const ProcessResult result = run_process({.arguments = {"sh", "-c", "cat; echo $WORD >&2; exit 3"},
                                              .input = std::string(300000, 'x'),
                                              .environment = {{"WORD", "hello"}},
                                              .folder = {},
                                              .user = {}});
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_EQ(result.output.size(), 300000U);
    EXPECT_EQ(result.errors, "hello\n");
}

TEST(RunProcess, ends_at_its_limit_with_all_of_its_children) {
    const ProcessResult result = run_process(
        {.arguments = {"sh", "-c", "sleep 600 & sleep 600"}, .input = {}, .environment = {}, .folder = {}, .user = {}},
        100ms);
    EXPECT_TRUE(result.timed_out);
    EXPECT_EQ(result.signal, SIGKILL);
}

TEST(BackgroundProcess, is_killed_and_waited_for) {
    BackgroundProcess process(
        {.arguments = {"sleep", "600"}, .input = {}, .environment = {}, .folder = {}, .user = {}});
    EXPECT_TRUE(process.running());
    process.kill_hard();
    EXPECT_FALSE(process.running());
    EXPECT_EQ(process.wait(1s).signal, SIGKILL);
}

}  // namespace
}  // namespace rowlock::test
