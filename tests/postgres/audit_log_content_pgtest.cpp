// What goes in comes out, byte for byte, and verifies; what the server can't hold is refused and leaves nothing.
#include <random>

#include "postgres/audit_fixture.hpp"

namespace rowlock {
namespace {

using Text = std::optional<std::string>;

class AuditLogContent : public AuditTest {
  protected:
    /// Appends one by one, and again in one call (which takes another way to the server), and looks at both.
    void expect_round_trip(const std::vector<AuditEntry>& entries) {
        std::vector<TenantEntry> batch;
        for (const AuditEntry& entry : entries) {
            append("single", entry);
            batch.push_back({TenantId("batch"), entry});
        }
        app_->transact(of("batch"),
                       [&](Transaction& transaction) { static_cast<void>(log_.append_all(transaction, batch)); });
        for (const std::string tenant : {"single", "batch"}) {
            const auto stored = list(tenant);
            ASSERT_EQ(stored.size(), entries.size());
            for (std::size_t i = 0; i < entries.size(); ++i) expect_same(stored[i], entries[i]);
            expect_gapless(tenant, static_cast<std::int64_t>(entries.size()));
        }
        // What is there is the same to a retry as well.
        EXPECT_EQ(said(append("single", entries.back())), "already " + std::to_string(entries.size()));
    }
    static void expect_same(const StoredEntry& stored, const AuditEntry& entry) {
        EXPECT_EQ(stored.id, entry.id);
        EXPECT_EQ(stored.actor, entry.actor);
        EXPECT_EQ(stored.action, entry.action);
        EXPECT_EQ(stored.object, entry.object);
        EXPECT_TRUE(stored.data == entry.data) << stored.data.value_or("NULL").substr(0, 200);
    }
    void expect_round_trip_of_data(const std::vector<std::string>& texts) {
        std::vector<AuditEntry> entries;
        for (const std::string& text : texts) entries.push_back({.data = text});
        expect_round_trip(entries);
    }
    /// Refused with one of these SQLSTATEs, alone and among others; nothing is kept, and the tenant appends on.
    void expect_refused(const AuditEntry& entry, const std::vector<std::string>& sqlstates) {
        const std::string before = everything();
        const TenantId tenant("acme");
        const std::vector<TenantEntry> among{{tenant, {.data = "1"}}, {tenant, entry}, {tenant, {.data = "2"}}};
        for (const std::span<const TenantEntry> entries : {std::span(among).subspan(1, 1), std::span(among)}) {
            try {
                app_->transact(of("acme"), [&](Transaction& transaction) {
                    static_cast<void>(log_.append_all(transaction, entries));
                });
                ADD_FAILURE() << "taken: " << entry.data.value_or("NULL").substr(0, 100);
            } catch (const ServerError& error) {
                EXPECT_NE(std::find(sqlstates.begin(), sqlstates.end(), error.sqlstate()), sqlstates.end())
                    << error.sqlstate() << " for " << entry.data.value_or("NULL").substr(0, 100);
                EXPECT_EQ(error.recovery(), Recovery::give_up);
            }
        }
        EXPECT_EQ(everything(), before);
        EXPECT_EQ(said(append("acme")), "appended " + std::to_string(++appended_));
    }

    std::int64_t appended_ = 0;
};

TEST_F(AuditLogContent, KeepsJsonOfAllSortsByteForByte) {
    expect_round_trip_of_data({
        "{}",
        "[]",
        "null",
        "true",
        "\"\"",
        "0",
        "-0",
        "-0.0",
        "1.0",
        "1.00",
        "1e2",
        "1E+2",
        "0.1e-7",
        "1e400",
        "-1e-400",
        "123456789012345678901234567890123456789012345678901234567890.000000000000000000000000000000010",
        " \t\r\n {\n\"a\" :\t1 } \n",
        R"({"b": 1, "a": 2, "b": 3})",
        R"({"": {"": {"": []}}})",
        R"(["\u00e9", "é", "e\u0301", "é"])",
        R"(["\ud83d\ude00", "😀", "\u2028", "\/", "/", "\\", "\"", "\b\f\n\r\t"])",
        "[\"\x7f\", \"\xc2\x80\", \"\xef\xbb\xbf\", \"\xef\xbf\xbd\", \"\xf4\x8f\xbf\xbf\"]",
        R"(["NULL", "{1,2}", "'", "''", "$1", "$$", "\\x00", "%s"])",
        R"({"a": [1, [2, [3, {"b": null}]]], "c": {"d": false}})",
    });
}

TEST_F(AuditLogContent, KeepsBigJson) {
    const std::string megabyte = "[\"" + std::string(std::size_t{1} << 20U, 'x') + "\"]";
    std::string many = "[0";
    for (int i = 1; i < 100000; ++i) many += ", " + std::to_string(i);
    constexpr std::size_t levels = 1500;
    const std::string deep = std::string(levels, '[') + std::string(levels, ']');
    std::string deep_object;
    for (std::size_t i = 0; i < levels; ++i) deep_object += "{\"a\":";
    deep_object += "1" + std::string(levels, '}');
    expect_round_trip_of_data({megabyte, many + "]", deep, deep_object, std::string(100000, ' ') + "1"});
}

