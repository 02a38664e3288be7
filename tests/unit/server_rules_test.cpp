#include "server/server_rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace rowlock {
namespace {

using testing::HasSubstr;

constexpr std::string_view whole_file =
    "4711\n/var/lib/rowlock/pgdata\n1700000000\n5432\n/var/lib/rowlock\n\n  1234567     42\nready   \n";

TEST(PostmasterFile, names_the_process_and_its_state) {
    const auto file = parse_postmaster_file(whole_file);
    ASSERT_TRUE(file);
    EXPECT_EQ(file->pid, 4711);
    EXPECT_EQ(file->state, PostmasterState::ready);
}

TEST(PostmasterFile, knows_every_state_that_postgresql_writes) {
    const std::string before(whole_file.substr(0, whole_file.find("ready")));
    EXPECT_EQ(parse_postmaster_file(before + "starting\n")->state, PostmasterState::starting);
    EXPECT_EQ(parse_postmaster_file(before + "stopping\n")->state, PostmasterState::stopping);
    EXPECT_EQ(parse_postmaster_file(before + "standby \n")->state, PostmasterState::standby);
    EXPECT_EQ(parse_postmaster_file(before + "anything\n")->state, PostmasterState::unknown);
}

TEST(PostmasterFile, cut_short_anywhere_is_never_ready) {
    for (std::size_t length = 0; length < whole_file.find("ready") + 5; ++length) {
        const auto file = parse_postmaster_file(whole_file.substr(0, length));
        EXPECT_EQ(file ? file->state : PostmasterState::unknown, PostmasterState::unknown) << length;
    }
}

TEST(PostmasterFile, of_no_process_is_nothing) {
    for (const std::string_view text : {"", "\n", "abc\n", "0\n", "-4711\n", "12x\n", "99999999999999\n"}) {
        EXPECT_FALSE(parse_postmaster_file(text)) << text;
    }
}

TEST(MajorVersion, is_read_from_every_place_that_has_one) {
    EXPECT_EQ(parse_major_version("15\n"), 15);
    EXPECT_EQ(parse_major_version("9.6"), 9);
    EXPECT_EQ(parse_major_version("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"), 15);
    EXPECT_EQ(parse_major_version("postgres (PostgreSQL) 17beta1\n"), 17);
    EXPECT_EQ(parse_major_version(""), std::nullopt);
    EXPECT_EQ(parse_major_version("postgres"), std::nullopt);
    EXPECT_EQ(parse_major_version("-3"), std::nullopt);
}

TEST(ChooseInstallation, takes_the_newest_by_number_not_by_letter) {
    const std::array found{Installation{9, "/nine"}, Installation{16, "/sixteen"}, Installation{15, "/fifteen"}};
    EXPECT_EQ(choose_installation(found, std::nullopt)->binaries, "/sixteen");
}

TEST(ChooseInstallation, stays_with_the_version_that_made_the_data) {
    const std::array found{Installation{16, "/sixteen"}, Installation{15, "/fifteen"}, Installation{15, "/other"}};
    EXPECT_EQ(choose_installation(found, 15)->binaries, "/fifteen");
    EXPECT_FALSE(choose_installation(found, 14));
    EXPECT_FALSE(choose_installation({}, std::nullopt));
}

TEST(FolderObjection, comes_one_byte_past_the_limit_of_a_socket) {
    // "/.s.PGSQL.5432" has 14 bytes, and a socket's path at most 107.
    EXPECT_FALSE(folder_objection("/" + std::string(92, 'd')));
    const auto objection = folder_objection("/" + std::string(93, 'd'));
    ASSERT_TRUE(objection);
    EXPECT_THAT(*objection, HasSubstr("107"));
    EXPECT_THAT(*objection, HasSubstr("may have 93 at most and has 94"));
}

TEST(FolderObjection, comes_for_what_libpq_or_the_server_would_misread) {
    EXPECT_THAT(folder_objection("/a,b").value_or(""), HasSubstr("comma"));
    EXPECT_THAT(folder_objection("/a\nb").value_or(""), HasSubstr("control"));
    EXPECT_FALSE(folder_objection("/a b'c\"d\\e"));
}

TEST(ServerFolder, follows_the_variables) {
    EXPECT_EQ(server_folder_for("/state", "/home/a", false), "/state/rowlock");
    EXPECT_EQ(server_folder_for("/state", "/root", true), "/state/rowlock");
    EXPECT_EQ(server_folder_for("", "/home/a", false), "/home/a/.local/state/rowlock");
    EXPECT_EQ(server_folder_for("relative", "/home/a", false), "/home/a/.local/state/rowlock");
    EXPECT_EQ(server_folder_for("", "/root", true), "/var/lib/rowlock");
    EXPECT_EQ(server_folder_for("", "", false), std::nullopt);
}

TEST(ConnectionString, quotes_what_needs_it) {
    EXPECT_EQ(connection_string("/s", "d"), "host=/s hostaddr='' port=5432 user=rowlock dbname=d");
    EXPECT_EQ(connection_string("/a b", "it's\\"),
              R"(host='/a b' hostaddr='' port=5432 user=rowlock dbname='it\'s\\')");
    EXPECT_EQ(connection_string("/s", ""), "host=/s hostaddr='' port=5432 user=rowlock dbname=''");
}

TEST(ServerArguments, of_a_caller_can_not_open_the_server) {
    const auto arguments = server_arguments("/s", false, {{"listen_addresses", "*"}, {"work_mem", "8MB"}});
    const auto place = [&](std::string_view argument) {
        return std::ranges::find(arguments, argument) - arguments.begin();
    };
    EXPECT_LT(place("listen_addresses=*"), place("listen_addresses="));
    EXPECT_LT(place("listen_addresses="), std::ssize(arguments));
    EXPECT_LT(place("work_mem=8MB"), std::ssize(arguments));
}

TEST(ServerArguments, flush_to_disk_unless_the_cluster_is_thrown_away) {
    EXPECT_THAT(server_arguments("/s", false, {}), testing::Contains("fsync=on"));
    EXPECT_THAT(server_arguments("/s", true, {}), testing::Contains("fsync=off"));
}

TEST(LastComplaint, is_the_line_that_says_why) {
    EXPECT_EQ(last_complaint("LOG:  a\nFATAL:  because\nLOG:  shut down\n"), "FATAL:  because");
    EXPECT_EQ(last_complaint("first\nlast\n\n"), "last");
    EXPECT_EQ(last_complaint(""), "");
}

}  // namespace
}  // namespace rowlock
