#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/hex.hpp"
#include "crypto/hmac.hpp"

namespace rowlock {

namespace {

std::vector<std::byte> hex(std::string_view digits) {
    return from_hex(digits).value();
}

std::string repeat(std::string_view digits, std::size_t times) {
    std::string text;
    while (times-- > 0) text += digits;
    return text;
}

struct HmacVector {
    std::string key;
    std::string message;
    std::string mac;
};

// Source: RFC 4231, section 4. The fifth case gives only the first 128 bits.
std::vector<HmacVector> rfc_4231() {
    const std::string long_text =
        "5468697320697320612074657374207573696e672061206c6172676572207468616e20626c6f636b2d73697a65206b657920616e642061"
        "206c6172676572207468616e20626c6f636b2d73697a6520646174612e20546865206b6579206e6565647320746f206265206861736865"
        "64206265666f7265206265696e6720757365642062792074686520484d414320616c676f726974686d2e";
    return {
        {repeat("0b", 20), "4869205468657265", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {"4a656665", "7768617420646f2079612077616e7420666f72206e6f7468696e673f",
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {repeat("aa", 20), repeat("dd", 50), "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
        {"0102030405060708090a0b0c0d0e0f10111213141516171819", repeat("cd", 50),
         "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
        {repeat("0c", 20), "546573742057697468205472756e636174696f6e", "a3b6167473100ee06e0c796c2955552b"},
        {repeat("aa", 131),
         "54657374205573696e67204c6172676572205468616e20426c6f636b2d53697a65204b6579202d2048617368204b6579204669727374",
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
        {repeat("aa", 131), long_text, "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
    };
}

TEST(Hmac, GivesTheMacsOfRfc4231) {
    for (const HmacVector& vector : rfc_4231()) {
        Hmac hmac(hex(vector.key));
        EXPECT_EQ(to_hex(hmac.of(hex(vector.message))).substr(0, vector.mac.size()), vector.mac);
    }
}

TEST(Hmac, GivesTheSameMacHoweverTheMessageIsCut) {
    Hmac hmac(bytes_of("key"));
    const std::string message(300, 'm');
    const Mac whole = hmac.of(bytes_of(message));
    for (std::size_t cut = 0; cut <= message.size(); ++cut) {
        hmac.begin();
        hmac.update(bytes_of(message).first(cut));
        hmac.update(bytes_of(message).subspan(cut));
        ASSERT_EQ(hmac.finish(), whole) << cut;
    }
}

TEST(Hmac, DropsAMessageUnderWayWhenAnotherBegins) {
    Hmac hmac(bytes_of("key"));
    hmac.begin();
    hmac.update(bytes_of("something else"));
    EXPECT_EQ(hmac.of(bytes_of("message")), Hmac(bytes_of("key")).of(bytes_of("message")));
}

TEST(Hmac, TakesAnEmptyKeyAndAnEmptyMessage) {
    EXPECT_EQ(to_hex(Hmac({}).of({})), "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

struct HkdfVector {
    std::string key;
    std::string salt;
    std::string info;
    std::string output;
};

// Source: RFC 5869, appendix A.1 to A.3.
TEST(Hkdf, GivesTheKeysOfRfc5869) {
    std::string key;
    std::string salt;
    std::string info;
    for (unsigned i = 0; i < 80; ++i) {
        const std::byte bytes[] = {static_cast<std::byte>(i), static_cast<std::byte>(0x60U + i),
                                   static_cast<std::byte>(0xb0U + i)};
        key += to_hex(std::span(bytes).subspan(0, 1));
        salt += to_hex(std::span(bytes).subspan(1, 1));
        info += to_hex(std::span(bytes).subspan(2, 1));
    }
    const std::vector<HkdfVector> vectors{
        {repeat("0b", 22), "000102030405060708090a0b0c", "f0f1f2f3f4f5f6f7f8f9",
         "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"},
        {key, salt, info,
         "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09da3275600c2f0"
         "9b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87"},
        {repeat("0b", 22), "", "",
         "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"},
    };
    for (const HkdfVector& vector : vectors) {
        std::vector<std::byte> output(vector.output.size() / 2);
        hkdf_sha256(hex(vector.key), hex(vector.salt), hex(vector.info), output);
        EXPECT_EQ(to_hex(output), vector.output);
    }
}

TEST(ConstantTime, ComparesAllBytesAndTheLength) {
    EXPECT_TRUE(equal_in_constant_time(bytes_of("abc"), bytes_of("abc")));
    EXPECT_TRUE(equal_in_constant_time({}, {}));
    EXPECT_FALSE(equal_in_constant_time(bytes_of("abc"), bytes_of("abd")));
    EXPECT_FALSE(equal_in_constant_time(bytes_of("abc"), bytes_of("bbc")));
    EXPECT_FALSE(equal_in_constant_time(bytes_of("abc"), bytes_of("ab")));
    EXPECT_FALSE(equal_in_constant_time(bytes_of("abc"), {}));
}

TEST(Secrets, AreOverwrittenWhenWiped) {
    std::string secret(100, 's');
    const char* const place = secret.data();
    wipe(secret);
    EXPECT_TRUE(secret.empty());
    EXPECT_EQ(std::string_view(place, 1), std::string_view("\0", 1));
    std::array<std::byte, 4> bytes{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
    wipe(std::span(bytes));
    EXPECT_EQ(to_hex(bytes), "00000000");
}

TEST(Random, GivesOtherBytesEachTime) {
    std::array<std::byte, 32> first{};
    std::array<std::byte, 32> second{};
    fill_random(first);
    fill_random(second);
    EXPECT_NE(first, second);
}

}  // namespace

}  // namespace rowlock
