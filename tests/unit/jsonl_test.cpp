#include "cli/jsonl.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rowlock::cli {
namespace {

JsonlEntry good(std::string_view line) {
    auto parsed = parse_line(line);
    if (const auto* const bad = std::get_if<BadLine>(&parsed)) {
        ADD_FAILURE() << bad->column << ": " << bad->reason;
        return {{TenantId("none"), {}}, {}};
    }
    return std::get<JsonlEntry>(std::move(parsed));
}

BadLine bad(std::string_view line) {
    const auto parsed = parse_line(line);
    const auto* const refused = std::get_if<BadLine>(&parsed);
    if (refused == nullptr) {
        ADD_FAILURE() << line;
        return {};
    }
    return *refused;
}

TEST(ParseLine, TakesEveryMemberInAnyOrder) {
    const TenantEntry entry =
        good(R"({"data": {"a": [1, 2.50]} ,"object":"o","entry_id":"01890a5d-ac96-774b-bcce-b302099a8057",)"
             R"("action":"x","actor":"\u00e9","tenant":"acme"})");
    EXPECT_EQ(entry.tenant.text(), "acme");
    EXPECT_EQ(entry.entry.actor, "é");
    EXPECT_EQ(entry.entry.action, "x");
    EXPECT_EQ(entry.entry.object, "o");
    EXPECT_EQ(entry.entry.data, R"({"a": [1, 2.50]})") << "byte for byte";
    EXPECT_EQ(entry.entry.id.text(), "01890a5d-ac96-774b-bcce-b302099a8057");
}

TEST(ParseLine, TakesASubjectWhereThereIsDataToEncrypt) {
    EXPECT_EQ(good(R"({"tenant":"acme","data":1,"subject":"ann"})").subject, "ann");
    EXPECT_EQ(good(R"({"tenant":"acme","data":1,"subject":null})").subject, std::nullopt);
    EXPECT_THAT(bad(R"({"tenant":"acme","subject":"ann"})").reason, testing::HasSubstr("no \"data\""));
    EXPECT_THAT(bad(R"({"tenant":"acme","data":1,"subject":""})").reason, testing::HasSubstr("empty"));
    EXPECT_THAT(bad(R"({"tenant":"acme","data":1,"subject":1})").reason, testing::HasSubstr("must be a string"));
}

TEST(ParseLine, TakesNullForAbsenceAndMakesAnId) {
    const TenantEntry one =
        good(R"({"tenant":"acme","actor":null,"action":null,"object":null,"data":null,"entry_id":null})");
    EXPECT_FALSE(one.entry.actor || one.entry.action || one.entry.object || one.entry.data);
    EXPECT_NE(one.entry.id.text(), good(R"({"tenant":"acme"})").entry.id.text());
}

TEST(ParseLine, TakesAnyJsonValueAsData) {
    for (const char* value : {"1e400", "\"x\"", "[]", "true", "{\"a\":1,\"a\":2}", "-0"}) {
        EXPECT_EQ(good(std::string(R"({"tenant":"a","data":)") + value + "}").entry.data, value);
    }
}

TEST(ParseLine, NamesTheColumnOfWhatIsWrong) {
    EXPECT_EQ(bad("").column, 1);
    EXPECT_EQ(bad("x").column, 1);
    EXPECT_EQ(bad(R"({"tenant":"a" "b"})").column, 15);
    EXPECT_EQ(bad(R"({"tenant":7})").column, 11);
    EXPECT_EQ(bad(R"({"tenant":"a","actor":[]})").column, 23);
    EXPECT_EQ(bad(R"({"tenant":"a","entry_id":"x"})").column, 26);
    EXPECT_EQ(bad(R"({"tenant":""})").column, 11);
    EXPECT_EQ(bad("{\"tenant\":\"a\xff\"}").column, 13);
}

TEST(ParseLine, RefusesWhatItDoesNotKnowSoThatAMisspeltNameIsNotLost) {
    EXPECT_THAT(bad(R"({"tenant":"a","Actor":"b"})").reason, testing::HasSubstr("\"Actor\" is not known"));
}

TEST(ParseLine, RefusesALineWithoutATenantAndOneWithTwo) {
    EXPECT_THAT(bad("{}").reason, testing::HasSubstr("\"tenant\" is missing"));
    bad(R"({"tenant":"a","tenant":"a"})");
}

TEST(ParseLine, RefusesAZeroCharacterInANameButNotInData) {
    bad(R"({"tenant":"a\u0000"})");
    EXPECT_EQ(good(R"({"tenant":"a","data":"\u0000"})").entry.data, R"("\u0000")") << "the server's to refuse";
}

}  // namespace
}  // namespace rowlock::cli
