#include "postgres/sqlstate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

namespace rowlock {
namespace {

std::string output_of(const char* command) {
    std::string output;
    FILE* const pipe = popen(command, "r");
    if (pipe == nullptr) return output;
    std::array<char, 4096> piece{};
    while (std::fgets(piece.data(), static_cast<int>(piece.size()), pipe) != nullptr) output += piece.data();
    pclose(pipe);
    return output.substr(0, output.find('\n'));
}

struct ListedCode {
    std::string code;
    std::string condition;
};

/// The server's own list; empty where no server's files are installed.
std::vector<ListedCode> servers_own_list() {
    std::vector<ListedCode> list;
    std::ifstream file(output_of("pg_config --sharedir") + "/errcodes.txt");
    for (std::string line; std::getline(file, line);) {
        if (line.empty() || line.starts_with('#') || line.starts_with("Section:")) continue;
        std::istringstream words(line);
        std::string kind;
        std::string macro;
        ListedCode listed;
        words >> listed.code >> kind >> macro >> listed.condition;
        list.push_back(listed);
    }
    return list;
}

const SqlState* find(std::string_view code) {
    const auto states = sqlstates();
    const auto found = std::ranges::find(states, code, &SqlState::code);
    return found == states.end() ? nullptr : &*found;
}

TEST(SqlStates, are_all_of_the_servers_own_list_with_its_names_and_no_others) {
    // Without a condition name, the list's own macro is another name for a code that has one.
    std::map<std::string, std::string, std::less<>> listed;
    for (const auto& [code, condition] : servers_own_list()) {
        if (!condition.empty() || !listed.contains(code)) listed[code] = condition;
    }
    if (listed.empty()) GTEST_SKIP() << "there is no errcodes.txt here";
    EXPECT_GT(listed.size(), 200U);
    for (const auto& [code, condition] : listed) {
        const SqlState* const state = find(code);
        ASSERT_NE(state, nullptr) << code << ' ' << condition;
        EXPECT_TRUE(condition.empty() || state->condition == condition) << code << ' ' << condition;
    }
    for (const SqlState& state : sqlstates()) {
        const bool came_with_a_minor_version = state.code == "22P07";
        EXPECT_TRUE(listed.contains(state.code) || came_with_a_minor_version) << state.code;
    }
}

TEST(SqlStates, are_sorted_and_each_is_there_once) {
    EXPECT_TRUE(std::ranges::is_sorted(sqlstates(), std::less<>{}, &SqlState::code));
    EXPECT_EQ(std::ranges::adjacent_find(sqlstates(), {}, &SqlState::code), sqlstates().end());
    for (const SqlState& state : sqlstates()) EXPECT_EQ(state.code.size(), 5U) << state.code;
}

struct Meaning {
    std::string_view code;
    Recovery recovery;
};

TEST(RecoveryOf, tells_a_passing_reason_from_one_that_stays) {
    const std::vector<Meaning> meanings{
        {"40001", Recovery::run_again},
        {"40P01", Recovery::run_again},
        {"55P03", Recovery::run_again},
        {"08006", Recovery::reconnect_and_run_again},
        {"57P01", Recovery::reconnect_and_run_again},
        {"57P02", Recovery::reconnect_and_run_again},
        {"57P03", Recovery::reconnect_and_run_again},
        {"57P05", Recovery::reconnect_and_run_again},
        {"25P03", Recovery::reconnect_and_run_again},
        {"53300", Recovery::reconnect_and_run_again},
        {"26000", Recovery::reconnect_and_run_again},
        {"08007", Recovery::ask_server_first},
        {"40003", Recovery::ask_server_first},
        {"08P01", Recovery::give_up},
        {"08004", Recovery::give_up},
        {"23505", Recovery::give_up},
        {"25P02", Recovery::give_up},
        {"28P01", Recovery::give_up},
        {"3D000", Recovery::give_up},
        {"40002", Recovery::give_up},
        {"42P01", Recovery::give_up},
        {"53100", Recovery::give_up},
        {"57014", Recovery::give_up},
        {"XX000", Recovery::give_up},
    };
    for (const auto& [code, recovery] : meanings) EXPECT_EQ(recovery_of(code), recovery) << code;
}

TEST(RecoveryOf, goes_by_the_class_of_a_code_that_it_does_not_know) {
    EXPECT_EQ(recovery_of("40X99"), Recovery::run_again);
    EXPECT_EQ(recovery_of("08X99"), Recovery::reconnect_and_run_again);
    EXPECT_EQ(recovery_of("RL001"), Recovery::give_up);
    EXPECT_EQ(recovery_of(""), Recovery::give_up);
    EXPECT_EQ(recovery_of("ZZZZZ"), Recovery::give_up);
}

}  // namespace
}  // namespace rowlock
