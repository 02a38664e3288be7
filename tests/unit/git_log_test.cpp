#include "cli/git_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rowlock::cli {
namespace {

using testing::ElementsAre;
using namespace std::string_view_literals;

TEST(ParseGitLog, ReadsFieldsAndFilesOfEachCommit) {
    const auto commits = parse_git_log(
        "\x1e"
        "aa\x1f"
        "Ann\x1f"
        "2026-01-01T00:00:00Z\x1f"
        "First\x1f"
        "\0\na file\0b\0\0"
        "\x1e"
        "bb\x1f"
        "Bob\x1f"
        "2026-01-02T00:00:00Z\x1f"
        "Second\x1f"
        "\0\nété\"\n\0"sv);
    ASSERT_EQ(commits.size(), 2);
    EXPECT_EQ(commits[0].hash, "aa");
    EXPECT_EQ(commits[0].author, "Ann");
    EXPECT_EQ(commits[0].date, "2026-01-01T00:00:00Z");
    EXPECT_EQ(commits[0].subject, "First");
    EXPECT_THAT(commits[0].files, ElementsAre("a file", "b"));
    EXPECT_EQ(commits[1].author, "Bob");
    EXPECT_THAT(commits[1].files, ElementsAre("été\"\n"));
}

TEST(ParseGitLog, TakesACommitWithoutFilesAndOneWithoutASubject) {
    const auto commits = parse_git_log(
        "\x1e"
        "aa\x1f"
        "Ann\x1f"
        "d\x1f"
        "\x1f"
        "\0"sv);
    ASSERT_EQ(commits.size(), 1);
    EXPECT_EQ(commits[0].subject, "");
    EXPECT_TRUE(commits[0].files.empty());
}

TEST(ParseGitLog, OfNothingIsNothing) {
    EXPECT_TRUE(parse_git_log("").empty());
    EXPECT_TRUE(parse_git_log("no record at all").empty());
}

TEST(ParseGitLog, OfACutTextKeepsWhatIsThere) {
    const auto commits = parse_git_log(
        "\x1e"
        "aa\x1f"
        "Ann"sv);
    ASSERT_EQ(commits.size(), 1);
    EXPECT_EQ(commits[0].author, "Ann");
    EXPECT_EQ(commits[0].date, "");
}

}  // namespace
}  // namespace rowlock::cli
