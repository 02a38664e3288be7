#include "server/private_server.hpp"

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>

#include "server/cluster_processes.hpp"
#include "support/private_server_test.hpp"
#include "support/process.hpp"

namespace rowlock::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;
using testing::HasSubstr;

constexpr unsigned nobody = 65534;

bool become_nobody() {
    return setgroups(0, nullptr) == 0 && setgid(nobody) == 0 && setuid(nobody) == 0;
}

template <class Body>
std::string setup_error_of(Body&& body) {
    try {
        body();
    } catch (const SetupError& error) {
        return error.what();
    }
    return "no SetupError";
}

long milliseconds_since(steady_clock::time_point start) {
    return static_cast<long>((steady_clock::now() - start) / std::chrono::milliseconds{1});
}

TEST_F(PrivateServerTest, is_made_and_started_on_demand_and_then_left_alone) {
    PrivateServer server(options());
    auto start = steady_clock::now();
    const ServerStatus first = server.ensure_running();
    std::printf("made and started in %ld ms\n", milliseconds_since(start));
    EXPECT_TRUE(first.exists && first.running && first.created && first.started);
    EXPECT_GT(first.pid, 0);
    EXPECT_EQ(first.directory, folder());
    EXPECT_EQ(run_sql(first.connection, "SELECT current_user || ' ' || current_database()"), "rowlock rowlock");
    EXPECT_EQ(sql("SELECT pg_encoding_to_char(encoding) || ' ' || datcollate FROM pg_database "
                  "WHERE datname = 'rowlock'"),
              "UTF8 C.UTF-8");

    start = steady_clock::now();
    const ServerStatus second = server.ensure_running();
    std::printf("found running in %ld ms\n", milliseconds_since(start));
    EXPECT_FALSE(second.created || second.started);
    EXPECT_EQ(second.pid, first.pid);

    EXPECT_TRUE(server.stop());
    EXPECT_FALSE(server.status().running);
    EXPECT_TRUE(server.status().exists);
    start = steady_clock::now();
    const ServerStatus third = server.ensure_running();
    std::printf("started again in %ld ms\n", milliseconds_since(start));
    EXPECT_TRUE(third.started && !third.created);
}

TEST_F(PrivateServerTest, flushes_to_disk_and_takes_many_connections) {
    PrivateServer(options()).ensure_running();
    EXPECT_EQ(sql("SHOW fsync"), "on");
    EXPECT_EQ(sql("SHOW synchronous_commit"), "on");
    EXPECT_EQ(sql("SHOW full_page_writes"), "on");
    EXPECT_EQ(sql("SHOW max_connections"), "200");
    EXPECT_EQ(sql("SHOW shared_buffers"), "128MB");
}

TEST_F(PrivateServerTest, lets_no_other_local_user_in) {
    if (geteuid() != 0) GTEST_SKIP() << "only root can try as another user";
    PrivateServer server(options());
    server.ensure_running();
    const ProcessOptions attempt{
        .arguments = {server.binary("psql").string(), server.connection("rowlock"), "-c", "SELECT 1"},
        .input = {},
        .environment = {},
        .folder = "/",
        .user = nobody};
    const ProcessResult at_the_folder = run_process(attempt);
    EXPECT_NE(at_the_folder.exit_code, 0);
    EXPECT_THAT(at_the_folder.errors, HasSubstr("Permission denied"));
    // And with the folder and the socket thrown open, the server itself refuses.
    chmod(folder().c_str(), 0755);
    chmod((folder() / ".s.PGSQL.5432").c_str(), 0777);
    const ProcessResult at_the_server = run_process(attempt);
    EXPECT_NE(at_the_server.exit_code, 0);
    EXPECT_THAT(at_the_server.errors, HasSubstr("Peer authentication failed"));
}

TEST_F(PrivateServerTest, lets_other_roles_in_by_password_only) {
    PrivateServer server(options());
    server.ensure_running();
    sql("CREATE ROLE app LOGIN PASSWORD 'secret'");
    const std::string connection = server.connection("rowlock") + " user=app";
    EXPECT_EQ(run_sql(connection + " password=secret", "SELECT current_user"), "app");
    EXPECT_THROW(run_sql(connection + " password=wrong", "SELECT 1"), std::runtime_error);
    EXPECT_THROW(run_sql(connection, "SELECT 1"), std::runtime_error);
}

