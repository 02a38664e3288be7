// append --jsonl: order, bad lines, odd shapes of input.
#include <fmt/format.h>

#include <ostream>
#include <thread>

#include "cli/command_test.hpp"

namespace rowlock::test {
namespace {

using testing::HasSubstr;

class AppendLines : public CommandOnDatabaseTest {
  protected:
    [[nodiscard]] ProcessResult append(const std::string& lines, Arguments more = {}) const {
        Arguments arguments{"append", "--jsonl", "-"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return on_database(arguments, lines);
    }
    /// The numbers in the data of a tenant's entries, in the order of the log.
    [[nodiscard]] std::string order(const std::string& tenant) const {
        return database_.value(
            "SELECT string_agg(data::json->>'n', ' ' ORDER BY seq) FROM rowlock.audit_log"
            " WHERE tenant_id = '" +
            tenant + "'");
    }
    void expect_intact() const {
        const ProcessResult verified = on_database({"verify", "--all"});
        EXPECT_EQ(verified.exit_code, 0) << verified.output << verified.errors;
    }
};

std::string line_of(const std::string& tenant, int number) {
    return fmt::format("{{\"tenant\":\"{}\",\"data\":{{\"n\":{}}}}}\n", tenant, number);
}

TEST_F(AppendLines, ByFourWritersKeepsTheOrderOfLinesWithinEachOfFiftyTenants) {
    constexpr int count = 10000;
    constexpr int tenants = 50;
    std::string lines;
    std::vector<std::string> expected(tenants);
    for (int i = 1; i <= count; ++i) {
        const auto tenant = static_cast<std::size_t>((i * 7919) % tenants);
        lines += line_of(fmt::format("t{}", tenant), i);
        expected[tenant] += fmt::format("{}{}", expected[tenant].empty() ? "" : " ", i);
    }
    const ProcessResult result = append(lines, {"--writers", "4", "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_EQ(result.errors, "") << "no progress where stderr is no terminal";
    EXPECT_EQ(member(result.output, "appended"), "10000");
    EXPECT_EQ(member(result.output, "bad"), "0");
    for (std::size_t tenant = 0; tenant < tenants; ++tenant) {
        EXPECT_EQ(order(fmt::format("t{}", tenant)), expected[tenant]);
    }
    EXPECT_EQ(database_.value("SELECT count(*) FROM rowlock.tenant_seq WHERE last_seq <> 200"), "0");
    expect_intact();
}

struct Bad {
    const char* name;
    std::string line;
    std::string says;
};

void PrintTo(const Bad& bad, std::ostream* out) {
    *out << bad.name;
}

class ABadLine : public AppendLines, public testing::WithParamInterface<Bad> {};

/// Two good lines, the bad one, two more.
std::string around(const std::string& bad) {
    return line_of("acme", 1) + line_of("bolt", 2) + bad + "\n" + line_of("acme", 4) + line_of("bolt", 5);
}

TEST_P(ABadLine, StopsTheWorkWithEveryLineBeforeItAppendedAndNothingBehind) {
    const ProcessResult result = append(around(GetParam().line));
    EXPECT_EQ(result.exit_code, 2);
    expect_one_line(result, {"standard input, line 3, ", GetParam().says,
                             "every line before line 3 is appended, nothing from there on", "--skip-bad"});
    EXPECT_EQ(order("acme"), "1");
    EXPECT_EQ(order("bolt"), "2");
    EXPECT_EQ(entries(), "2");
    EXPECT_EQ(append(line_of("acme", 3) + line_of("acme", 4) + line_of("bolt", 5)).exit_code, 0);
    EXPECT_EQ(order("acme"), "1 3 4");
    expect_intact();
}

TEST_P(ABadLine, IsLeftOutAndCountedWithSkipBad) {
    const ProcessResult result = append(around(GetParam().line), {"--skip-bad", "--json"});
    EXPECT_EQ(result.exit_code, 1);
    expect_one_line(result, {"standard input, line 3, ", GetParam().says, "left out"});
    EXPECT_EQ(member(result.output, "appended"), "4");
    EXPECT_EQ(member(result.output, "bad"), "1");
    EXPECT_EQ(order("acme"), "1 4");
    EXPECT_EQ(order("bolt"), "2 5");
    expect_intact();
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, ABadLine,
    testing::Values(Bad{"bad_json", R"({"tenant":"acme",})", "column 18: "},
                    Bad{"cut_short", R"({"tenant":"acme")", "column 17: "}, Bad{"no_object", R"([1])", "column 1: "},
                    Bad{"unknown_member", R"({"tenant":"acme","actr":"ann"})", "\"actr\" is not known"},
                    Bad{"member_twice", R"({"tenant":"acme","tenant":"bolt"})", "column "},
                    Bad{"wrong_type", R"({"tenant":"acme","actor":7})", "column 26: \"actor\" must be a string"},
                    Bad{"bad_uuid", R"({"tenant":"acme","entry_id":"7"})", "\"7\" is no UUID"},
                    Bad{"zero_character", R"({"tenant":"acme","data":"\u0000"})", "(SQLSTATE 22P05)"},
                    Bad{"huge_number", R"({"tenant":"acme","data":1e200000})", "(SQLSTATE 22003)"},
                    Bad{"no_tenant", R"({"actor":"ann"})", "\"tenant\" is missing"},
                    Bad{"empty_tenant", R"({"tenant":""})", "the name is empty"},
                    Bad{"reserved_action", R"({"tenant":"acme","action":"rowlock.x"})", "rowlock.x"},
                    Bad{"invalid_utf8", "{\"tenant\":\"acme\",\"actor\":\"\xff\"}", "column 27: "}),
    [](const auto& bad) { return bad.param.name; });

TEST_F(AppendLines, StopAtALineWhoseIdIsTakenAndAppendNothingBehindIt) {
    const std::string id = "\"entry_id\":\"01890a5d-ac96-774b-bcce-b302099a8057\"";
    const std::string first = fmt::format("{{\"tenant\":\"acme\",{},\"data\":{{\"n\":1}}}}\n", id);
    const std::string other = fmt::format("{{\"tenant\":\"acme\",{},\"data\":{{\"n\":3}}}}\n", id);
    const ProcessResult result = append(first + line_of("acme", 2) + other + line_of("acme", 4));
    EXPECT_EQ(result.exit_code, 2);
    expect_one_line(result, {"line 3, entry_id", "other content", "every line before line 3 is appended, nothing"});
    EXPECT_EQ(order("acme"), "1 2");
    EXPECT_EQ(append(first + line_of("acme", 5) + other + line_of("acme", 6), {"--skip-bad"}).exit_code, 1);
    EXPECT_EQ(order("acme"), "1 2 5 6");
    expect_intact();
}

TEST_F(AppendLines, TellTheFirstTwentyBadLinesAndCountTheRest) {
    std::string lines;
    for (int i = 0; i < 50; ++i) lines += "nonsense\n";
    const ProcessResult result = append(lines + line_of("acme", 1), {"--skip-bad"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(lines_of(result.errors).size(), 21);
    EXPECT_THAT(result.errors, HasSubstr("and 30 more bad lines"));
    EXPECT_THAT(result.output, HasSubstr("appended 1 entry"));
    EXPECT_THAT(result.output, HasSubstr("50 bad lines"));
}

TEST_F(AppendLines, OfFiveMegabytesAreAppended) {
    const std::string text(5 << 20, 'x');
    const ProcessResult result =
        append(fmt::format("{{\"tenant\":\"acme\",\"data\":\"{}\"}}\n", text) + line_of("acme", 2));
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_EQ(database_.value("SELECT octet_length(data::text) FROM rowlock.audit_log WHERE seq = 1"),
              std::to_string(text.size() + 2));
    expect_intact();
}

TEST_F(AppendLines, MayEndInCrlfBeBlankOrLackTheLastLineBreak) {
    const ProcessResult result = append("\n{\"tenant\":\"acme\"}\r\n\r\n  \t\n{\"tenant\":\"acme\"}");
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_EQ(entries("acme"), "2");
    const ProcessResult bad = append("\n\r\n{\"tenant\":\"acme\"}\nx");
    expect_one_line(bad, {"line 4, "});
}

TEST_F(AppendLines, OfAnEmptyInputAreNone) {
    const ProcessResult result = append("", {"--json"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(member(result.output, "appended"), "0");
    EXPECT_THAT(append("").output, HasSubstr("appended 0 entries"));
}

TEST_F(AppendLines, ComeFromAFileAsWell) {
    ASSERT_EQ(run_in_shell("printf '{\"tenant\":\"acme\"}\\n{}\\n' > lines.jsonl").exit_code, 0);
    const ProcessResult result = on_database({"append", "--jsonl", "lines.jsonl"});
    EXPECT_EQ(result.exit_code, 2);
    expect_one_line(result, {"rowlock: lines.jsonl, line 2, "});
    EXPECT_EQ(entries(), "1");
}

TEST_F(AppendLines, OfASlowPipeAreCommittedAsTheyCome) {
    ProcessOptions options = command({});
    options.environment.emplace_back("rowlock", ROWLOCK_COMMAND);
    options.arguments = {"bash", "-c",
                         "(echo '{\"tenant\":\"acme\"}'; sleep 60) | \"$rowlock\" --db '" + database_.connection() +
                             "' append --jsonl -"};
    BackgroundProcess slow(options);
    for (int i = 0; i < 500 && entries() == "0"; ++i) std::this_thread::sleep_for(std::chrono::milliseconds{20});
    EXPECT_EQ(entries(), "1");
}

}  // namespace
}  // namespace rowlock::test