TEST_F(AuditLogContent, RefusesJsonThatTheServerCanNotHold) {
    for (const std::string text : {R"("\u0000")", R"({"a\u0000b": 1})", R"([[["x\u0000"]]])"}) {
        expect_refused({.data = text}, {"22P05"});
    }
    for (const std::string text : {"1e200000", "[1, -1e200000]", R"({"a": 1e131073})"}) {
        expect_refused({.data = text}, {"22003"});
    }
    for (const std::string text : {R"("\ud83d")", R"("\ude00")", R"("\ud83d\ud83d")", R"("\ud83dx")"}) {
        expect_refused({.data = text}, {"22P02", "22P05"});
    }
    for (const std::string text :
         {"",          " ",      "{",      "}",     "{\"a\": 1,}", "[1, 2",  "01",       "1.",
          ".5",        "+1",     "1e",     "NaN",   "Infinity",    "'a'",    "\"a",      "\"\\x\"",
          "\"\\u12\"", "{a: 1}", "{1: 1}", "{} {}", "nul",         "\"\t\"", "// no\n1", "\xef\xbb\xbf{}"}) {
        expect_refused({.data = text}, {"22P02"});
    }
}

TEST_F(AuditLogContent, RefusesJsonThatIsTooDeep) {
    constexpr std::size_t levels = 1000000;
    expect_refused({.data = std::string(levels, '[') + std::string(levels, ']')}, {"54001"});
}

TEST_F(AuditLogContent, RefusesTextThatIsNotUtf8) {
    for (const std::string text : {"\xff", "a\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80"}) {
        expect_refused({.actor = text}, {"22021"});
        expect_refused({.data = "\"" + text + "\""}, {"22021"});
    }
}

TEST_F(AuditLogContent, RefusesANulByteSinceTheServerWouldKeepWhatIsBeforeItAlone) {
    const std::string nul("a\0b", 3);
    const std::string json("1\0 ", 3);
    for (const AuditEntry& entry :
         std::vector<AuditEntry>{{.actor = nul}, {.action = nul}, {.object = nul}, {.data = json}}) {
        const TenantId tenant("acme");
        const std::vector<TenantEntry> among{{tenant, {}}, {tenant, entry}};
        for (const std::span<const TenantEntry> entries : {std::span(among).subspan(1), std::span(among)}) {
            EXPECT_THROW(app_->transact(of("acme"),
                                        [&](Transaction& transaction) {
                                            static_cast<void>(log_.append_all(transaction, entries));
                                        }),
                         InvalidInput);
        }
    }
    EXPECT_EQ(everything(), "");
    append("acme");
    expect_gapless("acme", 1);
}

TEST_F(AuditLogContent, KeepsAnyTextAndTellsEmptyFromNull) {
    const std::vector<Text> texts{std::nullopt,
                                  "",
                                  " ",
                                  "NULL",
                                  "null",
                                  "'; DROP TABLE rowlock.audit_log; --",
                                  "\"quoted\"",
                                  "{1,2}",
                                  "back\\slash \\\" \\",
                                  "tab\tline\r\nbreak\x01\x7f",
                                  "\xf0\x9f\x98\x80 \xc3\xa9 e\xcc\x81 \xe2\x80\xae \xef\xbb\xbf",
                                  "$1 $$ %s \\x00",
                                  std::string(100000, 'y')};
    std::vector<AuditEntry> entries;
    for (const Text& text : texts) {
        entries.push_back({.actor = text});
        entries.push_back({.action = text});
        entries.push_back({.object = text});
        entries.push_back({.actor = text, .action = text, .object = text});
    }
    expect_round_trip(entries);
}

TEST_F(AuditLogContent, OfAnySortIsKeptAndRaisesNoFalseAlarm) {
    constexpr std::array<std::string_view, 16> pieces{"a",
                                                      "Z",
                                                      "0",
                                                      " ",
                                                      "\"",
                                                      "\\",
                                                      "'",
                                                      ",",
                                                      "{",
                                                      "}",
                                                      "\n",
                                                      "\x01",
                                                      "\xc3\xa9",
                                                      "\xe2\x82\xac",
                                                      "\xf0\x9f\x98\x80",
                                                      "NULL"};
    constexpr std::array<std::string_view, 8> json{"null", "[1, 2]", "1e400",   "\"\\u00e9\"", "{\"a\":1,\"a\":2}",
                                                   " {} ", "-0",     "\"\\\\\""};
    std::mt19937 dice(7);
    const auto text = [&]() -> Text {
        if (dice() % 5 == 0) return std::nullopt;
        std::string result;
        for (std::size_t length = dice() % 12; length > 0; --length) result += pieces.at(dice() % pieces.size());
        return result;
    };
    std::vector<AuditEntry> entries;
    for (int i = 0; i < full_or(600, 100); ++i) {
        AuditEntry entry{.actor = text(), .action = text(), .object = text()};
        if (dice() % 4 != 0) entry.data = std::string(json.at(dice() % json.size()));
        entries.push_back(std::move(entry));
    }
    expect_round_trip(entries);
}

TEST_F(AuditLogContent, IsListedFromAnyNumberOnInOrder) {
    append_many("acme", 10);
    append_many("globex", 3);
    const auto seqs = [&](std::int64_t first, std::int64_t count_max) {
        std::string text;
        app_->transact(of("acme"), [&](Transaction& transaction) {
            for (const StoredEntry& entry : AuditLog::list(transaction, first, count_max)) {
                text += std::to_string(entry.seq) + " ";
            }
        });
        return text;
    };
    EXPECT_EQ(seqs(1, 3), "1 2 3 ");
    EXPECT_EQ(seqs(9, 100), "9 10 ");
    EXPECT_EQ(seqs(11, 100), "");
    EXPECT_EQ(seqs(-5, 1), "1 ");
    EXPECT_EQ(seqs(1, 0), "");
    EXPECT_EQ(seqs(1, -1), "");
    EXPECT_EQ(list("nobody").size(), 0U);
}

}  // namespace
}  // namespace rowlock