TEST_F(PrivateServerTest, listens_on_no_network_even_when_its_settings_ask_for_one) {
    ServerOptions open = options();
    open.settings = {{"listen_addresses", "*"}, {"unix_socket_permissions", "0777"}, {"work_mem", "9MB"}};
    const ServerStatus status = PrivateServer(open).ensure_running();
    EXPECT_EQ(sql("SHOW listen_addresses"), "");
    EXPECT_EQ(sql("SHOW unix_socket_permissions"), "0700");
    EXPECT_EQ(sql("SHOW work_mem"), "9MB");
    const fs::path process = fs::path("/proc") / std::to_string(status.pid);
    const std::string network = content_of(process / "net/tcp") + content_of(process / "net/tcp6");
    std::size_t sockets = 0;
    for (const auto& entry : fs::directory_iterator(process / "fd")) {
        std::error_code gone;
        const std::string target = fs::read_symlink(entry.path(), gone).string();
        if (!target.starts_with("socket:[")) continue;
        ++sockets;
        const std::string inode = target.substr(8, target.size() - 9);
        EXPECT_EQ(network.find(" " + inode + " "), std::string::npos) << "a TCP socket: " << target;
    }
    EXPECT_GE(sockets, 1U);
}

TEST_F(PrivateServerTest, that_is_absent_is_stopped_and_destroyed_without_a_word) {
    PrivateServer server(options());
    EXPECT_FALSE(server.stop());
    EXPECT_FALSE(server.destroy());
    EXPECT_FALSE(server.kill_immediately());
    EXPECT_FALSE(server.status().exists);
    EXPECT_FALSE(server.status().running);
    EXPECT_FALSE(fs::exists(folder()));
}

TEST_F(PrivateServerTest, that_is_down_is_stopped_without_a_word_and_destroyed) {
    PrivateServer server(options());
    server.ensure_running();
    EXPECT_TRUE(server.stop());
    EXPECT_FALSE(server.stop());
    EXPECT_TRUE(server.destroy());
    EXPECT_FALSE(fs::exists(folder()));
    EXPECT_TRUE(server.ensure_running().created);
}

TEST_F(PrivateServerTest, never_touches_a_folder_that_holds_something_else) {
    const fs::path foreign = scratch_.path() / "foreign";
    fs::create_directories(foreign / "pgdata");
    std::ofstream(foreign / "letter") << "mine";
    PrivateServer server({.place = {foreign}, .settings = {}});
    EXPECT_THAT(setup_error_of([&] { server.destroy(); }), HasSubstr("nothing in it was removed"));
    EXPECT_THAT(setup_error_of([&] { server.ensure_running(); }), HasSubstr("not rowlock's private server"));
    EXPECT_FALSE(server.stop());
    EXPECT_EQ(content_of(foreign / "letter"), "mine");
    EXPECT_FALSE(fs::exists(foreign / "lock"));
}

TEST_F(PrivateServerTest, says_the_limit_when_the_path_of_its_folder_is_too_long) {
    const fs::path deep = scratch_.path() / std::string(100, 'd');
    const std::string words = setup_error_of([&] { PrivateServer({.place = {deep}, .settings = {}}); });
    EXPECT_THAT(words, HasSubstr("107"));
    EXPECT_THAT(words, HasSubstr("--data"));
}

TEST_F(PrivateServerTest, lives_in_a_folder_with_an_awkward_name) {
    PrivateServer server({.place = {scratch_.path() / "it's a \"b\" \\ $c"}, .settings = {}});
    EXPECT_EQ(run_sql(server.ensure_running().connection, "SELECT 1"), "1");
    EXPECT_TRUE(server.destroy());
}

