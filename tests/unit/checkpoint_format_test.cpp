// A test for each sentence of docs/formats/checkpoint.md.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "audit/checkpoint_format.hpp"
#include "audit/note.hpp"
#include "rowlock/error.hpp"

namespace rowlock {
namespace {

using testing::HasSubstr;

std::string vector_file(const std::string& name) {
    std::ostringstream text;
    text << std::ifstream(std::filesystem::path(ROWLOCK_SOURCES) / "tests" / "unit" / "vectors" / name).rdbuf();
    return text.str();
}

/// The vectors were made by another program in another language.
class CheckpointFormat : public testing::Test {
  protected:
    [[nodiscard]] Checkpoint opened() const {
        auto result = open_checkpoint(note_, pins_);
        if (auto* const refused = std::get_if<NoteRefused>(&result)) ADD_FAILURE() << refused->detail;
        return std::get<Checkpoint>(std::move(result));
    }
    /// The text with one piece replaced, signed again: what is wrong with it is wrong in the text alone.
    [[nodiscard]] std::string reason(const std::string& from, const std::string& to) const {
        std::string text = text_;
        const std::size_t at = text.find(from);
        if (at == std::string::npos) return "the test is wrong: no " + from;
        text.replace(at, from.size(), to);
        const auto result = open_checkpoint(sign_note(text, key_), pins_);
        const auto* const refused = std::get_if<NoteRefused>(&result);
        if (refused == nullptr) return "accepted";
        EXPECT_EQ(refused->reason, NoteRefused::Reason::damaged);
        return refused->detail;
    }

