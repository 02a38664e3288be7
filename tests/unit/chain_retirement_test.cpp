// A chain whose first entries have been dropped: in order, or not.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "audit/chain_retirement.hpp"
#include "unit/chain_log.hpp"

namespace rowlock {
namespace {

using test::findings_of;
using test::Log;
using test::make_log;
using test::Row;

/// Twenty entries, the key rotated at seq 10.
class RetiredChain : public testing::Test {
  protected:
    static Row retirement_entry(const Log& log, std::int64_t through) {
        Retirement retirement{0, through, {}, {}, "ten years are over"};
        for (const Row& row : log.rows) {
            if (row.seq == through) std::copy(row.mac.begin(), row.mac.end(), retirement.mac.begin());
            if (row.seq == through + 1) retirement.key_id = row.key_id;
        }
        if (through == log.state.last_seq) retirement.key_id = log.state.key_id;
        Row row;
        row.action = retirement_action;
        row.data = retirement_json(retirement);
        return row;
    }
    static Log retired(const Log& log, std::int64_t through, int more = 3) {
        Log shorter = log;
        shorter.append(retirement_entry(log, through));
        for (int i = 0; i < more; ++i) shorter.append({});
        std::erase_if(shorter.rows, [&](const Row& row) { return row.seq <= through; });
        return shorter;
    }
    static CheckpointMark mark_at(const Log& log, std::int64_t seq) {
        Log copy = log;
        CheckpointMark mark{seq, {}, 1'900'000'000'000'000};
        std::copy(copy.at(seq).mac.begin(), copy.at(seq).mac.end(), mark.mac.begin());
        return mark;
    }

    const Log log_ = make_log(Keyring::generate().rotated());
};

TEST_F(RetiredChain, IsIntactWhereverItWasCutAlsoAtARotation) {
    for (std::int64_t through = 1; through <= 20; ++through) {
        const Verification verification = retired(log_, through).verify();
        EXPECT_EQ(findings_of(verification), "") << through;
        EXPECT_EQ(verification.verdict, Verdict::intact);
        EXPECT_EQ(verification.retired_through, through);
        EXPECT_EQ(verification.retired_by, 21);
        EXPECT_EQ(verification.entries, 24 - through);
    }
}

TEST_F(RetiredChain, MayBeCutAgainAndAgain) {
    Log log = log_;
    for (const std::int64_t through : {3, 11, 21, 22}) {
        log.append(retirement_entry(log, through));
        std::erase_if(log.rows, [&](const Row& row) { return row.seq <= through; });
        const Verification verification = log.verify();
        EXPECT_EQ(findings_of(verification), "") << through;
        EXPECT_EQ(verification.retired_through, through);
    }
}

TEST_F(RetiredChain, IsIntactWhileItsEntriesAreBeingDropped) {
    Log log = log_;
    log.append(retirement_entry(log_, 12));
    for (std::int64_t seq = 1; seq <= 12; ++seq) {
        EXPECT_EQ(findings_of(log.verify()), "");
        log.erase(seq);
        EXPECT_EQ(log.verify().retired_through, seq);
    }
    EXPECT_EQ(findings_of(log.verify()), "");
}

TEST_F(RetiredChain, LacksNothingMoreThanItsRetirementSays) {
    for (std::int64_t through = 1; through <= 18; ++through) {
        Log log = retired(log_, through);
        log.erase(through + 1);
        EXPECT_EQ(findings_of(log.verify()), fmt::format("missing {}", through + 1));
        EXPECT_EQ(log.verify().retired_through, through);
    }
    Log bare = log_;
    std::erase_if(bare.rows, [](const Row& row) { return row.seq <= 5; });
    EXPECT_EQ(findings_of(bare.verify()), "missing 1-5") << "no entry says so";
    Log hole = retired(log_, 5);
    hole.erase(8);
    EXPECT_EQ(findings_of(hole.verify()), "missing 8") << "a hole is no beginning";
}

TEST_F(RetiredChain, WithoutItsRetirementEntryIsTamperedWith) {
    Log log = retired(log_, 5);
    log.erase(21);
    EXPECT_EQ(findings_of(log.verify()), "missing 1-5, missing 21");
    Log changed = retired(log_, 5);
    changed.at(21).data->replace(changed.at(21).data->find("\"through\": 5"), 12, "\"through\": 6");
    changed.erase(6);
    EXPECT_EQ(findings_of(changed.verify()), "missing 1-6, changed 21");
    Log relabelled = log_;
    Row row = retirement_entry(log_, 5);
    row.action = "note";
    relabelled.append(row);
    relabelled.at(21).action = retirement_action;
    std::erase_if(relabelled.rows, [](const Row& each) { return each.seq <= 5; });
    EXPECT_EQ(findings_of(relabelled.verify()), "missing 1-5, changed 21");
}

TEST_F(RetiredChain, ThatFollowsAnotherEntryThanTheOneRetiredIsNamed) {
    Log log = log_;
    Row row = retirement_entry(log_, 5);
    const std::size_t at = row.data->find("\"mac\": \"") + 8;
    (*row.data)[at] = (*row.data)[at] == '0' ? '1' : '0';
    log.append(row);
    std::erase_if(log.rows, [](const Row& each) { return each.seq <= 5; });
    EXPECT_EQ(findings_of(log.verify()), "unlinked 6");
    Log other_key = log_;
    Row wrong = retirement_entry(log_, 5);
    const std::string key = log_.keyring.ids()[0];
    wrong.data->replace(wrong.data->find(key), key.size(), log_.keyring.ids()[1]);
    other_key.append(wrong);
    std::erase_if(other_key.rows, [](const Row& each) { return each.seq <= 5; });
    EXPECT_EQ(findings_of(other_key.verify()), "unknown_key 6");
}

TEST_F(RetiredChain, OfAKeyThatIsNotAtHandIsUnverifiableAndNotTampered) {
    const Log log = retired(log_, 5);
    const Verification early = log.verify(test::without(log_.keyring, log_.keyring.ids()[0]));
    EXPECT_EQ(early.verdict, Verdict::unverifiable);
    EXPECT_EQ(early.retired_through, 5);
    EXPECT_EQ(log.verify(Keyring::generate()).verdict, Verdict::unverifiable);
    const Log late = retired(log_, 12);
    EXPECT_EQ(late.verify(test::without(log_.keyring, log_.keyring.ids()[0])).verdict, Verdict::intact)
        << "the old key signed nothing that is left";
}

TEST_F(RetiredChain, AgreesWithCheckpointsOfWhatIsLeftAndKnowsTheLastThatIsGone) {
    const Log log = retired(log_, 12);
    const auto against = [&](const CheckpointMark& mark) {
        ChainVerifierOptions options;
        options.checkpoint = mark;
        return log.verify(log.keyring, std::move(options));
    };
    EXPECT_EQ(against(mark_at(log_, 13)).checkpoint, Comparison::agrees);
    for (const std::int64_t gone : {1, 11, 12}) {
        EXPECT_EQ(findings_of(against(mark_at(log_, gone))), "");
        EXPECT_EQ(against(mark_at(log_, gone)).checkpoint, Comparison::retired);
    }
    CheckpointMark other = mark_at(log_, 12);
    other.mac[0] ^= std::byte{1};
    EXPECT_EQ(findings_of(against(other)), "diverged 12");
    EXPECT_EQ(findings_of(against({30, other.mac, other.made_at})), "rolled_back 25-30");
}

TEST_F(RetiredChain, TamperedWithBehindTheCutIsFoundAsAlways) {
    Log log = retired(log_, 12);
    log.at(13).actor = "mallory";
    EXPECT_EQ(findings_of(log.verify()), "changed 13");
    log = retired(log_, 12);
    log.at(13).prev_mac[0] ^= std::byte{1};
    EXPECT_EQ(findings_of(log.verify()), "changed 13");
    log = retired(log_, 12);
    log.erase(24);
    EXPECT_EQ(findings_of(log.verify()), "tail_missing 24");
    log = retired(log_, 12);
    std::swap(log.at(14).seq, log.at(17).seq);
    EXPECT_EQ(findings_of(log.verify()), "displaced 14>17, displaced 17>14");
}

TEST(RetirementEntry, IsReadOnlyInTheFormThatItIsWrittenIn) {
    const std::string good = retirement_json({0, 12, {}, "k", "why"});
    SignedEntry entry;
    entry.seq = 13;
    entry.data = good;
    ASSERT_TRUE(retirement_of(entry));
    EXPECT_EQ(retirement_of(entry)->through, 12);
    entry.seq = 12;
    EXPECT_FALSE(retirement_of(entry)) << "an entry can't retire itself";
    entry.seq = 13;
    for (const std::string data : {"", "[]", "{}", R"({"through": 0, "mac": "", "key_id": "k", "reason": ""})"}) {
        entry.data = data;
        EXPECT_FALSE(retirement_of(entry)) << data;
    }
}

}  // namespace
}  // namespace rowlock
