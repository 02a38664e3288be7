// Keys that are missing, rotated, retired or made up; forks; and what the limits do.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "audit/chain.hpp"
#include "unit/chain_log.hpp"

namespace rowlock {

namespace {

using test::findings_of;
using test::Log;
using test::make_log;
using test::Row;
using test::without;

constexpr std::int64_t rotation_seq = 10;

class ChainKeyUse : public testing::Test {
  protected:
    const Keyring keyring_ = Keyring::generate().rotated().rotated();
    const std::string first_key_ = keyring_.ids()[0];
    const std::string second_key_ = keyring_.ids()[1];
    const std::string unused_key_ = keyring_.ids()[2];
    const Keyring without_first_ = without(keyring_, first_key_);
    const Keyring without_second_ = without(keyring_, second_key_);
    Log log_ = make_log(keyring_);
};

TEST_F(ChainKeyUse, AKeyNotAtHandIsUnverifiableAndNeverTampered) {
    const Verification early = log_.verify(without_first_);
    EXPECT_EQ(early.verdict, Verdict::unverifiable);
    EXPECT_EQ(early.unverifiable_entries, 10);
    EXPECT_EQ(early.missing_keys, std::vector{first_key_});
    const Verification late = log_.verify(without_second_);
    EXPECT_EQ(late.verdict, Verdict::unverifiable);
    EXPECT_EQ(late.unverifiable_entries, 10);
    EXPECT_EQ(late.missing_keys, std::vector{second_key_});
    const Verification none = log_.verify(without(without_first_, second_key_));
    EXPECT_EQ(none.verdict, Verdict::unverifiable);
    EXPECT_EQ(none.unverifiable_entries, 20);
    EXPECT_EQ(none.missing_keys, (std::vector{first_key_, second_key_}));
}

TEST_F(ChainKeyUse, WhatNeedsNoKeyIsFoundWithoutOne) {
    const Keyring none = without(without_first_, second_key_);
    Log gap = log_;
    gap.erase(5);
    EXPECT_EQ(findings_of(gap.verify(none)), "missing 5");
    Log tail = log_;
    tail.erase(20);
    EXPECT_EQ(findings_of(tail.verify(none)), "tail_missing 20");
    Log head = log_;
    head.erase(1);
    EXPECT_EQ(findings_of(head.verify(none)), "missing 1");
    Log link = log_;
    link.at(5).prev_mac[0] ^= std::byte{1};
    EXPECT_EQ(findings_of(link.verify(none)), "unlinked 5");
    Log mac = log_;
    mac.at(5).mac[0] ^= std::byte{1};
    EXPECT_EQ(findings_of(mac.verify(none)), "unlinked 6");
    Log twice = log_;
    twice.rows.push_back(Row(twice.at(5)));
    EXPECT_EQ(findings_of(twice.verify(none)), "duplicate 5");
}

TEST_F(ChainKeyUse, AKeyThatNobodyIntroducedIsTamperingAtHandOrNot) {
    for (const std::string& id : {unused_key_, std::string("k000000000000")}) {
        for (const Row& row : log_.rows) {
            Log log = log_;
            log.at(row.seq).key_id = id;
            EXPECT_EQ(findings_of(log.verify()), fmt::format("unknown_key {}", row.seq));
        }
    }
    // Also where the true key is not at hand, but another entry tells it.
    log_.at(15).key_id = "k000000000000";
    EXPECT_EQ(findings_of(log_.verify(without_second_)), "unknown_key 15");
}

TEST_F(ChainKeyUse, AWholeTailSignedWithAnotherKeyIsOneFinding) {
    Log forged(keyring_, "acme");
    forged.state = {14, log_.at(14).mac, unused_key_};
    for (int i = 0; i < 6; ++i) forged.append({});
    for (std::int64_t seq = 15; seq <= 20; ++seq) log_.at(seq) = forged.at(seq);
    log_.state = forged.state;
    EXPECT_EQ(findings_of(log_.verify()), "unknown_key 15-20");
    EXPECT_EQ(findings_of(log_.verify(without(keyring_, unused_key_))), "unknown_key 15-20");
}

TEST_F(ChainKeyUse, ARotationThatWasChangedDoesNotFloodTheRest) {
    const auto tampered = [&](auto&& change) {
        Log log = log_;
        change(log.at(rotation_seq));
        return log;
    };
    const std::vector<Log> logs{
        tampered([](Row& row) { row.actor = "x"; }), tampered([](Row& row) { row.object = "k000000000000"; }),
        tampered([](Row& row) { row.object = std::nullopt; }), tampered([](Row& row) { row.action = "x"; }),
        tampered([](Row& row) { row.mac[3] ^= std::byte{1}; })};
    for (const Log& log : logs) EXPECT_EQ(findings_of(log.verify()), "changed 10");
    // Without the new key it can be believed only if the entry still names it.
    EXPECT_EQ(findings_of(logs[0].verify(without_second_)), "changed 10");
    EXPECT_EQ(logs[0].verify(without_second_).unverifiable_entries, 10);
    EXPECT_EQ(findings_of(logs[1].verify(without_second_)), "changed 10, unknown_key 11-20");
    EXPECT_EQ(findings_of(logs[3].verify(without_second_)), "changed 10, unknown_key 11-20");
}

TEST_F(ChainKeyUse, ARotationThatWasRemovedDoesNotFloodTheRest) {
    log_.erase(rotation_seq);
    EXPECT_EQ(findings_of(log_.verify()), "missing 10");
    EXPECT_EQ(findings_of(log_.verify(without_second_)), "missing 10, unknown_key 11-20");
}

TEST_F(ChainKeyUse, ARotationAndTheEntryAfterItMayBothBeChanged) {
    log_.at(10).actor = "x";
    log_.at(11).actor = "x";
    EXPECT_EQ(findings_of(log_.verify()), "changed 10-11");
}

TEST_F(ChainKeyUse, ARetiredKeyDoesNotComeBackBehindABadEntry) {
    // The holder of the old key changes entry 12 and signs all that follows anew.
    Log forged(keyring_, "acme");
    forged.state = {12, log_.at(12).mac, first_key_};
    for (int i = 0; i < 8; ++i) forged.append({});
    for (std::int64_t seq = 13; seq <= 20; ++seq) log_.at(seq) = forged.at(seq);
    log_.state = forged.state;
    log_.at(12).actor = "x";
    EXPECT_EQ(findings_of(log_.verify()), "changed 12, unknown_key 13-20");
}

TEST_F(ChainKeyUse, AChainMayGoBackToAnEarlierKeyByARotation) {
    log_.rotate(0);
    log_.append({});
    log_.rotate(2);
    log_.append({});
    EXPECT_EQ(findings_of(log_.verify()), "");
}

TEST_F(ChainKeyUse, AForkIsATrueEntryThatDoesNotFollow) {
    // As after a restore: entry 15 on were written twice, and the tail of one was put behind the other.
    Log other = make_log(keyring_);
    Log fork(keyring_, "acme");
    fork.state = {14, log_.at(14).mac, second_key_};
    fork.ids_taken = 100;
    for (int i = 0; i < 6; ++i) fork.append({});
    for (std::int64_t seq = 17; seq <= 20; ++seq) log_.at(seq) = fork.at(seq);
    log_.state = fork.state;
    EXPECT_EQ(findings_of(log_.verify()), "unlinked 17");
    // An entry of the fork in the middle breaks two links.
    other.at(17) = fork.at(17);
    EXPECT_EQ(findings_of(other.verify()), "unlinked 17-18");
}

TEST_F(ChainKeyUse, AnEntryWithContentAndMacChangedIsNotFollowedByTheNext) {
    log_.at(5).actor = "x";
    log_.at(5).mac[0] ^= std::byte{1};
    EXPECT_EQ(findings_of(log_.verify()), "changed 5, unlinked 6");
    log_.at(20).actor = "x";
    log_.at(20).mac[0] ^= std::byte{1};
    EXPECT_EQ(findings_of(log_.verify()), "changed 5, unlinked 6, changed 20, state_changed 20");
}

TEST_F(ChainKeyUse, AllBreaksAreFoundNotOnlyTheFirst) {
    log_.at(2).data = "x";
    log_.erase(4);
    log_.rows.push_back(Row(log_.at(6)));
    std::swap(log_.at(8).seq, log_.at(12).seq);
    log_.at(14).key_id = "k000000000000";
    log_.at(16).format = 2;
    log_.erase(20);
    EXPECT_EQ(findings_of(log_.verify()),
              "changed 2, missing 4, duplicate 6, displaced 8>12, displaced 12>8, unknown_key 14, unknown_format 16, "
              "tail_missing 20");
}

TEST_F(ChainKeyUse, ALedgerOfAnotherIdHasOtherKeys) {
    ChainVerifier verifier(keyring_, LedgerId{std::byte{8}}, TenantId("acme"));
    for (const Row& row : log_.rows) verifier.feed(row.view());
    EXPECT_EQ(findings_of(verifier.finish(StateRow{20, log_.state.head_mac, log_.state.key_id})), "changed 1-20");
}

class ChainLimits : public testing::Test {
  protected:
    ChainLimits() {
        for (int i = 0; i < 3000; ++i) log_.append({});
    }