    const std::string note_ = vector_file("checkpoint.note");
    const std::string keys_ = vector_file("checkpoint.key");
    const SigningKey key_ = SigningKey::parse(keys_.substr(0, keys_.find('\n')), "the vector");
    const std::vector<PublicKey> pins_{PublicKey::parse(keys_.substr(keys_.find('\n') + 1))};
    const std::string text_ = note_.substr(0, note_.rfind("\n\n") + 1);
};

TEST_F(CheckpointFormat, GivesTheKnownAnswer) {
    const Checkpoint checkpoint = opened();
    EXPECT_EQ(EntryId(checkpoint.ledger).text(), "01890a5d-ac96-774b-bcce-b302099a8057");
    EXPECT_EQ(checkpoint.made_at, 1796051045123456);
    ASSERT_EQ(checkpoint.heads.size(), 3U);
    EXPECT_EQ(checkpoint.heads[1].tenant, TenantId("café/1"));
    EXPECT_EQ(checkpoint.heads[1].size, 9223372036854775807);
    EXPECT_EQ(checkpoint.heads[2].tenant, TenantId("white space\n%"));
    EXPECT_EQ(checkpoint.heads[2].key_id, "a key");
    EXPECT_EQ(checkpoint.heads[2].mac[31], std::byte{0xff});
    EXPECT_EQ(key_.public_key(), pins_[0]);
    EXPECT_EQ(sign_checkpoint(checkpoint, key_), note_) << "the same checkpoint and key give the same bytes";
}

TEST_F(CheckpointFormat, FindsATenantOrNothing) {
    const Checkpoint checkpoint = opened();
    EXPECT_EQ(checkpoint.find(TenantId("acme"))->size, 12);
    EXPECT_EQ(checkpoint.find(TenantId("acm")), nullptr);
    EXPECT_EQ(checkpoint.find(TenantId("zzz")), nullptr);
}

TEST_F(CheckpointFormat, BeginsWithItsKindLedgerTimeAndCount) {
    EXPECT_THAT(reason("checkpoint/1", "checkpoint/2"), HasSubstr("rowlock/checkpoint/1"));
    EXPECT_THAT(reason("ledger 0189", "ledger  0189"), HasSubstr("second line"));
    EXPECT_THAT(reason("0a5d", "0A5D"), HasSubstr("one form")) << "one form of everything";
    EXPECT_THAT(reason("2026-11-30", "2026-11-31"), HasSubstr("third line"));
    EXPECT_THAT(reason(".123456Z", ".123456z"), HasSubstr("third line"));
    EXPECT_THAT(reason("tenants 3", "tenants 2"), HasSubstr("fourth line"));
    EXPECT_THAT(reason("tenants 3", "tenants 03"), HasSubstr("fourth line"));
}

TEST_F(CheckpointFormat, HasFourWordsForEachTenantAndOneBlankBetweenThem) {
    for (const auto& [from, to] :
         std::vector<std::pair<std::string, std::string>>{{"acme 12", "acme  12"},
                                                          {"acme 12", "acme 012"},
                                                          {"acme 12", "acme 0"},
                                                          {"acme 12", "acme -12"},
                                                          {"acme 12", "acme +12"},
                                                          {"acme 12", " 12"},
                                                          {"k952f58dee468\n", "k952f58dee468 \n"},
                                                          {"9223372036854775807", "9223372036854775808"},
                                                          {"qqo= k", "qqo k"},
                                                          {"qqo= k", "qqp= k"},
                                                          {" a%20key", " "}}) {
        EXPECT_THAT(reason(from, to), HasSubstr("is not that of a tenant")) << from << " → " << to;
    }
}

TEST_F(CheckpointFormat, EscapesAllButUnreservedAsciiWithUpperCaseDigits) {
    EXPECT_THAT(reason("caf%C3%A9", "caf%c3%a9"), HasSubstr("one form"));
    EXPECT_THAT(reason("caf%C3%A9", "café"), HasSubstr("one form"));
    EXPECT_THAT(reason("acme", "%61cme"), HasSubstr("one form"));
    EXPECT_THAT(reason("acme", "acme%4"), HasSubstr("is not that of a tenant"));
    EXPECT_THAT(reason("caf%C3%A9", "caf%C3"), HasSubstr("is not that of a tenant")) << "not UTF-8";
}

TEST_F(CheckpointFormat, HasItsTenantsInOrderAndEachOnce) {
    EXPECT_THAT(reason("acme", "zebra"), HasSubstr("is not that of a tenant"));
    EXPECT_THAT(reason("caf%C3%A9%2F1", "acme"), HasSubstr("is not that of a tenant"));
}

TEST_F(CheckpointFormat, OfNoTenantIsWholeAndReadable) {
    const Checkpoint empty{.ledger = opened().ledger, .made_at = 1, .heads = {}};
    EXPECT_EQ(std::get<Checkpoint>(open_checkpoint(sign_checkpoint(empty, key_), pins_)), empty);
}

TEST_F(CheckpointFormat, RandomTenantsComeBackAsTheyWere) {
    std::mt19937 random(3);
    for (int round = 0; round < 200; ++round) {
        std::set<TenantId> tenants;
        for (auto left = random() % 8; left > 0; --left) {
            std::string name(1 + random() % 12, ' ');
            for (char& c : name) c = static_cast<char>(1 + random() % 127);
            tenants.emplace(name);
        }
        Checkpoint checkpoint{.ledger = {}, .made_at = static_cast<std::int64_t>(random()) * 1000003, .heads = {}};
        for (const TenantId& tenant : tenants) {
            checkpoint.heads.push_back({tenant, 1 + static_cast<std::int64_t>(random()), {}, "k"});
        }
        EXPECT_EQ(std::get<Checkpoint>(open_checkpoint(sign_checkpoint(checkpoint, key_), pins_)), checkpoint);
    }
}

TEST_F(CheckpointFormat, WithAnyBitChangedIsNeverBelieved) {
    for (std::size_t at = 0; at < note_.size(); ++at) {
        for (const unsigned bit : {0U, 1U, 5U, 7U}) {
            std::string changed = note_;
            changed[at] = static_cast<char>(static_cast<unsigned char>(changed[at]) ^ (1U << bit));
            const auto result = open_checkpoint(changed, pins_);
            ASSERT_TRUE(std::holds_alternative<NoteRefused>(result)) << at << " " << bit;
            if (at < text_.size() && std::get<NoteRefused>(result).reason != NoteRefused::Reason::damaged) {
                ASSERT_EQ(std::get<NoteRefused>(result).reason, NoteRefused::Reason::bad_signature) << at;
            }
        }
    }
}

TEST_F(CheckpointFormat, CutOffOrMutatedAtRandomIsNeverBelieved) {
    for (std::size_t size = 0; size < note_.size(); ++size) {
        ASSERT_TRUE(std::holds_alternative<NoteRefused>(open_checkpoint(note_.substr(0, size), pins_))) << size;
    }
    std::mt19937 random(5);
    for (int round = 0; round < 20000; ++round) {
        std::string changed = note_;
        for (auto left = 1 + random() % 4; left > 0; --left) {
            const std::size_t at = random() % changed.size();
            switch (random() % 4) {
                case 0:
                    changed[at] = static_cast<char>(random());
                    break;
                case 1:
                    changed.erase(at, random() % 20);
                    break;
                case 2:
                    changed.insert(at, note_.substr(random() % note_.size(), random() % 40));
                    break;
                default:
                    changed.insert(at, 1, "\n \x80+%"[random() % 5]);
            }
            if (changed.empty()) break;
        }
        const auto result = open_checkpoint(changed, pins_);
        const auto* const checkpoint = std::get_if<Checkpoint>(&result);
        ASSERT_TRUE(checkpoint == nullptr || checkpoint_text(*checkpoint) == text_) << changed;
    }
}

TEST_F(CheckpointFormat, MayBearOtherSignaturesAndNeedsOneOfAPinnedKey) {
    const SigningKey witness = SigningKey::generate("witness.example");
    const SigningKey namesake = SigningKey::generate("shop.example/audit");
    const std::string other = sign_note(text_, witness);
    const std::string line = other.substr(other.rfind("\n\n") + 2);
    const auto both = open_checkpoint(note_ + line, pins_);
    EXPECT_TRUE(std::holds_alternative<Checkpoint>(both));
    for (const std::string& note : {other, sign_note(text_, namesake)}) {
        const auto result = open_checkpoint(note, pins_);
        ASSERT_TRUE(std::holds_alternative<NoteRefused>(result));
        EXPECT_EQ(std::get<NoteRefused>(result).reason, NoteRefused::Reason::other_signer);
    }
    std::string many = note_;
    for (int i = 0; i < 63; ++i) many += line;
    EXPECT_TRUE(std::holds_alternative<Checkpoint>(open_checkpoint(many, pins_)));
    EXPECT_TRUE(std::holds_alternative<NoteRefused>(open_checkpoint(many + line, pins_)));
}

TEST_F(CheckpointFormat, OneBadSignatureOfAPinnedKeySpoilsIt) {
    const SigningKey second = SigningKey::generate("second.example");
    const std::vector<PublicKey> pins{pins_[0], second.public_key()};
    const std::string other = sign_note("rowlock/checkpoint/1\n", second);
    const auto result = open_checkpoint(note_ + other.substr(other.rfind("\n\n") + 2), pins);
    ASSERT_TRUE(std::holds_alternative<NoteRefused>(result));
    EXPECT_EQ(std::get<NoteRefused>(result).reason, NoteRefused::Reason::bad_signature);
}

TEST(SigningKeys, HaveNamesWithoutBlanksAndPlus) {
    for (const char* name : {"", "a b", "a+b", "a\u00a0b", "a\nb", "\u3000", "\xff"}) {
        EXPECT_THROW(static_cast<void>(SigningKey::generate(name)), InvalidInput) << name;
    }
    EXPECT_NO_THROW(static_cast<void>(SigningKey::generate("café/é")));
}

TEST(SigningKeys, ComeBackFromTheirTextAndDamagedOnesDoNot) {
    const PublicKey key = SigningKey::generate("shop.example").public_key();
    EXPECT_EQ(PublicKey::parse(key.text()), key);
    EXPECT_EQ(PublicKey::parse(key.text() + "\n"), key);
    std::string text = key.text();
    for (std::size_t at = 0; at < text.size(); ++at) {
        std::string changed = text;
        changed[at] = changed[at] == 'b' ? 'c' : 'b';
        EXPECT_THROW(static_cast<void>(PublicKey::parse(changed)), InvalidInput) << changed;
        EXPECT_THROW(static_cast<void>(SigningKey::parse("PRIVATE+KEY+" + changed, "it")), SetupError);
    }
    EXPECT_THROW(static_cast<void>(PublicKey::parse("")), InvalidInput);
}

}  // namespace
}  // namespace rowlock
