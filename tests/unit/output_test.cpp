#include "cli/output.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/explain.hpp"
#include "rowlock/error.hpp"

namespace rowlock::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Columns, OfWideCharactersAreTwoAndOfCombiningMarksNone) {
    EXPECT_EQ(columns_of("abc"), 3);
    EXPECT_EQ(columns_of("été"), 3);
    EXPECT_EQ(columns_of("王小明"), 6);
    EXPECT_EQ(columns_of("e\u0301"), 1);
    EXPECT_EQ(columns_of("🎉"), 2);
    EXPECT_EQ(columns_of("\xff\xfe"), 2);
    EXPECT_EQ(columns_of(""), 0);
}

TEST(OneLine, CutsWithAnEllipsisNeverInsideOfACharacter) {
    EXPECT_EQ(one_line("abcdef", 6), "abcdef");
    EXPECT_EQ(one_line("abcdef", 5), "abcd…");
    EXPECT_EQ(one_line("été", 2), "é…");
    EXPECT_EQ(one_line("王小明", 6), "王小明");
    EXPECT_EQ(one_line("王小明", 5), "王小…");
    EXPECT_EQ(one_line("王小明", 4), "王…");
    EXPECT_EQ(one_line("abc", 1), "…");
    EXPECT_EQ(one_line("abc", 0), "");
}

TEST(OneLine, TakesAwayWhatMovesTheCursorOrTurnsTheWriting) {
    EXPECT_EQ(one_line("a\nb\tc\x1b[31md\x7f", 80), "a b c [31md ");
    EXPECT_EQ(one_line("a\u009bb\u202ec\u2028d", 80), "a b c d");
    EXPECT_EQ(one_line("a\xff", 80), "a\uFFFD");
}

TEST(Grouped, SetsACommaEveryThreeDigits) {
    EXPECT_EQ(grouped(0), "0");
    EXPECT_EQ(grouped(999), "999");
    EXPECT_EQ(grouped(1000), "1,000");
    EXPECT_EQ(grouped(1234567), "1,234,567");
    EXPECT_EQ(grouped(-123), "-123");
    EXPECT_EQ(grouped(-1234), "-1,234");
}

TEST(Counted, KnowsOneFromMany) {
    EXPECT_EQ(counted(1, "entry", "entries"), "1 entry");
    EXPECT_EQ(counted(0, "entry", "entries"), "0 entries");
    EXPECT_EQ(counted(2000, "entry", "entries"), "2,000 entries");
}

TEST(PerSecond, IsANumberEvenWhereNoTimeHasPassed) {
    EXPECT_EQ(per_second(10, 2.0), 5);
    EXPECT_EQ(per_second(0, 0.0), 0);
    EXPECT_EQ(per_second(1, 0.0), 1000000);
}

TEST(UtcTime, HasMicrosecondsAndAlsoGoesBeforeTheEpoch) {
    EXPECT_EQ(utc_time(0), "1970-01-01T00:00:00.000000Z");
    EXPECT_EQ(utc_time(-1), "1969-12-31T23:59:59.999999Z");
    EXPECT_EQ(utc_time(1796051045123456), "2026-11-30T15:04:05.123456Z");
}

TEST(TableLines, SetNumbersToTheRightAndLeaveNoBlanksAtTheEnd) {
    Table table({"n", "name"});
    table.add({"1", "a"});
    table.add({"20", "long name"});
    EXPECT_THAT(table.lines({}), ElementsAre(" n  name", " 1  a", "20  long name"));
}

TEST(TableLines, AlignBehindWideCharacters) {
    Table table({"a", "b"});
    table.add({"王", "x"});
    table.add({"abc", "y"});
    EXPECT_THAT(table.lines({}), ElementsAre("a    b", "王   x", "abc  y"));
}

TEST(TableLines, FitFortyColumnsByCuttingTheWidestFirst) {
    Table table({"seq", "actor", "data"});
    table.add({"1", "ann", std::string(100, 'x')});
    table.add({"2", std::string(30, 'y'), "short"});
    Style style;
    style.width = 40;
    const auto lines = table.lines(style);
    for (const std::string& line : lines) EXPECT_LE(columns_of(line), 40) << line;
    EXPECT_THAT(lines[1], HasSubstr("ann"));
    EXPECT_THAT(lines[1], HasSubstr("x…"));
    EXPECT_THAT(lines[2], HasSubstr("y…"));
}

