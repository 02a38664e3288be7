#include "json/json.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace rowlock {

namespace {

std::vector<JsonMember> members_of(std::string_view text) {
    auto parsed = parse_object(text);
    if (const auto* error = std::get_if<JsonError>(&parsed)) {
        ADD_FAILURE() << error->reason << " at " << error->offset << " of " << text.substr(0, 200);
        return {};
    }
    return std::get<std::vector<JsonMember>>(std::move(parsed));
}

void expect_error(std::string_view text, std::size_t offset, std::string_view reason) {
    const auto parsed = parse_object(text);
    const auto* error = std::get_if<JsonError>(&parsed);
    ASSERT_NE(error, nullptr) << text;
    EXPECT_EQ(error->offset, offset) << text;
    EXPECT_EQ(error->reason, reason) << text;
}

TEST(Json, KeepsEachValueByteForByte) {
    const std::string_view text =
        " { \"a\" : [ 1 ,\t2 ] ,\"b\":{\"x\":  1.50},\"c\":\"q\\u00e9\\n\" , \"d\":-0.0e+07,\"e\":true,\"f\":null}\n";
    const auto members = members_of(text);
    ASSERT_EQ(members.size(), 6U);
    const std::vector<std::pair<std::string, std::string>> expected{
        {"a", "[ 1 ,\t2 ]"}, {"b", "{\"x\":  1.50}"}, {"c", "\"q\\u00e9\\n\""},
        {"d", "-0.0e+07"},   {"e", "true"},           {"f", "null"}};
    for (std::size_t i = 0; i < members.size(); ++i) {
        EXPECT_EQ(members[i].name, expected[i].first);
        EXPECT_EQ(members[i].raw, expected[i].second);
        EXPECT_EQ(text.substr(members[i].offset, members[i].raw.size()), members[i].raw);
    }
    EXPECT_EQ(members[2].text, "q\xC3\xA9\n");
    EXPECT_EQ(members[0].kind, JsonKind::array);
    EXPECT_EQ(members[1].kind, JsonKind::object);
    EXPECT_EQ(members[2].kind, JsonKind::string);
    EXPECT_EQ(members[3].kind, JsonKind::number);
    EXPECT_EQ(members[4].kind, JsonKind::boolean);
    EXPECT_EQ(members[5].kind, JsonKind::null);
}

TEST(Json, FindsTheElementsOfAnArray) {
    const auto parsed = parse_array("[ {\"a\":1}, {} ,\"x,y\",[],7 ]");
    const auto& elements = std::get<std::vector<JsonMember>>(parsed);
    ASSERT_EQ(elements.size(), 5U);
    EXPECT_EQ(elements[0].raw, "{\"a\":1}");
    EXPECT_EQ(elements[1].raw, "{}");
    EXPECT_EQ(elements[2].text, "x,y");
    EXPECT_EQ(elements[3].raw, "[]");
    EXPECT_EQ(elements[4].raw, "7");
    EXPECT_EQ(elements[4].name, "");
    EXPECT_EQ(std::get<JsonError>(parse_array("{}")).reason, "expected an array: '['");
}

TEST(Json, AnObjectMayBeEmpty) {
    EXPECT_TRUE(members_of(" {  } ").empty());
}

TEST(Json, NumbersMayHaveAnySize) {
    const std::string digits(100'000, '9');
    const std::string text =
        "{\"a\":1e400,\"b\":-1E-99999999999999999999,\"c\":" + digits + ",\"d\":0." + digits + "e" + digits + "}";
    const auto members = members_of(text);
    ASSERT_EQ(members.size(), 4U);
    EXPECT_EQ(members[0].raw, "1e400");
    EXPECT_EQ(members[1].raw, "-1E-99999999999999999999");
    EXPECT_EQ(members[2].raw, digits);
    for (const std::string_view number :
         {"1e400", "-1e-400", "1e+0400", "0.0e00", "10", "100.001", "-0", "0e0", "1E400"}) {
        EXPECT_TRUE(valid_json(number)) << number;
    }
    for (const std::string_view number :
         {"00", "-01", "0123", "1e4.5", "1e4e4", "1..5", "1.5.5", "1e", "1e+", "-e5", "1-1", "0-01", "1e5-01"}) {
        EXPECT_FALSE(valid_json(number)) << number;
    }
}

TEST(Json, NestingMayHaveAnyDepth) {
    constexpr std::size_t depth = 1'000'000;
    const std::string array = std::string(depth, '[') + std::string(depth, ']');
    const std::string text = "{\"a\":" + array + "}";
    EXPECT_EQ(members_of(text).at(0).raw, array);
    EXPECT_TRUE(valid_json(array));
    EXPECT_FALSE(valid_json(std::string(depth, '[')));
    std::string objects;
    for (std::size_t i = 0; i < depth; ++i) objects += "{\"a\":";
    EXPECT_FALSE(valid_json(objects));
    EXPECT_TRUE(valid_json(objects + "1" + std::string(depth, '}')));
}

TEST(Json, StringsMayBeLong) {
    const std::string letters(1U << 20U, 'x');
    EXPECT_EQ(members_of("{\"" + letters + "\":\"" + letters + "\"}").at(0).text, letters);
}

TEST(Json, SaysInPlainWordsWhatIsWrongAndWhere) {
    expect_error("", 0, "there is no value: the text is empty");
    expect_error("  \n", 3, "there is no value: the text is empty");
    expect_error("abc", 0, "expected a value");
    expect_error("\xEF\xBB\xBF{}", 0, "expected a value");
    expect_error("[1]", 0, "expected an object: '{'");
    expect_error(" 7", 1, "expected an object: '{'");
    expect_error("{", 1, "the text ends where a member's name was expected");
    expect_error("{a:1}", 1, "expected a member's name in double quotes");
    expect_error("{\"a\" 1}", 5, "expected ':'");
    expect_error("{\"a\":}", 5, "expected a value");
    expect_error("{\"a\":1 \"b\":2}", 7, "expected ',' or '}'");
    expect_error("{\"a\":1,}", 7, "expected a member's name in double quotes");
    expect_error("{\"a\":[1 2]}", 8, "expected ',' or ']'");
    expect_error("{\"a\":[1,]}", 8, "expected a value");
    expect_error("{\"a\":\"x", 7, "the text ends inside a string");
    expect_error("{\"a\":\"x\ny\"}", 7, "a control character in a string must be escaped");
    expect_error(std::string_view("{\"a\":\"x\0y\"}", 11), 7, "a control character in a string must be escaped");
    expect_error("{\"a\":\"\\x\"}", 6, "unknown escape in a string");
    expect_error("{\"a\":\"\\u12g4\"}", 6, "expected four hexadecimal digits after \\u");
    expect_error("{\"a\":1.}", 7, "expected a digit after the decimal point");
    expect_error("{\"a\":1e}", 7, "expected a digit in the exponent");
    expect_error("{\"a\":01}", 6, "expected ',' or '}'");
    expect_error("{} x", 3, "expected nothing more after the value");
    expect_error("{}{}", 2, "expected nothing more after the value");
    expect_error(std::string_view("{}\0", 3), 2, "expected nothing more after the value");
    expect_error(std::string_view("\0{}", 3), 0, "expected a value");
    expect_error("{\"a\":1,\"\\u0061\":2}", 7, "the member \"a\" is there twice");
}

TEST(Json, RefusesWhatOtherParsersLetPass) {
    for (const std::string_view text :
         {"NaN",       "Infinity",    "-",     "+1",  ".5",    "1.e5",    "0x10",     "'a'",
          "[1,,2]",    "{\"a\":1,,}", "nul",   "tru", "truex", "// c\n1", "/* c */1", "[1}",
          "{\"a\":1]", "\"\\",        "\"\\u", "]",   "}",     ",",       ":"}) {
        EXPECT_FALSE(valid_json(text)) << text;
    }
}

TEST(Json, ANameMayBeThereTwiceDeeperDown) {
    EXPECT_EQ(members_of("{\"a\":{\"b\":1,\"b\":2}}").at(0).raw, "{\"b\":1,\"b\":2}");
    EXPECT_TRUE(valid_json("{\"a\":1,\"a\":2}"));
}

TEST(Json, RefusesWhatIsNotUtf8) {
    expect_error("{\"a\":\"\xFF\"}", 6, "the text is not UTF-8");
    expect_error("{\"a\":\"\xED\xA0\x80\"}", 6, "the text is not UTF-8");
}

TEST(Json, KeepsLoneSurrogatesInRawValuesButGivesThemNoText) {
    for (const std::string_view value : {"[\"\\ud800\"]", "[\"\\uDFFF\"]", "[\"\\udc00\\ud800\"]",
                                         "[\"\\uD83D\\u0041\"]", "[\"\\ud800x\"]", "{\"\\ud800\":1}"}) {
        EXPECT_TRUE(valid_json(value)) << value;
        EXPECT_EQ(members_of("{\"a\":" + std::string(value) + "}").at(0).raw, value);
    }
    expect_error("{\"a\":\"\\ud800\"}", 6, "half a surrogate pair has no text");
    expect_error("{\"a\":\"x\\udc00\"}", 7, "half a surrogate pair has no text");
    expect_error("{\"a\":\"\\ud800\\u0041\"}", 6, "half a surrogate pair has no text");
    expect_error("{\"\\ud800\":1}", 2, "half a surrogate pair has no text");
    EXPECT_EQ(members_of("{\"a\":\"\\uD83D\\ude00\"}").at(0).text, "\xF0\x9F\x98\x80");
    EXPECT_FALSE(valid_json("\"\\ud8g0\""));
    EXPECT_FALSE(valid_json("\"\\ud8\""));
}

TEST(Json, UnescapesEveryEscape) {
    EXPECT_EQ(members_of("{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\u00FF\\u20ac\"}").at(0).text,
              std::string("\"\\/\b\f\n\r\t\0\xC3\xBF\xE2\x82\xAC", 14));
    EXPECT_EQ(members_of("{\"a\":\"\\\\ud800\"}").at(0).text, "\\ud800");
}

TEST(Json, ReadsWhatItQuotes) {
    std::string every;
    for (int byte = 0; byte < 128; ++byte) every += static_cast<char>(byte);
    every += "\xC3\xA9\xF0\x9F\x98\x80";
    EXPECT_EQ(members_of("{\"a\":" + quote_json(every) + "}").at(0).text, every);
    EXPECT_EQ(quote_json("a\"\\\n\x01"), "\"a\\\"\\\\\\n\\u0001\"");
    EXPECT_EQ(quote_json("a\xFF\xC3z"), "\"a\xEF\xBF\xBD\xEF\xBF\xBDz\"");
}

TEST(Json, NeverStopsTheProgramWhateverItIsGiven) {
    std::mt19937 random(1);
    constexpr std::string_view alphabet = "{}[]\",:\\u0d8fe1.-+tnrl \n\x01\xC3\xA9";
    const std::string seed = "{\"a\":[1,-2.5e3,\"x\\u00e9\\ud83d\\ude00\"],\"b\":{\"c\":null,\"d\":true}}";
    for (int round = 0; round < 50'000; ++round) {
        std::string text = seed;
        const std::size_t changes = 1 + random() % 4;
        for (std::size_t change = 0; change < changes; ++change) {
            const std::size_t place = random() % text.size();
            if (random() % 2 == 0) {
                text[place] = alphabet[random() % alphabet.size()];
            } else {
                text.insert(place, 1, alphabet[random() % alphabet.size()]);
            }
        }
        const auto parsed = parse_object(text);
        if (const auto* error = std::get_if<JsonError>(&parsed)) {
            ASSERT_LE(error->offset, text.size());
        } else {
            for (const JsonMember& member : std::get<std::vector<JsonMember>>(parsed))
                ASSERT_TRUE(valid_json(member.raw)) << text;
        }
    }
}

}  // namespace

}  // namespace rowlock