TEST_F(PrivateServerTest, says_which_parent_its_account_can_not_enter) {
    if (geteuid() != 0) GTEST_SKIP() << "only root runs the server under another account";
    const fs::path closed = scratch_.path() / "closed";
    fs::create_directory(closed);
    fs::permissions(closed, fs::perms::owner_all);
    PrivateServer server({.place = {closed / "deeper/server"}, .settings = {}});
    EXPECT_THAT(setup_error_of([&] { server.ensure_running(); }), HasSubstr("can't enter " + closed.string() + ":"));
    EXPECT_FALSE(fs::exists(closed / "deeper/server"));
}

TEST_F(PrivateServerTest, of_root_runs_under_an_account_without_rights) {
    if (geteuid() != 0) GTEST_SKIP() << "only root runs the server under another account";
    const ServerStatus status = PrivateServer(options()).ensure_running();
    struct stat process{};
    ASSERT_EQ(stat(("/proc/" + std::to_string(status.pid)).c_str(), &process), 0);
    EXPECT_NE(process.st_uid, 0U);
    struct stat present{};
    ASSERT_EQ(stat(folder().c_str(), &present), 0);
    EXPECT_EQ(present.st_uid, process.st_uid);
    EXPECT_EQ(present.st_mode & 0777U, 0700U);
}

TEST_F(PrivateServerTest, of_an_ordinary_user_is_that_users_own_and_root_may_tend_it) {
    if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
    ASSERT_EQ(chmod(scratch_.path().c_str(), 0777), 0);
    const pid_t user = in_child([&] {
        if (!become_nobody()) return 2;
        const ServerStatus status = PrivateServer(options()).ensure_running();
        return run_sql(status.connection, "SELECT 1") == "1" ? 0 : 1;
    });
    EXPECT_EQ(exit_code_of(user), 0);
    EXPECT_EQ(sql("SELECT 1"), "1");
    PrivateServer server(options());
    EXPECT_TRUE(server.stop());
    EXPECT_TRUE(server.ensure_running().started);
    EXPECT_EQ(account_of_server(folder()), nobody);
}

TEST_F(PrivateServerTest, of_somebody_else_is_refused_by_name) {
    if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
    PrivateServer(options()).ensure_running();
    const pid_t user = in_child([&] {
        if (!become_nobody()) return 2;
        const std::string words = setup_error_of([&] { PrivateServer(options()).ensure_running(); });
        return words.find("you are 'nobody'") != std::string::npos ? 0 : 1;
    });
    EXPECT_EQ(exit_code_of(user), 0);
}

TEST_F(PrivateServerTest, that_can_not_start_says_why_in_one_line) {
    PrivateServer(options()).ensure_running();
    PrivateServer(options()).stop();
    ServerOptions wrong = options();
    wrong.settings = {{"shared_buffers", "plenty"}};
    const std::string words = setup_error_of([&] { PrivateServer(wrong).ensure_running(); });
    EXPECT_THAT(words, HasSubstr("shared_buffers"));
    EXPECT_THAT(words, HasSubstr("server.log"));
    EXPECT_EQ(words.find('\n'), std::string::npos);
    EXPECT_TRUE(PrivateServer(options()).ensure_running().running);
}

TEST_F(PrivateServerTest, whose_version_is_no_longer_installed_says_what_to_install) {
    PrivateServer server(options());
    server.ensure_running();
    server.stop();
    std::ofstream(folder() / "pgdata/PG_VERSION") << "12\n";
    EXPECT_THAT(setup_error_of([&] { server.ensure_running(); }), HasSubstr("postgresql-12"));
}

TEST_F(PrivateServerTest, keeps_no_file_of_its_starter_open) {
    // A shell's pipe would otherwise wait for the server's end.
    const pid_t starter = in_child([&] { return PrivateServer(options()).ensure_running().running ? 0 : 1; });
    EXPECT_EQ(exit_code_of(starter), 0);
    const int pid = PrivateServer(options()).status().pid;
    for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
        std::error_code gone;
        const std::string target = fs::read_symlink(entry.path(), gone).string();
        EXPECT_EQ(target.find(folder().string() + "/lock"), std::string::npos) << target;
        EXPECT_FALSE(target.starts_with("/dev/pts")) << target;
    }
}

}  // namespace
}  // namespace rowlock::test
