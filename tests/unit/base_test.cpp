#include <gtest/gtest.h>

#include <array>

#include "base/big_endian.hpp"
#include "base/hex.hpp"
#include "base/utf8.hpp"

namespace rowlock {

namespace {

TEST(Utf8, AcceptsTheFirstAndLastCodePointOfEachLength) {
    for (const std::string_view text : {"", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF",
                                        "\xEE\x80\x80", "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
        EXPECT_FALSE(first_invalid_utf8(text)) << to_hex(std::as_bytes(std::span(text)));
    }
}

TEST(Utf8, RefusesOverlongFormsSurrogatesAndWhatIsCutShort) {
    for (const std::string_view text : {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80",
                                        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC2",
                                        "\xE2\x82", "\xF0\x9F\x98", "\xC2\x41", "\xE2\x82\x41", "\xF0\x9F\x98\x41"}) {
        EXPECT_EQ(first_invalid_utf8(text), 0U) << to_hex(std::as_bytes(std::span(text)));
    }
    EXPECT_EQ(first_invalid_utf8("ab\xC3\xA9\xFF"), 4U);
}

TEST(Utf8, WritesEveryCodePointSoThatItIsAccepted) {
    for (std::uint32_t code_point = 0; code_point <= 0x10FFFF; ++code_point) {
        if (code_point >= 0xD800 && code_point <= 0xDFFF) continue;
        std::string text;
        append_utf8(text, code_point);
        ASSERT_FALSE(first_invalid_utf8(text)) << code_point;
    }
}

TEST(BigEndian, PutsTheHighestByteFirst) {
    std::array<std::byte, 12> bytes{};
    put_i64(put_u32(bytes.data(), 0x01020304), -2);
    EXPECT_EQ(to_hex(bytes), "01020304fffffffffffffffe");
}

}  // namespace

}  // namespace rowlock
