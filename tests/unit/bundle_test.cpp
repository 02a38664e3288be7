// A test for each sentence of docs/formats/bundle.md, and for each thing that can be done to a bundle.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "audit/bundle_writer.hpp"
#include "audit/note.hpp"
#include "base/hex.hpp"
#include "support/environment.hpp"
#include "unit/bundle_pieces.hpp"
#include "unit/chain_log.hpp"

namespace rowlock {
namespace {

using test::as_string;
using test::joined;
using test::Log;
using test::make_log;
using test::Piece;
using test::pieces_of;
using test::told;
using test::verify_text;
using testing::HasSubstr;

constexpr LedgerId ledger{std::byte{7}};
constexpr std::int64_t made_at = 1'800'000'000'000'000;

class Bundle : public testing::Test {
  protected:
    [[nodiscard]] std::string bundle_of(const std::vector<const Log*>& logs) const {
        std::string bundle;
        BundleWriter writer(ledger, key_, [&](std::span<const std::byte> bytes) { bundle += as_string(bytes); });
        for (const Log* log : logs) {
            for (const test::Row& row : log->rows) writer.add(log->tenant, row.view());
        }
        writer.finish(made_at);
        return bundle;
    }
    [[nodiscard]] std::string after(const std::string& bundle) const { return told(verify_text(bundle, pinned_)); }
    [[nodiscard]] std::string after(const std::vector<Piece>& pieces) const { return after(joined(pieces)); }
    /// The place among the records of an entry of the first tenant (acme), or of the second.
    static std::size_t place(std::int64_t seq, int tenant = 0) { return static_cast<std::size_t>(seq + tenant * 20); }

