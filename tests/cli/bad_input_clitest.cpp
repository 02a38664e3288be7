// Bad input and bad surroundings: one line that says what happened and what to do, the right exit code, nothing
// half-done, and the next run works.
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "cli/command_test.hpp"
#include "server/private_server.hpp"
#include "support/test_server.hpp"

namespace rowlock::test {
namespace {

using testing::HasSubstr;

class BadInput : public CommandOnDatabaseTest {
  protected:
    void expect_next_run_works() const {
        const ProcessResult next = on_database({"append", "--tenant", "acme"});
        EXPECT_EQ(next.exit_code, 0) << next.errors;
        EXPECT_EQ(entries(), "1");
    }
};

TEST_F(BadInput, AWrongUriIsOneLine) {
    for (const char* connection : {"postgresql://[", "host", "host=x nonsense=1", "postgresql://localhost:port/x"}) {
        const ProcessResult result = on(connection, {"append", "--tenant", "acme"});
        EXPECT_EQ(result.exit_code, 2) << connection;
        expect_one_line(result, {"; "});
    }
}

TEST_F(BadInput, NoServerIsOneLine) {
    const ProcessResult result = on("host=/nowhere", {"append", "--tenant", "acme"});
    EXPECT_EQ(result.exit_code, 2);
    expect_one_line(result, {"/nowhere", "is the server running"});
}

TEST_F(BadInput, AWrongPasswordIsOneLine) {
    TestLogin login = database_.add_login("app");
    database_.execute("GRANT rowlock_app TO " + login.role);
    const std::string right = login.password;
    login.password = "wrong";
    const ProcessResult result = on(database_.connection_as(login), {"append", "--tenant", "acme"});
    EXPECT_EQ(result.exit_code, 2);
    expect_one_line(result, {"(SQLSTATE 28P01)", login.role, "check the password"});
    EXPECT_THAT(result.errors, testing::Not(HasSubstr("wrong")));
    login.password = right;
    EXPECT_EQ(on(database_.connection_as(login), {"append", "--tenant", "acme"}).exit_code, 0);
}

TEST_F(BadInput, NoPasswordIsOneLine) {
    const TestLogin login = database_.add_login("app");
    const ProcessResult result = on(database_.connection() + " user=" + login.role, {"list", "--tenant", "acme"});
    EXPECT_EQ(result.exit_code, 2);
    expect_one_line(result, {"no password supplied", "PGPASSWORD"});
}

TEST_F(BadInput, NoSuchDatabaseIsOneLine) {
    const ProcessResult result = on(database_.connection() + " dbname=nowhere", {"append", "--tenant", "acme"});
    EXPECT_EQ(result.exit_code, 2);
    expect_one_line(result, {"\"nowhere\" does not exist (SQLSTATE 3D000)", "check the name of the database"});
}

TEST_F(BadInput, NoSchemaIsOneLineForEveryCommandThatNeedsIt) {
    const TestDatabase bare;
    for (const Arguments& arguments : {Arguments{"append", "--tenant", "acme"}, Arguments{"append", "--jsonl", "-"},
                                       Arguments{"list", "--tenant", "acme"}, Arguments{"verify", "--all"}}) {
        const ProcessResult result = on(bare.connection(), arguments);
        EXPECT_EQ(result.exit_code, 2);
        expect_one_line(result, {"no schema rowlock", "rowlock schema install"});
        EXPECT_EQ(bare.value("SELECT count(*) FROM pg_namespace WHERE nspname = 'rowlock'"), "0");
    }
}

TEST_F(BadInput, AnOlderSchemaIsOneLine) {
    database_.execute(
        "DELETE FROM rowlock.schema_version WHERE version = (SELECT max(version) FROM "
        "rowlock.schema_version)");
    const ProcessResult result = on_database({"append", "--tenant", "acme"});
    EXPECT_EQ(result.exit_code, 2);
    expect_one_line(result, {"version", "rowlock schema install"});
    EXPECT_EQ(entries(), "0");
    EXPECT_EQ(on_database({"schema", "status"}).exit_code, 1);
}

TEST_F(BadInput, ANewerSchemaIsOneLine) {
    database_.execute("INSERT INTO rowlock.schema_version (version, name) VALUES (999, 'later')");
    for (const Arguments& arguments : {Arguments{"append", "--tenant", "acme"}, Arguments{"schema", "install"}}) {
        const ProcessResult result = on_database(arguments);
        EXPECT_EQ(result.exit_code, 2);
        expect_one_line(result, {"version 999", "use a newer rowlock"});
    }
    database_.execute("DELETE FROM rowlock.schema_version WHERE version = 999");
    expect_next_run_works();
}

TEST_F(BadInput, ALoginWithoutTheRoleIsToldWhichToGrant) {
    const TestLogin login = database_.add_login("stranger");
    const auto expect_advice = [&](const Arguments& arguments, const std::string& advice) {
        const ProcessResult result = on(database_.connection_as(login), arguments);
        EXPECT_EQ(result.exit_code, 2) << arguments[0];
        expect_one_line(result, {"(SQLSTATE 42501)", advice});
    };
    expect_advice({"append", "--tenant", "acme"}, "GRANT rowlock_app");
    expect_advice({"list", "--tenant", "acme"}, "GRANT rowlock_app");
    expect_advice({"verify", "--all"}, "GRANT rowlock_app");
    expect_advice({"schema", "uninstall", "--yes"}, "a member of rowlock_owner");
    expect_next_run_works();
}

TEST_F(BadInput, AServerThatReportsAFullDiskIsOneLine) {
    database_.execute(
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        "  RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$;"
        "CREATE TRIGGER full_disk BEFORE INSERT ON rowlock.audit_log FOR EACH ROW EXECUTE FUNCTION full_disk()");
    const ProcessResult result = on_database({"append", "--tenant", "acme"});
    EXPECT_EQ(result.exit_code, 2);
    expect_one_line(result, {"(SQLSTATE 53100)", "free space"});
    EXPECT_EQ(database_.value("SELECT coalesce(max(last_seq), 0) FROM rowlock.tenant_seq"), "0");
    database_.execute("DROP TRIGGER full_disk ON rowlock.audit_log");
    expect_next_run_works();
}

TEST_F(BadInput, ALockThatIsHeldIsBusy) {
    ASSERT_EQ(on_database({"append", "--tenant", "acme"}).exit_code, 0);
    BackgroundProcess holder(
        {.arguments = {"psql", database_.connection(), "-Xqc", "SELECT 1 FROM rowlock.tenant_seq FOR UPDATE", "-c",
                       "SELECT pg_sleep(60)", "-1"},
         .input = {},
         .environment = {},
         .folder = {},
         .user = {}});
    const std::string held =
        "SELECT count(*) FROM pg_locks WHERE relation = 'rowlock.tenant_seq'::regclass"
        " AND mode = 'RowShareLock' AND granted";
    for (int i = 0; i < 500 && database_.value(held) == "0"; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
    const ProcessResult one = on_database({"append", "--tenant", "acme"});
    EXPECT_EQ(one.exit_code, 1);
    expect_one_line(one, {"busy", "(SQLSTATE 55P03)", "try again"});
    const ProcessResult lines =
        on_database({"append", "--jsonl", "-"}, "{\"tenant\":\"acme\"}\n{\"tenant\":\"acme\"}\n");
    EXPECT_EQ(lines.exit_code, 1);
    expect_one_line(lines, {"(SQLSTATE 55P03)", "every line before line 1 is appended, nothing from there on"});
    EXPECT_EQ(entries(), "1");
    holder.send(SIGTERM);
    database_.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' AND "
        "pid <> pg_backend_pid() AND datname = current_database()");
    EXPECT_EQ(on_database({"append", "--tenant", "acme"}).exit_code, 0);
    EXPECT_EQ(entries(), "2");
}

TEST_F(BadInput, AStatementCancelledFromOutsideIsOneLine) {
    ASSERT_EQ(on_database({"append", "--tenant", "acme"}).exit_code, 0);
    BackgroundProcess holder({.arguments = {"psql", database_.connection(), "-Xqc", "LOCK TABLE rowlock.tenant_seq",
                                            "-c", "SELECT pg_sleep(60)", "-1"},
                              .input = {},
                              .environment = {},
                              .folder = {},
                              .user = {}});
    const std::string held =
        "SELECT count(*) FROM pg_locks WHERE relation = 'rowlock.tenant_seq'::regclass"
        " AND mode = 'AccessExclusiveLock' AND granted";
    for (int i = 0; i < 500 && database_.value(held) == "0"; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
    BackgroundProcess waiting(
        command({"--db", database_.connection(), "--keyring", keyring().string(), "append", "--tenant", "acme"}));
    const std::string cancel =
        "SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name = 'rowlock' AND wait_event_type = 'Lock'";
    for (int i = 0; i < 500 && database_.value(cancel) == "0"; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    const ProcessResult result = waiting.wait(limit);
    EXPECT_EQ(result.exit_code, 2);
    expect_one_line(result, {"(SQLSTATE 57014)", "cancelled", "run this again"});
    database_.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' AND "
        "pid <> pg_backend_pid() AND datname = current_database()");
    EXPECT_EQ(on_database({"append", "--tenant", "acme"}).exit_code, 0);
    EXPECT_EQ(entries(), "2");
}

/// A private server on a file system of 120 MB, which only root can mount.
TEST_F(CommandTest, OnADiskThatIsFullNothingIsHalfDoneAndTheNextRunWorks) {
    const std::filesystem::path small = scratch_.path() / "small";
    std::filesystem::create_directory(small);
    if (mount("tmpfs", small.c_str(), "tmpfs", 0, "size=120m") != 0) GTEST_SKIP() << "no file system can be mounted";
    const std::string data = (small / "server").string();
    ASSERT_EQ(chmod(small.c_str(), 0755), 0);
    PrivateServer server({.place = {data}, .settings = {{"max_wal_size", "32MB"}}, .throwaway = true});
    server.ensure_running();
    ASSERT_EQ(run({"--data", data, "append", "--tenant", "acme"}).exit_code, 0);
    const std::string filler = (small / "filler").string();
    ASSERT_EQ(run_in_shell("dd if=/dev/zero of=" + filler + " bs=1M 2>/dev/null; true").exit_code, 0);
    const std::string line = "{\"tenant\":\"acme\",\"data\":\"" + std::string(500000, 'x') + "\"}\n";
    std::string lines;
    for (int i = 0; i < 100; ++i) lines += line;
    const ProcessResult result = run({"--data", data, "append", "--jsonl", "-"}, lines);
    EXPECT_EQ(result.exit_code, 2) << result.output;
    expect_one_line(result, {"every line before line "});
    std::filesystem::remove(filler);
    server.ensure_running();  // a disk full under its write-ahead log stops PostgreSQL
    EXPECT_EQ(run({"--data", data, "append", "--tenant", "acme"}).exit_code, 0);
    const ProcessResult verified = run({"--data", data, "verify", "--all"});
    EXPECT_EQ(verified.exit_code, 0) << verified.output;
    server.destroy();
    EXPECT_EQ(umount2(small.c_str(), MNT_DETACH), 0);
}

}  // namespace
}  // namespace rowlock::test
