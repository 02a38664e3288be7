// Ed25519, SHA-256, base 64 and times against known answers.
#include <gtest/gtest.h>

#include "base/base64.hpp"
#include "base/bytes.hpp"
#include "base/hex.hpp"
#include "base/utc_time.hpp"
#include "crypto/ed25519.hpp"
#include "crypto/sha256.hpp"

namespace rowlock {
namespace {

template <std::size_t size>
std::array<std::byte, size> array_of(std::string_view digits) {
    std::array<std::byte, size> array{};
    const auto bytes = from_hex(digits).value();
    std::copy(bytes.begin(), bytes.end(), array.begin());
    return array;
}

TEST(Ed25519, GivesTheAnswersOfRfc8032) {
    struct Vector {
        const char* seed;
        const char* key;
        const char* message;
        const char* signature;
    };
    // Section 7.1, tests 1 to 3.
    for (const Vector& v :
         {Vector{"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
                 "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
                 "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39"
                 "701cf9b46bd25bf5f0595bbe24655141438e7a100b"},
          Vector{"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
                 "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
                 "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f36"
                 "13d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"},
          Vector{"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
                 "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
                 "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f7"
                 "60984dc6594a7c15e9716ed28dc027beceea1ec40a"}}) {
        const auto seed = array_of<32>(v.seed);
        const auto message = from_hex(v.message).value();
        EXPECT_EQ(to_hex(ed25519_public_key(seed)), v.key);
        EXPECT_EQ(to_hex(ed25519_sign(seed, message)), v.signature);
        EXPECT_TRUE(ed25519_verify(array_of<32>(v.key), message, array_of<64>(v.signature)));
        auto wrong = array_of<64>(v.signature);
        wrong[63] ^= std::byte{1};
        EXPECT_FALSE(ed25519_verify(array_of<32>(v.key), message, wrong));
        EXPECT_FALSE(ed25519_verify(array_of<32>(v.key), bytes_of("other"), array_of<64>(v.signature)));
    }
    EXPECT_FALSE(ed25519_verify({std::byte{2}}, {}, {})) << "no point of the curve";
}

TEST(Sha256, GivesTheAnswersOfFips180AndOfPieces) {
    Sha256 hash;
    for (int round = 0; round < 2; ++round) {
        hash.begin();
        hash.update(bytes_of("a"));
        hash.update(bytes_of("bc"));
        EXPECT_EQ(to_hex(hash.finish()), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        hash.begin();
        EXPECT_EQ(to_hex(hash.finish()), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}

TEST(Base64, GivesTheAnswersOfRfc4648AndTakesNoOtherForm) {
    for (const auto& [plain, encoded] : std::vector<std::pair<std::string, std::string>>{{"", ""},
                                                                                         {"f", "Zg=="},
                                                                                         {"fo", "Zm8="},
                                                                                         {"foo", "Zm9v"},
                                                                                         {"foob", "Zm9vYg=="},
                                                                                         {"fooba", "Zm9vYmE="},
                                                                                         {"foobar", "Zm9vYmFy"}}) {
        EXPECT_EQ(to_base64(bytes_of(plain)), encoded);
        EXPECT_EQ(to_hex(from_base64(encoded).value()), to_hex(bytes_of(plain)));
    }
    for (const char* text : {"Zg", "Zg=", "Zh==", "Zm9=", "Z===", "====", "=", "Zg==Zg==", "Zm 9v", "Zm9v\n", "Zm-_"}) {
        EXPECT_FALSE(from_base64(text)) << text;
    }
}

TEST(UtcTime, ComesBackAndHasOneForm) {
    for (const std::int64_t moment :
         {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1796051045123456}, std::int64_t{951782400000000}}) {
        EXPECT_EQ(parse_utc_time(utc_time_text(moment)), moment);
    }
    EXPECT_EQ(utc_time_text(1796051045123456), "2026-11-30T15:04:05.123456Z");
    for (const char* text :
         {"2026-02-30T00:00:00.000000Z", "2026-13-01T00:00:00.000000Z", "2026-01-01T24:00:00.000000Z",
          "2026-01-01 00:00:00.000000Z", "2026-01-01T00:00:00.00000Z", ""}) {
        EXPECT_FALSE(parse_utc_time(text)) << text;
    }
}

}  // namespace
}  // namespace rowlock
