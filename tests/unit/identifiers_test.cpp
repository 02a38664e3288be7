#include "rowlock/identifiers.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <string>

#include "rowlock/error.hpp"

namespace rowlock {

namespace {

TEST(TenantId, IsTextOf1To256BytesOfUtf8WithoutNul) {
    EXPECT_EQ(TenantId("acme").text(), "acme");
    EXPECT_EQ(TenantId(std::string(256, 'x')).text().size(), 256U);
    EXPECT_EQ(TenantId("caf\xC3\xA9").text(), "caf\xC3\xA9");
    EXPECT_THROW(TenantId(""), InvalidInput);
    EXPECT_THROW(TenantId(std::string(257, 'x')), InvalidInput);
    EXPECT_THROW(TenantId(std::string("a\0b", 3)), InvalidInput);
    EXPECT_THROW(TenantId("a\xFF"), InvalidInput);
}

TEST(TenantId, IsComparedByteByByte) {
    EXPECT_LT(TenantId("B"), TenantId("a"));
    EXPECT_LT(TenantId("z"), TenantId("\xC3\xA9"));
    EXPECT_EQ(std::hash<TenantId>{}(TenantId("a")), std::hash<TenantId>{}(TenantId("a")));
}

TEST(EntryId, ReadsWhatItWritesInEitherCase) {
    constexpr std::string_view text = "01890a5d-ac96-774b-bcce-b302099a8057";
    EXPECT_EQ(EntryId::parse(text).text(), text);
    EXPECT_EQ(EntryId::parse("01890A5D-AC96-774B-BCCE-B302099A8057").text(), text);
}

TEST(EntryId, RefusesEveryOtherForm) {
    for (const std::string_view text :
         {"", "01890a5dac96774bbcceb302099a8057", "{01890a5d-ac96-774b-bcce-b302099a8057}",
          "01890a5d-ac96-774b-bcce-b302099a805", "01890a5d-ac96-774b-bcce-b302099a80570",
          "01890a5d-ac96-774b-bcceb-302099a8057", "01890a5d-ac96-774b-bcce-b302099a805g",
          "01890a5d-ac96-774b-bcce-b302099a80-7", " 1890a5d-ac96-774b-bcce-b302099a8057"}) {
        EXPECT_THROW((void)EntryId::parse(text), InvalidInput) << text;
    }
}

TEST(EntryId, IsAUuidOfVersion7ThatGrowsWithTime) {
    const auto before =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch());
    std::set<EntryId> ids;
    EntryId earlier = EntryId::generate();
    for (int i = 0; i < 1000; ++i) {
        const EntryId id = EntryId::generate();
        EXPECT_EQ(id.text()[14], '7');
        EXPECT_NE(std::string("89ab").find(id.text()[19]), std::string::npos);
        // The same 244 ns may give the same time, never an earlier one.
        EXPECT_LE(earlier.text().substr(0, 18), id.text().substr(0, 18));
        EXPECT_TRUE(ids.insert(id).second);
        earlier = id;
    }
    std::string digits = earlier.text().substr(0, 13);
    digits.erase(8, 1);
    EXPECT_GE(std::stoll(digits, nullptr, 16), before.count());
}

}  // namespace

}  // namespace rowlock
