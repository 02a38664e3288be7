// What is encrypted under a subject's key, and what is left of it once the key is destroyed.
#include "rowlock/subject_keys.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <set>

#include "base/hex.hpp"
#include "crypto/aes_gcm.hpp"
#include "json/json.hpp"
#include "rowlock/error.hpp"
#include "support/scratch_folder.hpp"

namespace rowlock {
namespace {

using testing::HasSubstr;
using testing::Not;

class Subjects : public testing::Test {
  protected:
    static AuditEntry entry_of(const std::string& data) {
        AuditEntry entry;
        entry.data = data;
        return entry;
    }
    static StoredEntry stored(const AuditEntry& entry, const std::string& sealed) {
        return {1, entry.id, 0, {}, {}, {}, sealed, "k"};
    }

    const test::ScratchFolder scratch_;
    const std::filesystem::path folder_ = scratch_.path() / "subjects";
    const TenantId acme_{"acme"};
};

TEST_F(Subjects, DataComesBackByteForByteWhereTheKeyIs) {
    SubjectKeys keys(folder_);
    for (const std::string data : {"{}", "null", R"({"name": "Ann",  "born":1e400})", "\"caf\u00e9\""}) {
        const AuditEntry entry = entry_of(data);
        const std::string sealed = keys.seal("ann@example.com", acme_, entry);
        EXPECT_TRUE(valid_json(sealed));
        EXPECT_TRUE(SubjectKeys::is_sealed(sealed));
        EXPECT_THAT(sealed, Not(HasSubstr("Ann")));
        EXPECT_THAT(sealed, Not(HasSubstr("example")));
        EXPECT_EQ(SubjectKeys(folder_).open(acme_, stored(entry, sealed)), data) << "by another process";
    }
}

TEST_F(Subjects, ARetryGivesTheSameBytesAndAnotherEntryOthers) {
    SubjectKeys keys(folder_);
    const AuditEntry entry = entry_of("{}");
    EXPECT_EQ(keys.seal("ann", acme_, entry), SubjectKeys(folder_).seal("ann", acme_, entry));
    EXPECT_NE(keys.seal("ann", acme_, entry), keys.seal("ann", acme_, entry_of("{}")));
    EXPECT_NE(keys.seal("ann", acme_, entry), keys.seal("bob", acme_, entry));
    EXPECT_NE(keys.seal("ann", acme_, entry), keys.seal("ann", TenantId("globex"), entry));
    AuditEntry other = entry;
    other.data = "[]";
    const auto nonce = [](const std::string& sealed) { return sealed.substr(sealed.find("nonce"), 30); };
    EXPECT_NE(nonce(keys.seal("ann", acme_, entry)), nonce(keys.seal("ann", acme_, other)));
}

TEST_F(Subjects, AnErasedKeyLeavesNothingToReadAndTheOthersReadable) {
    SubjectKeys keys(folder_);
    const AuditEntry of_ann = entry_of(R"("ann's")");
    const AuditEntry of_bob = entry_of(R"("bob's")");
    const std::string anns = keys.seal("ann", acme_, of_ann);
    const std::string bobs = keys.seal("bob", acme_, of_bob);
    EXPECT_TRUE(keys.erase("ann"));
    EXPECT_FALSE(keys.erase("ann"));
    for (SubjectKeys* each : {&keys}) {
        EXPECT_EQ(each->open(acme_, stored(of_ann, anns)), std::nullopt);
        EXPECT_EQ(each->open(acme_, stored(of_bob, bobs)), R"("bob's")");
    }
    EXPECT_EQ(SubjectKeys(folder_).open(acme_, stored(of_ann, anns)), std::nullopt);
    const std::string again = keys.seal("ann", acme_, of_ann);
    EXPECT_NE(again, anns) << "a new key";
    EXPECT_EQ(keys.open(acme_, stored(of_ann, anns)), std::nullopt) << "which opens nothing of the old one's";
}

TEST_F(Subjects, CiphertextIsBoundToItsEntryAndUnchanged) {
    SubjectKeys keys(folder_);
    const AuditEntry entry = entry_of(R"({"n": 1})");
    const std::string sealed = keys.seal("ann", acme_, entry);
    EXPECT_EQ(keys.open(TenantId("globex"), stored(entry, sealed)), std::nullopt);
    EXPECT_EQ(keys.open(acme_, stored(entry_of("{}"), sealed)), std::nullopt);
    for (std::size_t at = 0; at < sealed.size(); ++at) {
        std::string changed = sealed;
        changed[at] = changed[at] == 'A' ? 'B' : 'A';
        EXPECT_EQ(keys.open(acme_, stored(entry, changed)), std::nullopt) << changed;
    }
}

TEST_F(Subjects, KeysAreForTheirOwnerAlone) {
    {
        SubjectKeys keys(folder_);
        static_cast<void>(keys.seal("ann", acme_, entry_of("{}")));
    }
    struct stat status{};
    ASSERT_EQ(stat(folder_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0700U);
    const auto file = *std::filesystem::directory_iterator(folder_);
    ASSERT_EQ(stat(file.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0600U);
    EXPECT_THAT(file.path().string(), Not(HasSubstr("ann")));
    ASSERT_EQ(chmod(folder_.c_str(), 0750), 0);
    EXPECT_THROW(SubjectKeys{folder_}, SetupError);
    ASSERT_EQ(chmod(folder_.c_str(), 0700), 0);
    std::ofstream(file.path()) << "nonsense";
    SubjectKeys damaged(folder_);
    EXPECT_THROW(static_cast<void>(damaged.seal("ann", acme_, entry_of("{}"))), SetupError);
}

TEST_F(Subjects, WithoutDataOrWithNoJsonNothingIsEncrypted) {
    SubjectKeys keys(folder_);
    EXPECT_THROW(static_cast<void>(keys.seal("ann", acme_, {})), InvalidInput);
    EXPECT_THROW(static_cast<void>(keys.seal("ann", acme_, entry_of("{"))), InvalidInput);
    EXPECT_THROW(static_cast<void>(keys.seal("", acme_, entry_of("{}"))), InvalidInput);
    EXPECT_FALSE(std::filesystem::exists(folder_));
    EXPECT_FALSE(SubjectKeys::is_sealed(std::nullopt));
    EXPECT_FALSE(SubjectKeys::is_sealed(R"({"sealed": "rowlock/sealed/2", "key": "", "nonce": "", "data": ""})"));
}

TEST(AesGcm, GivesTheAnswerOfTheSpecification) {
    // Test case 16 of "The Galois/Counter Mode of Operation", appendix B.
    AesKey key{};
    AesNonce nonce{};
    std::ranges::copy(from_hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308").value(),
                      key.begin());
    std::ranges::copy(from_hex("cafebabefacedbaddecaf888").value(), nonce.begin());
    const auto bound = from_hex("feedfacedeadbeeffeedfacedeadbeefabaddad2").value();
    const auto plain =
        from_hex(
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525"
            "b16aedf5aa0de657ba637b39")
            .value();
    const auto sealed = aes_gcm_seal(key, nonce, bound, plain);
    EXPECT_EQ(to_hex(sealed),
              "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e63"
              "93ba7a0a"
              "bcc9f66276fc6ece0f4e1768cddf8853bb2d551b");
    EXPECT_EQ(aes_gcm_open(key, nonce, bound, sealed), plain);
    auto changed = sealed;
    changed.back() ^= std::byte{1};
    EXPECT_EQ(aes_gcm_open(key, nonce, bound, changed), std::nullopt);
    EXPECT_EQ(aes_gcm_open(key, nonce, {}, sealed), std::nullopt);
    EXPECT_EQ(aes_gcm_open(key, nonce, bound, std::span(sealed).first(15)), std::nullopt);
}

}  // namespace
}  // namespace rowlock