    const SigningKey key_ = SigningKey::generate("shop.example/audit");
    const Keyring keyring_ = Keyring::generate().rotated();
    const Log acme_ = make_log(keyring_, "acme");
    const Log globex_ = make_log(keyring_, "globex");
    const std::string bundle_ = bundle_of({&acme_, &globex_});
    const std::vector<Piece> pieces_ = pieces_of(bundle_);
    const BundleVerifyOptions pinned_{.pinned = {key_.public_key()}};
};

TEST_F(Bundle, OfWhatIsIntactIsIntactWhateverPiecesItIsReadIn) {
    for (const std::size_t step : {1U, 7U, 1000U, 1000000U}) {
        const BundleVerification verification = verify_text(bundle_, pinned_, step);
        EXPECT_EQ(told(verification), "intact") << step;
        EXPECT_EQ(verification.entries, 40);
        EXPECT_EQ(verification.tenants, 2);
        EXPECT_EQ(verification.made_at, made_at);
        EXPECT_EQ(verification.ledger, ledger);
        EXPECT_EQ(verification.signer, key_.public_key().text());
    }
    EXPECT_EQ(bundle_of({&acme_, &globex_}), bundle_) << "the same entries, moment and key give the same bytes";
}

TEST_F(Bundle, HasRecordsOfTheDocumentedKindsAndOrder) {
    ASSERT_EQ(pieces_.size(), 43U);
    EXPECT_EQ(bundle_.substr(0, 17), "rowlock/bundle/1\n");
    EXPECT_EQ(pieces_[0].type, 'H');
    EXPECT_EQ(to_hex(bytes_of(pieces_[0].payload)).substr(0, 10 + 32), "0100000010" + to_hex(ledger));
    EXPECT_EQ(pieces_[41].type, 'N');
    EXPECT_EQ(pieces_[42].type, 'Z');
    EXPECT_EQ(to_hex(bytes_of(pieces_[42].payload)),
              "01000000080000000000000002"
              "01000000080000000000000028");
    EXPECT_EQ(joined(pieces_), bundle_);
}

TEST_F(Bundle, AnEntryIsTheFrameOfItsMacThenTheMacThenTheHashOfAllOfIt) {
    Sha256 hash;
    Digest before{};
    for (std::int64_t seq = 1; seq <= 20; ++seq) {
        const test::Row& row = acme_.rows[static_cast<std::size_t>(seq - 1)];
        const std::string& payload = pieces_[place(seq)].payload;
        const std::size_t fixed = 37;
        ChainKeys keys(keyring_, ledger, acme_.tenant);
        EXPECT_EQ(to_hex(keys.mac(row.view())), to_hex(row.mac));
        EXPECT_EQ(to_hex(bytes_of(payload).subspan(payload.size() - fixed - 32, 32)), to_hex(row.mac));
        hash.begin();
        hash.update(before);
        hash.update(bytes_of(payload).first(payload.size() - fixed));
        before = hash.finish();
        EXPECT_EQ(to_hex(bytes_of(payload).last(32)), to_hex(before)) << seq;
    }
    EXPECT_THAT(pieces_[41].payload, HasSubstr("acme 1 20 "));
}

TEST_F(Bundle, WithAnyByteOfAnyEntryChangedNamesThatEntry) {
    for (const int tenant : {0, 1}) {
        for (const std::int64_t seq : {1, 2, 10, 11, 19, 20}) {
            const std::size_t size = pieces_[place(seq, tenant)].payload.size();
            const auto step = static_cast<std::size_t>(test::full_or(1, 7));
            for (std::size_t at = 0; at < size; at += step) {
                auto pieces = pieces_;
                pieces[place(seq, tenant)].payload[at] ^= 1;
                const std::string result = after(pieces);
                const bool named =
                    result == fmt::format("tampered, {} changed {}", tenant == 0 ? "acme" : "globex", seq);
                const bool at_its_place =
                    result.find("fields") != std::string::npos ||  // it is no entry any more
                    result.find("missing") != std::string::npos || result.find("displaced") != std::string::npos ||
                    result.find("foreign") != std::string::npos || result.find("not_signed") != std::string::npos;
                ASSERT_TRUE(named || at_its_place) << seq << " " << at << " " << result;
                ASSERT_TRUE(result.starts_with("tampered"));
            }
        }
    }
}

TEST_F(Bundle, ThatLacksEntriesNamesThem) {
    for (const std::int64_t seq : {1, 2, 10, 19, 20}) {
        auto pieces = pieces_;
        pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(place(seq)));
        EXPECT_THAT(after(pieces),
                    HasSubstr(fmt::format("tampered, acme {} {}", seq == 20 ? "tail_missing" : "missing", seq)));
    }
    auto pieces = pieces_;
    pieces.erase(pieces.begin() + 1, pieces.begin() + 21);
    EXPECT_THAT(after(pieces), HasSubstr("tampered, acme chain_missing 1-20"));
    pieces = pieces_;
    pieces.erase(pieces.begin() + 1, pieces.begin() + 41);
    EXPECT_THAT(after(pieces), HasSubstr("acme chain_missing 1-20, globex chain_missing 1-20"));
}

TEST_F(Bundle, ThatIsReorderedOrRepeatedNamesIt) {
    auto swapped = pieces_;
    std::swap(swapped[place(5)], swapped[place(6)]);
    EXPECT_THAT(after(swapped), HasSubstr("tampered, acme missing 5, acme displaced 5"));
    auto repeated = pieces_;
    repeated.insert(repeated.begin() + 5, repeated[place(3)]);
    EXPECT_THAT(after(repeated), HasSubstr("tampered, acme displaced 3"));
    auto moved = pieces_;
    moved.insert(moved.begin() + 30, moved[place(3)]);
    EXPECT_THAT(after(moved), HasSubstr("globex foreign 3"));
    auto tenants = pieces_;
    std::rotate(tenants.begin() + 1, tenants.begin() + 21, tenants.begin() + 41);
    EXPECT_THAT(after(tenants), HasSubstr("tampered"));
}

TEST_F(Bundle, CutOffAnywhereOrWithBytesBehindItIsDamaged) {
    for (std::size_t size = 0; size < bundle_.size();
         size += size < 200 || size > bundle_.size() - 200 ? std::size_t{1} : std::size_t{13}) {
        const BundleVerification verification = verify_text(bundle_.substr(0, size), pinned_);
        ASSERT_EQ(verification.verdict, Verdict::tampered) << size;
        ASSERT_TRUE(verification.damage) << size;
    }
    EXPECT_THAT(after(bundle_.substr(0, 5000)), HasSubstr("cut off"));
    EXPECT_THAT(after(bundle_ + "x"), HasSubstr("damaged"));
    EXPECT_THAT(after(bundle_ + bundle_), HasSubstr("damaged"));
    auto twice = pieces_;
    twice.push_back(twice.back());
    EXPECT_THAT(after(twice), HasSubstr("bytes behind the end"));
}

TEST_F(Bundle, WithRecordsOutOfOrderOrUnknownIsDamaged) {
    auto pieces = pieces_;
    std::swap(pieces[41], pieces[42]);
    EXPECT_THAT(after(pieces), HasSubstr("a trailer, where none can be"));
    pieces = pieces_;
    pieces.erase(pieces.begin());
    EXPECT_THAT(after(pieces), HasSubstr("an entry, where none can be"));
    pieces = pieces_;
    pieces.insert(pieces.begin(), pieces[0]);
    EXPECT_THAT(after(pieces), HasSubstr("a second header"));
    pieces = pieces_;
    pieces.erase(pieces.begin() + 41);
    EXPECT_THAT(after(pieces), HasSubstr("a trailer, where none can be"));
    pieces = pieces_;
    pieces[5].type = 'X';
    EXPECT_THAT(after(pieces), HasSubstr("no record of a bundle begins like this"));
    EXPECT_THAT(after("x" + bundle_), HasSubstr("this is no bundle"));
    EXPECT_THAT(after(std::string()), HasSubstr("this is no bundle"));
}

TEST_F(Bundle, SaysNothingOfTheLengthThatARecordClaims) {
    std::string huge = bundle_;
    huge.replace(bundle_magic.size() + 1, 4, "\x7f\xff\xff\xff");
    EXPECT_THAT(after(huge), HasSubstr("cut off")) << "and no 2 GiB were asked for";
    huge.replace(bundle_magic.size() + 1, 4, "\xff\xff\xff\xff");
    EXPECT_THAT(after(huge), HasSubstr("2 GiB"));
}

TEST_F(Bundle, OfOneWhoMakesAllHashesAnewIsFoundByTheSignature) {
    Log forged = acme_;
    forged.at(7).data = R"({"n": "a million"})";
    const std::string other = bundle_of({&forged, &globex_});
    auto pieces = pieces_of(other);
    pieces[41] = pieces_[41];
    EXPECT_EQ(after(pieces), "tampered, acme changed 1-20");
    EXPECT_EQ(after(other), "intact") << "the signer alone can do that; the HMACs tell, where their keys are at hand";
    BundleVerifyOptions with_keys = pinned_;
    with_keys.keyring = keyring_;
    EXPECT_EQ(told(verify_text(other, with_keys)), "tampered, acme changed 7");
    EXPECT_EQ(told(verify_text(bundle_, with_keys)), "intact");
}

TEST_F(Bundle, OfEntriesThatTheSignatureDoesNotCoverNamesThem) {
    Log shorter = acme_;
    shorter.erase(20);
    auto pieces = pieces_;
    pieces[41] = pieces_of(bundle_of({&shorter, &globex_}))[40];
    EXPECT_EQ(after(pieces), "tampered, acme not_signed 20");
    pieces[41] = pieces_of(bundle_of({&globex_}))[21];
    EXPECT_EQ(after(pieces), "tampered, acme not_signed 1-20");
}

TEST_F(Bundle, IsBelievedOnlyIfAPinnedKeySignedIt) {
    EXPECT_EQ(told(verify_text(bundle_, {})), "unverifiable") << "anybody can sign";
    EXPECT_EQ(told(verify_text(bundle_, {.pinned = {SigningKey::generate("shop.example/audit").public_key()}})),
              "tampered, signature");
    auto pieces = pieces_;
    pieces[41].payload.replace(pieces[41].payload.find("tenants 2"), 9, "tenants 3");
    EXPECT_EQ(after(pieces), "tampered, signature");
    pieces = pieces_;
    pieces[42].payload.back() ^= 1;
    EXPECT_THAT(after(pieces), HasSubstr("the trailer counts 41 entries"));
    auto other_ledger = pieces_;
    other_ledger[0].payload[5] ^= 1;
    EXPECT_THAT(after(other_ledger), HasSubstr("another ledger"));
}

TEST_F(Bundle, WithAKeyringThatLacksAKeyIsUnverifiableAndWithAnotherLedgersTampered) {
    BundleVerifyOptions options = pinned_;
    options.keyring = test::without(keyring_, keyring_.ids()[0]);
    const BundleVerification verification = verify_text(bundle_, options);
    EXPECT_EQ(told(verification), "unverifiable");
    EXPECT_EQ(verification.unverifiable_entries, 20);
}

TEST_F(Bundle, AgainstACheckpointFindsWhatWasCutOffBeforeTheExport) {
    Checkpoint checkpoint{.ledger = ledger, .made_at = made_at, .heads = {{acme_.tenant, 20, {}, "k"}}};
    std::ranges::copy(acme_.state.head_mac, checkpoint.heads[0].mac.begin());
    BundleVerifyOptions options = pinned_;
    options.checkpoint = &checkpoint;
    EXPECT_EQ(told(verify_text(bundle_, options)), "intact");
    Log shorter = acme_;
    for (std::int64_t seq = 16; seq <= 20; ++seq) shorter.erase(seq);
    EXPECT_EQ(told(verify_text(bundle_of({&shorter, &globex_}), options)), "rolled_back, acme rolled_back 16-20");
    checkpoint.heads[0].mac[0] ^= std::byte{1};
    EXPECT_EQ(told(verify_text(bundle_, options)), "tampered, acme diverged 20");
}

TEST_F(Bundle, MutatedAtRandomIsNeverIntact) {
    std::mt19937 random(9);
    BundleVerifyOptions with_keys = pinned_;
    with_keys.keyring = keyring_;
    for (int round = 0; round < 5000; ++round) {
        std::string changed = bundle_;
        for (auto left = 1 + random() % 3; left > 0; --left) {
            const std::size_t at = random() % changed.size();
            switch (random() % 4) {
                case 0:
                    changed[at] = static_cast<char>(random());
                    break;
                case 1:
                    changed.erase(at, 1 + random() % 600);
                    break;
                case 2:
                    changed.insert(at, bundle_, random() % bundle_.size(), 1 + random() % 600);
                    break;
                default:
                    changed[at] ^= static_cast<char>(1U << (random() % 8));
            }
            if (changed.empty()) break;
        }
        if (changed == bundle_) continue;
        const BundleVerification verification = verify_text(changed, round % 10 != 0 ? pinned_ : with_keys);
        // The signer's name in the header is there to be read, and is not signed.
        const bool header_alone = changed.substr(0, 60) != bundle_.substr(0, 60) || changed.size() == bundle_.size();
        if (verification.verdict == Verdict::intact) {
            ASSERT_TRUE(header_alone && pieces_of(changed).size() == pieces_.size()) << round;
            auto pieces = pieces_of(changed);
            pieces[0] = pieces_[0];
            ASSERT_EQ(joined(pieces), bundle_) << round;
        }
    }
}

}  // namespace
}  // namespace rowlock