    Log log_{Keyring::generate(), "acme"};
};

TEST_F(ChainLimits, MoreBadEntriesThanAreKeptAreAllFound) {
    for (Row& row : log_.rows) {
        if (row.seq > 5) row.actor = "x";
    }
    const Verification verification = log_.verify();
    EXPECT_EQ(findings_of(verification), "changed 6-3000");
    EXPECT_EQ(verification.findings_total, 1);
}

TEST_F(ChainLimits, AllFindingsAreCountedAndTheFirstOnesKept) {
    for (Row& row : log_.rows) {
        if (row.seq % 2 == 0) row.actor = "x";
    }
    const Verification verification = log_.verify();
    EXPECT_EQ(verification.findings_total, 1500);
    EXPECT_EQ(verification.findings.size(), Verification::findings_max);
}

TEST_F(ChainLimits, ManyGapsAreAllFound) {
    std::erase_if(log_.rows, [](const Row& row) { return row.seq % 2 == 0; });
    for (Row& row : log_.rows) row.actor = "x";
    const Verification verification = log_.verify();
    EXPECT_EQ(verification.findings_total, 1500 + 1500);
}

TEST_F(ChainLimits, ALargeBadEntryIsNotKeptAndStillFound) {
    log_.at(7).data = std::string(5U << 20U, 'x');
    log_.at(9).data = "x";
    EXPECT_EQ(findings_of(log_.verify()), "changed 7, changed 9");
}

TEST_F(ChainLimits, WithoutTrialsADisplacedEntryIsStillFound) {
    std::swap(log_.at(7).seq, log_.at(2000).seq);
    EXPECT_EQ(findings_of(log_.verify()), "displaced 7>2000, displaced 2000>7");
    ChainVerifierOptions options;
    options.limits.trial_bytes_max = 0;
    EXPECT_EQ(findings_of(log_.verify(log_.keyring, options)), "changed 7, unlinked 8, changed 2000, unlinked 2001");
}

}  // namespace

}  // namespace rowlock
