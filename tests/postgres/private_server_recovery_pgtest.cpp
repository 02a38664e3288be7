// The private server among commands that die, race, and leave things behind.
#include <gtest/gtest.h>
#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "server/cluster_processes.hpp"
#include "server/private_server.hpp"
#include "support/private_server_test.hpp"
#include "support/process.hpp"

namespace rowlock::test {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

TEST_F(PrivateServerTest, started_by_four_commands_at_once_is_one_server) {
    std::vector<pid_t> children;
    for (int i = 0; i < 4; ++i) {
        children.push_back(in_child([&] {
            const ServerStatus status = PrivateServer(options()).ensure_running();
            return (status.running ? 1 : 0) + (status.created ? 2 : 0) + (status.started ? 4 : 0);
        }));
    }
    std::multiset<int> codes;
    for (const pid_t child : children) codes.insert(exit_code_of(child));
    EXPECT_EQ(codes, (std::multiset<int>{1, 1, 1, 7}));
    EXPECT_EQ(PrivateServer(options()).status().pid, std::stoi(content_of(folder() / "pgdata/postmaster.pid")));
}

TEST_F(PrivateServerTest, keeps_what_was_committed_when_its_postmaster_is_killed) {
    PrivateServer server(options());
    const int first = server.ensure_running().pid;
    sql("CREATE TABLE kept (id int); INSERT INTO kept VALUES (42)");
    EXPECT_TRUE(server.kill_immediately());
    EXPECT_FALSE(server.status().running);
    const ServerStatus again = server.ensure_running();
    EXPECT_TRUE(again.started && !again.created);
    EXPECT_NE(again.pid, first);
    EXPECT_EQ(sql("SELECT id FROM kept"), "42");
}

TEST_F(PrivateServerTest, starts_although_a_busy_backend_outlives_its_postmaster) {
    PrivateServer server(options());
    server.ensure_running();
    sql("CREATE TABLE kept (id int); INSERT INTO kept VALUES (42)");
    // A computation that never looks up, so it does not see that its postmaster is gone.
    BackgroundProcess busy({.arguments = {server.binary("psql").string(), server.connection("rowlock"), "-c",
                                          "SELECT count(*) FROM generate_series(1, 1000000) a, "
                                          "generate_series(1, 1000000) b"},
                            .input = {},
                            .environment = {},
                            .folder = {},
                            .user = {}});
    while (sql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%generate_series%' AND state = 'active' AND "
               "pid <> pg_backend_pid()") != "1") {
        std::this_thread::sleep_for(10ms);
    }
    std::this_thread::sleep_for(200ms);
    ASSERT_TRUE(server.kill_immediately());
    std::this_thread::sleep_for(300ms);
    EXPECT_FALSE(processes_in(folder() / "pgdata").empty()) << "the twin is gone: nothing outlived the postmaster";
    EXPECT_TRUE(server.ensure_running().running);
    EXPECT_EQ(sql("SELECT id FROM kept"), "42");
}

TEST_F(PrivateServerTest, stopped_after_its_postmaster_was_killed_leaves_no_process) {
    PrivateServer server(options());
    server.ensure_running();
    const fs::path data = folder() / "pgdata";
    const auto processes = processes_in(data);
    ASSERT_GT(processes.size(), 1U);
    ASSERT_TRUE(server.kill_immediately());
    server.stop();
    EXPECT_TRUE(processes_in(data).empty());
}

TEST_F(PrivateServerTest, starts_after_its_starter_was_killed_at_any_moment) {
    for (const auto moment : {0ms, 5ms, 20ms, 60ms, 200ms, 500ms, 800ms, 1000ms, 1200ms, 1500ms}) {
        const pid_t starter = in_child([&] { return PrivateServer(options()).ensure_running().running ? 0 : 1; });
        std::this_thread::sleep_for(moment);
        kill(starter, SIGKILL);
        exit_code_of(starter);
        const ServerStatus status = PrivateServer(options()).ensure_running();
        EXPECT_TRUE(status.running) << moment.count();
        EXPECT_EQ(sql("SELECT 1"), "1") << moment.count();
        EXPECT_FALSE(fs::exists(folder() / "pgdata.new")) << moment.count();
        EXPECT_TRUE(PrivateServer(options()).destroy());
        EXPECT_FALSE(fs::exists(folder()));
    }
}

TEST_F(PrivateServerTest, is_destroyed_although_a_destroyer_was_killed_at_any_moment) {
    for (const auto moment : {0ms, 20ms, 60ms, 100ms, 150ms, 200ms}) {
        PrivateServer(options()).ensure_running();
        const pid_t destroyer = in_child([&] { return PrivateServer(options()).destroy() ? 0 : 1; });
        std::this_thread::sleep_for(moment);
        kill(destroyer, SIGKILL);
        exit_code_of(destroyer);
        EXPECT_TRUE(PrivateServer(options()).ensure_running().running) << moment.count();
        EXPECT_EQ(sql("SELECT 1"), "1") << moment.count();
    }
}

TEST_F(PrivateServerTest, stays_sound_under_commands_that_start_stop_and_destroy_it_at_once) {
    std::vector<pid_t> children;
    for (int i = 0; i < 6; ++i) {
        children.push_back(in_child([&, i] {
            for (int round = 0; round < 3; ++round) {
                PrivateServer server(options());
                if (i % 3 == 1) server.stop();
                if (i % 3 == 2) server.destroy();
                server.ensure_running();
            }
            return 0;
        }));
    }
    for (const pid_t child : children) EXPECT_EQ(exit_code_of(child), 0);
    EXPECT_TRUE(PrivateServer(options()).ensure_running().running);
    EXPECT_EQ(sql("SELECT 1"), "1");
}

TEST_F(PrivateServerTest, starts_although_an_old_pid_file_names_a_process_that_is_gone) {
    PrivateServer server(options());
    server.ensure_running();
    const std::string text = content_of(folder() / "pgdata/postmaster.pid");
    server.stop();
    std::ofstream(folder() / "pgdata/postmaster.pid") << text;
    EXPECT_FALSE(server.status().running);
    EXPECT_TRUE(server.ensure_running().running);
}

TEST_F(PrivateServerTest, starts_although_an_old_pid_file_names_a_process_of_another_kind_and_leaves_that_alone) {
    PrivateServer server(options());
    server.ensure_running();
    std::string text = content_of(folder() / "pgdata/postmaster.pid");
    server.stop();
    // Of the same account: PostgreSQL by itself takes that for a living server and refuses to start.
    BackgroundProcess other({.arguments = {"sleep", "600"},
                             .input = {},
                             .environment = {},
                             .folder = "/",
                             .user = geteuid() == 0 ? std::optional(account_of_server(folder())) : std::nullopt});
    text.replace(0, text.find('\n'), std::to_string(other.pid()));
    std::ofstream(folder() / "pgdata/postmaster.pid") << text;
    std::ofstream(folder() / ".s.PGSQL.5432.lock") << text;
    EXPECT_FALSE(server.status().running);
    EXPECT_FALSE(server.kill_immediately());
    EXPECT_FALSE(server.stop());
    EXPECT_TRUE(server.ensure_running().running);
    EXPECT_TRUE(other.running());
}

}  // namespace
}  // namespace rowlock::test
