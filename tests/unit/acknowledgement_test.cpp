// Breaks that an entry acknowledges: told apart, for ever; a later break at the same place, or beside it, is found.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <functional>

#include "audit/bundle_writer.hpp"
#include "audit/own_entries.hpp"
#include "unit/bundle_pieces.hpp"
#include "unit/chain_log.hpp"

namespace rowlock {
namespace {

using test::findings_of;
using test::Log;
using test::make_log;
using test::Row;
using Tampering = std::function<void(Log&)>;

Row acknowledgement_of_finding(const Finding& finding) {
    const FindingKind kind = finding.kind == FindingKind::tail_missing ? FindingKind::missing : finding.kind;
    Row row;
    row.action = acknowledge_action;
    row.actor = "ann";
    row.data = acknowledgement_json(
        {0, kind, finding.seq, finding.last_seq, finding.evidence.value(), 0, {}, "a bad disk", false});
    return row;
}

/// All that is found now.
void acknowledge(Log& log) {
    for (const Finding& finding : log.verify().findings) log.append(acknowledgement_of_finding(finding));
}

std::int64_t still_found(const Verification& verification) {
    return std::ranges::count_if(verification.acknowledgements, &Acknowledgement::found);
}

/// Twenty entries, the key rotated at seq 10.
class AcknowledgedBreak : public testing::Test {
  protected:
    [[nodiscard]] Log after(const Tampering& tamper) const {
        Log log = log_;
        tamper(log);
        acknowledge(log);
        return log;
    }
    /// What is found after a further tampering.
    static std::string then(Log log, const Tampering& tamper) {
        tamper(log);
        const Verification verification = log.verify();
        EXPECT_EQ(verification.verdict == Verdict::tampered, !verification.findings.empty());
        return findings_of(verification);
    }
    [[nodiscard]] BundleVerification bundle_verified(const Log& log, bool with_keys) const {
        std::string bundle;
        BundleWriter writer(LedgerId{std::byte{7}}, key_,
                            [&](std::span<const std::byte> bytes) { bundle += test::as_string(bytes); });
        for (const Row& row : log.rows) writer.add(log.tenant, row.view());
        writer.finish(1);
        BundleVerifyOptions options{.pinned = {key_.public_key()}};
        if (with_keys) options.keyring = log.keyring;
        return test::verify_text(bundle, options);
    }

    static void change_five(Log& log) { log.at(5).actor = "mallory"; }