TEST(TableLines, LeaveATimeWhole) {
    Table table({"seq", "recorded at", "data"});
    table.add({"1", "2026-12-02T19:07:16Z", std::string(100, 'x')});
    table.add({"2", "-", "2026-12-02"});
    Style style;
    style.width = 40;
    const auto lines = table.lines(style);
    EXPECT_EQ(lines[1], "  1  2026-12-02T19:07:16Z  xxxxxxxxxxxx…");
    EXPECT_EQ(lines[2], "  2  -                     2026-12-02");
}

TEST(TableLines, AreNotCutWhereThereIsNoTerminal) {
    Table table({"data"});
    table.add({std::string(500, 'x')});
    Style style;
    style.width = Style::unlimited;
    EXPECT_EQ(table.lines(style)[1].size(), 500);
}

TEST(Tinted, IsPlainWithoutColour) {
    EXPECT_EQ(tinted({}, Tone::bad, "x"), "x");
    EXPECT_EQ(tinted({.color = true}, Tone::bad, "x"), "\033[31;1mx\033[0m");
}

TEST(JsonObjects, EscapeTextAndKeepJson) {
    JsonObject object;
    object.text("a\"", "\n").number("b", -1).boolean("c", true).optional_text("d", std::nullopt).raw("e", "[1]");
    EXPECT_EQ(object.str(), R"({"a\"":"\n","b":-1,"c":true,"d":null,"e":[1]})");
    EXPECT_EQ(JsonObject().str(), "{}");
    EXPECT_EQ(json_array({"1", "{}"}), "[1,{}]");
}

TEST(Explain, TellsTheCodeTheMessageAndWhatToDo) {
    const ServerError full({.sqlstate = "53100", .message = "no space", .detail = "On disk."}, Recovery::give_up);
    const Explanation explanation = explain(full);
    EXPECT_EQ(explanation.exit, Exit::setup);
    EXPECT_EQ(explanation.line,
              "no space (SQLSTATE 53100); On disk; free space on the server's disk, then run this again");
}

TEST(Explain, PassesTheServersOwnHintOnWhereItKnowsNothingBetter) {
    const ServerError refused({.sqlstate = "XX000", .message = "odd", .hint = "Ask."}, Recovery::give_up);
    EXPECT_EQ(explain(refused).line, "odd (SQLSTATE XX000); Ask.");
}

TEST(Explain, TellsWhoInstallsAnotherThingThanWhoAppends) {
    const auto refused = [](const char* statement) {
        return explain(ServerError({.sqlstate = "42501", .message = "no", .statement = statement}, Recovery::give_up))
            .line;
    };
    EXPECT_THAT(refused("schema.migration_001"), HasSubstr("install as a superuser"));
    EXPECT_THAT(refused("schema.drop"), HasSubstr("a member of rowlock_owner"));
    EXPECT_THAT(refused("audit.lock_head"), HasSubstr("GRANT rowlock_app TO"));
}

TEST(Explain, TakesBusyForAFindingAndADoubtForUndetermined) {
    const Busy busy({.sqlstate = "55P03", .message = "canceling statement"}, std::chrono::milliseconds(3000));
    EXPECT_EQ(explain(busy).exit, Exit::finding);
    EXPECT_THAT(explain(busy).line, HasSubstr("(SQLSTATE 55P03)"));
    EXPECT_THAT(explain(busy).line, HasSubstr("try again"));
    const Explanation doubt = explain(CommitOutcomeUnknown("lost"));
    EXPECT_EQ(doubt.exit, Exit::undetermined);
    EXPECT_THAT(doubt.line, HasSubstr("--entry-id"));
}

TEST(Explain, KnowsAMissingPasswordFromAMissingServer) {
    const auto line = [](const char* message) {
        return explain(ConnectionError(message, Recovery::reconnect_and_run_again)).line;
    };
    EXPECT_THAT(line("fe_sendauth: no password supplied"), HasSubstr("PGPASSWORD"));
    EXPECT_THAT(line("could not translate host name \"x\" to address"), HasSubstr("name of the host"));
    EXPECT_THAT(line("Connection refused"), HasSubstr("is the server running"));
}

TEST(Explain, MakesOneLineOfManyAndOfWhatIsNoErrorOfOurs) {
    EXPECT_EQ(explain(std::runtime_error("a\nb\x1b")).line, "a b ");
    EXPECT_EQ(explain(std::runtime_error("a")).exit, Exit::setup);
}

}  // namespace
}  // namespace rowlock::cli
