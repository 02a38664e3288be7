// How a connection is had, and what is said when it can't be.
#include <sys/socket.h>
#include <sys/un.h>

#include <filesystem>
#include <fstream>

#include "postgres/one_table.hpp"
#include "postgres/session.hpp"
#include "support/pgbouncer.hpp"
#include "support/private_server_test.hpp"

namespace rowlock {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Refusal {
    std::string connection;
    std::string sqlstate;
    Recovery recovery;
    std::string said;
};

class Connecting : public OneTable {
  protected:
    /// Keywords of the shared server's connection string as libpq's environment variables.
    static void set(const char* name, const std::string& text) { setenv(name, text.c_str(), 1); }
    [[nodiscard]] static int current_database_is(const std::string& name, const std::string& connection = "") {
        Database database(connection);
        return database.transact({}, [&](Transaction& t) {
            const Rows rows =
                t.execute({"test.where", "SELECT current_database(), current_setting('application_name')"});
            return rows.only().text(0) == name ? 0 : 1;
        });
    }
};

TEST_F(Connecting, that_is_refused_names_the_reason_and_what_may_be_done) {
    const std::string folder = test::test_server().directory.string();
    const auto login = created_.add_login("app");
    const std::string good = created_.connection_as(login);
    created_.execute("ALTER ROLE " + login.role + " CONNECTION LIMIT 0");
    const auto other = created_.add_login("other");
    const std::vector<Refusal> refusals{
        {created_.connection_as({other.role, "wrong"}), "28P01", Recovery::give_up, "password authentication failed"},
        {created_.connection() + " user=" + other.role, "", Recovery::give_up, "no password supplied"},
        {created_.connection() + " dbname=nowhere", "3D000", Recovery::give_up, "does not exist"},
        {good, "53300", Recovery::reconnect_and_run_again, "too many connections"},
        {"host=/tmp/no-such-folder dbname=x", "", Recovery::reconnect_and_run_again, "No such file"},
        {"host=127.0.0.1 port=1 dbname=x", "", Recovery::reconnect_and_run_again, "refused"},
        {"host=127.0.0.1," + folder + " port=1,5432 dbname=nowhere user=rowlock", "3D000", Recovery::give_up,
         "does not exist"},
        {created_.connection() + " options='-c no_such_setting=1'", "42704", Recovery::give_up, "no_such_setting"},
    };
    for (const Refusal& refusal : refusals) {
        const auto fault = fault_of<ConnectionError>([&] { const Database database(refusal.connection); });
        ASSERT_TRUE(fault) << refusal.connection;
        EXPECT_EQ(fault->sqlstate(), refusal.sqlstate) << refusal.connection;
        EXPECT_EQ(fault->recovery(), refusal.recovery) << refusal.connection;
        EXPECT_THAT(fault->what(), AllOf(HasSubstr(refusal.said), Not(HasSubstr("\n"))));
    }
}

TEST_F(Connecting, with_what_can_not_be_read_is_wrong_input) {
    for (const char* connection : {"hots=localhost", "postgresql://%zz/x", "host='a"}) {
        EXPECT_THROW(const Database database(connection), InvalidInput) << connection;
    }
}

TEST_F(Connecting, to_another_encoding_says_what_to_do) {
    const std::string name = created_.name() + "_latin";
    test::run_sql(test::test_server().connection,
                  "CREATE DATABASE " + name + " ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    const auto fault =
        fault_of<SetupError>([&] { const Database database(created_.connection() + " dbname=" + name); });
    EXPECT_THAT(fault->what(), HasSubstr("UTF8"));
    test::run_sql(test::test_server().connection, "DROP DATABASE " + name + " WITH (FORCE)");
}

/// A server that takes the connection and then says nothing: stopped, or behind a pooler that has none to give.
TEST_F(Connecting, ends_at_its_limit_whatever_the_server_does) {
    const test::ScratchFolder folder;
    const int silent = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (folder.path() / ".s.PGSQL.5432").string().copy(address.sun_path, sizeof(address.sun_path) - 1);
    ASSERT_EQ(bind(silent, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    ASSERT_EQ(listen(silent, 9), 0);
    const auto start = std::chrono::steady_clock::now();
    const auto fault = fault_of<ConnectionError>([&] {
        const Database database(
            DatabaseOptions{.connection = "host=" + folder.path().string(), .connect_wait_max = 1s});
    });
    EXPECT_THAT(fault->what(), HasSubstr("no connection within 1 s"));
    EXPECT_EQ(fault->recovery(), Recovery::reconnect_and_run_again);
    EXPECT_LT(since(start), 5s);
    close(silent);
}

TEST_F(Connecting, behind_a_pooler_that_has_no_server_to_give_ends_at_its_limit) {
    if (!test::Pgbouncer::available()) GTEST_SKIP() << "pgbouncer is not installed";
    const test::Pgbouncer pooler({.pool_size = 1});
    Database first(pooler.connection(created_.name()));
    const auto start = std::chrono::steady_clock::now();
    first.transact({}, [&](Transaction& t) {
        t.execute({"test.one", "SELECT 1"});
        EXPECT_THROW(const Database second(
                         DatabaseOptions{.connection = pooler.connection(created_.name()), .connect_wait_max = 1s}),
                     ConnectionError);
    });
    EXPECT_LT(since(start), 5s);
}

TEST_F(Connecting, takes_uris) {
    const std::string folder = test::test_server().directory.string();
    std::string encoded;
    for (const char c : folder) encoded += c == '/' ? "%2F" : std::string(1, c);
    EXPECT_EQ(current_database_is(created_.name(), "postgresql://rowlock@" + encoded + "/" + created_.name()), 0);
    EXPECT_EQ(current_database_is(created_.name(), "postgres:///" + created_.name() + "?host=" + encoded +
                                                       "&user=rowlock&sslmode=prefer"),
              0);
}

TEST_F(Connecting, takes_the_word_of_libpqs_own_environment) {
    const std::string folder = test::test_server().directory.string();
    const pid_t child = test::in_child([&] {
        set("PGHOST", folder);
        set("PGUSER", "rowlock");
        set("PGDATABASE", created_.name());
        set("PGCLIENTENCODING", "LATIN1");
        return current_database_is(created_.name());
    });
    EXPECT_EQ(test::exit_code_of(child), 0);
}

TEST_F(Connecting, takes_a_service_from_its_file) {
    const test::ScratchFolder folder;
    std::ofstream(folder.path() / "services") << "[books]\nhost=" << test::test_server().directory.string()
                                              << "\nuser=rowlock\ndbname=" << created_.name() << "\n";
    for (const bool by_variable : {true, false}) {
        const pid_t child = test::in_child([&] {
            set("PGSERVICEFILE", (folder.path() / "services").string());
            if (by_variable) set("PGSERVICE", "books");
            return current_database_is(created_.name(), by_variable ? "" : "service=books");
        });
        EXPECT_EQ(test::exit_code_of(child), 0);
    }
}

TEST_F(Connecting, keeps_to_the_sslmode_that_is_asked_for) {
    // The shared server has no TLS, and a Unix socket never has: it needs a TCP address to be refused at.
    const test::ScratchFolder folder;
    for (const std::string name : {"wrong", "require"}) {
        const pid_t child = test::in_child([&] {
            set("PGSSLMODE", name);
            try {
                const Database database(name == "wrong" ? created_.connection() : "host=127.0.0.1 port=1 dbname=x");
                return 1;
            } catch (const ConnectionError& fault) {
                const bool named = std::string_view(fault.what()).find("sslmode") != std::string_view::npos;
                return named == (name == "wrong") ? 0 : 2;
            }
        });
        EXPECT_EQ(test::exit_code_of(child), 0) << name;
    }
}

TEST_F(Connecting, tells_the_server_who_it_is) {
    DatabaseOptions named = options();
    named.application_name = "books";
    Database database(named);
    EXPECT_EQ(value("SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'books'"), "t");
    named.connection += " application_name=mine";
    Database mine(named);
    EXPECT_EQ(value("SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'mine'"), "t");
}

TEST_F(Connecting, names_its_backend) {
    Database database(options());
    database.transact({}, [](Transaction& t) {
        EXPECT_EQ(t.execute({"test.pid", "SELECT pg_backend_pid()"}).only().integer(0), t.backend_pid());
    });
}

TEST_F(Connecting, says_nothing_of_notices) {
    Database database(options());
    testing::internal::CaptureStderr();
    database.transact({}, [](Transaction& t) {
        t.execute_script({"test.notice", "DO $$ BEGIN RAISE WARNING 'look'; END $$; DROP TABLE IF EXISTS nowhere"});
        t.execute({"test.notice", "DROP TABLE IF EXISTS nowhere"});
    });
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace rowlock