    const Keyring keyring_ = Keyring::generate().rotated().rotated();
    const SigningKey key_ = SigningKey::generate("test");
    const Log log_ = make_log(keyring_);
    /// Each leaves something that can be acknowledged.
    const std::vector<std::pair<std::string, Tampering>> tamperings_{
        {"a column", change_five},
        {"a rotation", [](Log& log) { log.at(10).object = "k"; }},
        {"a MAC", [](Log& log) { log.at(6).mac[3] ^= std::byte{1}; }},
        {"a MAC and a column",
         [](Log& log) {
             log.at(6).mac[3] ^= std::byte{1};
             log.at(6).data = "{}";
         }},
        {"a key id", [](Log& log) { log.at(8).key_id = "k000000000000"; }},
        {"several in a row",
         [](Log& log) {
             for (const std::int64_t seq : {4, 5, 6}) log.at(seq).recorded_at += 1;
         }},
        {"one gone", [](Log& log) { log.erase(9); }},
        {"the first ones gone", [](Log& log) { std::erase_if(log.rows, [](const Row& row) { return row.seq < 4; }); }},
        {"the tail gone", [](Log& log) { std::erase_if(log.rows, [](const Row& row) { return row.seq > 17; }); }},
        {"all gone", [](Log& log) { log.rows.clear(); }},
        {"two swapped",
         [](Log& log) {
             std::swap(log.at(12), log.at(13));
             std::swap(log.rows[11].seq, log.rows[12].seq);
         }},
        {"the last one", [](Log& log) { log.at(20).action = "nothing"; }},
        {"another tenant's",
         [](Log& log) {
             Log other = make_log(log.keyring, "globex");
             log.at(11) = other.at(11);
         }},
    };
};

TEST_F(AcknowledgedBreak, OfAnySortIsToldApartAndAFurtherOneIsFound) {
    for (const auto& [what, tamper] : tamperings_) {
        const Log log = after(tamper);
        const Verification verification = log.verify();
        EXPECT_EQ(findings_of(verification), "") << what;
        EXPECT_EQ(verification.verdict, Verdict::acknowledged) << what << ", and never intact";
        EXPECT_GE(still_found(verification), 1) << what;
        EXPECT_EQ(verification.acknowledgements[0].reason, "a bad disk");
        EXPECT_EQ(verification.acknowledgements[0].actor, "ann");
        const std::int64_t first = log.rows.front().seq;
        for (const bool with_keys : {false, true}) {
            const BundleVerification bundle = bundle_verified(log, with_keys);
            EXPECT_EQ(bundle.verdict, Verdict::acknowledged) << what << with_keys << ": " << test::told(bundle);
            EXPECT_EQ(bundle.acknowledged.size(), verification.acknowledgements.size()) << what;
        }
        for (std::int64_t seq = first; seq <= 20; ++seq) {
            if (std::ranges::find(log.rows, seq, &Row::seq) == log.rows.end()) continue;
            Log more = log;
            more.at(seq).data = R"({"again": 1})";
            const Verification found = more.verify();
            ASSERT_EQ(found.verdict, Verdict::tampered) << what << ", " << seq;
            ASSERT_TRUE(std::ranges::any_of(
                found.findings, [&](const Finding& finding) { return finding.seq <= seq && seq <= finding.last_seq; }))
                << what << ", " << seq << ": " << findings_of(found);
        }
    }
}

TEST_F(AcknowledgedBreak, CoversNothingThatCameLaterAtItsPlaceOrBesideIt) {
    const Log changed = after(change_five);
    EXPECT_EQ(then(changed, [](Log& log) { log.at(5).actor = "mallory2"; }), "changed 5");
    EXPECT_EQ(then(changed, [](Log& log) { log.at(5).mac[0] ^= std::byte{1}; }), "changed 5, unlinked 6");
    EXPECT_EQ(then(changed, [](Log& log) { log.erase(5); }), "missing 5");
    EXPECT_EQ(then(changed, [](Log& log) { log.at(4).actor = log.at(6).actor = "x"; }), "changed 4, changed 6");
    const Log gone = after([](Log& log) {
        log.erase(12);
        log.erase(13);
    });
    EXPECT_EQ(then(gone, [](Log& log) { log.erase(14); }), "missing 14");
    EXPECT_EQ(then(gone, [](Log& log) { log.erase(11); }), "missing 11");
    EXPECT_EQ(then(gone, [&](Log& log) { log.rows.push_back(Log(log_).at(12)); }), "missing 13")
        << "not what was acknowledged";
    EXPECT_EQ(then(gone,
                   [&](Log& log) {
                       Row row = Log(log_).at(12);
                       row.object = "x";
                       log.rows.push_back(row);
                   }),
              "changed 12, missing 13");
}

TEST_F(AcknowledgedBreak, ThatIsPutRightIsIntactAgainAndStillTold) {
    Log log = after(change_five);
    log.at(5) = Log(log_).at(5);
    const Verification verification = log.verify();
    EXPECT_EQ(verification.verdict, Verdict::intact);
    ASSERT_EQ(verification.acknowledgements.size(), 1U);
    EXPECT_FALSE(verification.acknowledgements[0].found);
}

TEST_F(AcknowledgedBreak, BeforeItExistedHidesOnlyWhatWasForeseenToTheByte) {
    Log foreseen = log_;
    change_five(foreseen);
    Log log = log_;
    log.append(acknowledgement_of_finding(foreseen.verify().findings.at(0)));
    EXPECT_EQ(log.verify().verdict, Verdict::intact);
    EXPECT_EQ(then(log, [](Log& each) { each.at(5).actor = "someone else"; }), "changed 5");
    EXPECT_EQ(then(log, [](Log& each) { each.erase(5); }), "missing 5");
    log.append({});
    for (const std::int64_t seq : {21, 22, 23}) {
        Log ahead = log_;
        ahead.append(acknowledgement_of_finding({FindingKind::missing, log_.tenant, seq, seq, {}, "", Digest{}}));
        ahead.append({});
        ahead.append({});
        EXPECT_EQ(ahead.verify().acknowledgements.size(), 0U) << "of what comes after it";
    }
}

TEST_F(AcknowledgedBreak, CantBeAcknowledgedByAnotherTenantsEntryOrByOneOfACaller) {
    Log other = make_log(keyring_, "globex");
    change_five(other);
    acknowledge(other);
    Log log = log_;
    change_five(log);
    Row replayed = other.at(21);
    log.rows.push_back(replayed);
    log.state.last_seq = 21;
    log.state.head_mac = replayed.mac;
    EXPECT_EQ(findings_of(log.verify()).substr(0, 9), "changed 5");
    EXPECT_EQ(log.verify().verdict, Verdict::tampered);
    Log own = log_;
    change_five(own);
    Row row = acknowledgement_of_finding(own.verify().findings.at(0));
    row.action = "note";
    own.append(row);
    own.at(21).action = acknowledge_action;
    EXPECT_EQ(findings_of(own.verify()), "changed 5, changed 21");
}

TEST_F(AcknowledgedBreak, IsNotBelievedOfAnEntryWhoseKeyIsNotAtHand) {
    Log log = after(change_five);
    log.at(21).actor = "eve";
    EXPECT_EQ(findings_of(log.verify()), "changed 5, changed 21");
    const Verification without_key = log.verify(test::without(keyring_, log.at(21).key_id));
    EXPECT_EQ(findings_of(without_key), "changed 5") << "anybody could have written entry 21";
    EXPECT_EQ(without_key.verdict, Verdict::tampered);
}

TEST_F(AcknowledgedBreak, OfAForkIsFoundAgainWhereTheEntryBeforeIsAnother) {
    Log fork = log_;
    fork.rows.resize(14);
    fork.state.last_seq = 14;
    fork.state.head_mac = fork.rows.back().mac;
    Row other;
    other.actor = "another history";
    fork.append(other);
    Log log = log_;
    log.at(15) = fork.at(15);
    ASSERT_EQ(findings_of(log.verify()), "unlinked 16");
    acknowledge(log);
    EXPECT_EQ(log.verify().verdict, Verdict::acknowledged);
    Log second = log_;
    second.rows.resize(14);
    second.state = fork.state;
    second.state.last_seq = 14;
    second.state.head_mac = second.rows.back().mac;
    other.actor = "a third one";
    second.append(other);
    log.at(15) = second.at(15);
    EXPECT_EQ(findings_of(log.verify()), "unlinked 16");
}

TEST_F(AcknowledgedBreak, InABundleIsNotTheSameAsOneOfTheBundle) {
    const auto bundle_of = [&](const Log& log) {
        std::string bundle;
        BundleWriter writer(LedgerId{std::byte{7}}, key_,
                            [&](std::span<const std::byte> bytes) { bundle += test::as_string(bytes); });
        for (const Row& row : log.rows) writer.add(log.tenant, row.view());
        writer.finish(1);
        return bundle;
    };
    const BundleVerifyOptions pinned{.pinned = {key_.public_key()}};
    Log gap = log_;
    gap.erase(7);
    EXPECT_EQ(test::told(test::verify_text(bundle_of(gap), pinned)), "tampered, acme missing 7");
    acknowledge(gap);
    auto pieces = test::pieces_of(bundle_of(gap));
    EXPECT_EQ(test::told(test::verify_text(test::joined(pieces), pinned)), "acknowledged");
    for (std::size_t at = 1; at + 2 < pieces.size(); ++at) {
        auto fewer = pieces;
        fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(at));
        EXPECT_EQ(test::verify_text(test::joined(fewer), pinned).verdict, Verdict::tampered) << at;
    }
    const auto whole = test::pieces_of(bundle_of([&] {
        Log log = log_;
        log.append(Log(gap).at(21));
        return log;
    }()));
    auto lacking = whole;
    lacking.erase(lacking.begin() + 7);
    EXPECT_EQ(test::told(test::verify_text(test::joined(lacking), pinned)).substr(0, 24), "tampered, acme missing 7")
        << "it was there when the bundle was made";
}

TEST(AcknowledgementEntry, IsReadOnlyInTheFormThatItIsWrittenIn) {
    const std::string good = acknowledgement_json({0, FindingKind::changed, 5, 6, {}, 0, {}, "why", false});
    SignedEntry entry;
    entry.seq = 7;
    entry.data = good;
    ASSERT_TRUE(acknowledgement_of(entry));
    EXPECT_EQ(acknowledgement_of(entry)->last_seq, 6);
    EXPECT_EQ(acknowledgement_of(entry)->kind, FindingKind::changed);
    entry.seq = 6;
    EXPECT_FALSE(acknowledgement_of(entry)) << "only what came before it";
    entry.seq = 7;
    for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
             {"changed", "altered"}, {"\"seq\": 5", "\"seq\": 0"}, {"\"seq\": 5", "\"seq\": 7"}, {"00", "0"}}) {
        std::string data = good;
        data.replace(data.find(from), from.size(), to);
        entry.data = data;
        EXPECT_FALSE(acknowledgement_of(entry)) << data;
    }
}

}  // namespace
}  // namespace rowlock
