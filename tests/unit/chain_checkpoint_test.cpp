// A chain against a checkpoint of it: older, other, gone, resumed.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "audit/chain_checkpoint.hpp"
#include "audit/own_entries.hpp"
#include "unit/chain_log.hpp"

namespace rowlock {
namespace {

using test::findings_of;
using test::Log;
using test::make_log;
using test::Row;

constexpr std::int64_t clock_start = 1'700'000'000'000'000;

class AgainstACheckpoint : public testing::Test {
  protected:
    /// Of the log as it is, made right after its last entry.
    static CheckpointMark mark_of(const Log& log) {
        CheckpointMark mark{log.state.last_seq, {}, clock_start + log.state.last_seq * 1000};
        std::copy(log.state.head_mac.begin(), log.state.head_mac.end(), mark.mac.begin());
        return mark;
    }
    static Log first(const Log& log, std::int64_t count) {
        Log shorter = log;
        std::erase_if(shorter.rows, [&](const Row& row) { return row.seq > count; });
        shorter.state.last_seq = count;
        shorter.state.head_mac = count == 0 ? std::vector<std::byte>() : shorter.rows.back().mac;
        shorter.state.key_id = count >= 10 ? log.state.key_id : log.keyring.ids().front();
        return shorter;
    }
    static Verification verify(const Log& log, const CheckpointMark& mark) {
        ChainVerifierOptions options;
        options.checkpoint = mark;
        return log.verify(log.keyring, std::move(options));
    }
    static std::string told(const Verification& verification) {
        const std::string findings = findings_of(verification);
        const bool rolled_back = verification.verdict == Verdict::rolled_back;
        const bool tampered = verification.verdict == Verdict::tampered;
        EXPECT_EQ(rolled_back || tampered, !findings.empty());
        return rolled_back ? "ROLLED BACK " + findings : findings;
    }
    /// A later entry, recorded after the checkpoint. Test logs have a clock of their own.
    static void append_later(Log& log, Row row = {}) {
        log.append(std::move(row));
        Row& last = log.rows.back();
        last.recorded_at += 1'000'000'000;
        ChainKeys keys(log.keyring, LedgerId{std::byte{7}}, log.tenant);
        const Mac mac = keys.mac(last.view());
        last.mac.assign(mac.begin(), mac.end());
        log.state.head_mac = last.mac;
    }
    static Row resume_entry(const CheckpointMark& mark, std::int64_t after) {
        Row row;
        row.action = resume_action;
        row.actor = "ann";
        row.data = resumption_json({0, after, mark.size, mark.mac, 0, {}, "restored \"Monday\"'s dump"});
        return row;
    }

    const Log log_ = make_log(Keyring::generate().rotated());
    const CheckpointMark mark_ = mark_of(log_);
};

TEST_F(AgainstACheckpoint, AnUntouchedLogAgreesAlsoWhenItHasGrown) {
    const Verification same = verify(log_, mark_);
    EXPECT_EQ(told(same), "");
    EXPECT_EQ(same.checkpoint, Comparison::agrees);
    EXPECT_EQ(same.checkpoint_size, 20);
    Log longer = log_;
    for (int i = 0; i < 3; ++i) append_later(longer);
    EXPECT_EQ(told(verify(longer, mark_)), "");
    for (std::int64_t size = 1; size <= 20; ++size) {
        EXPECT_EQ(told(verify(log_, mark_of(first(log_, size)))), "") << size;
    }
}

TEST_F(AgainstACheckpoint, ATrueButShorterLogIsRolledBackWhateverIsLeft) {
    for (std::int64_t left = 0; left < 20; ++left) {
        const Verification verification = verify(first(log_, left), mark_);
        const std::string lost = left == 19 ? "20" : fmt::format("{}-20", left + 1);
        EXPECT_EQ(told(verification), "ROLLED BACK rolled_back " + lost);
        EXPECT_EQ(verification.checkpoint, Comparison::rolled_back);
    }
}

TEST_F(AgainstACheckpoint, AChainThatIsGoneWithItsStateRowIsNamed) {
    Log gone = first(log_, 0);
    gone.has_state = false;
    EXPECT_EQ(told(verify(gone, mark_)), "ROLLED BACK chain_missing 1-20");
}

TEST_F(AgainstACheckpoint, WhatIsTamperedWithIsNotCalledRolledBack) {
    Log changed = first(log_, 15);
    changed.at(3).actor = "mallory";
    EXPECT_EQ(told(verify(changed, mark_)), "changed 3, rolled_back 16-20");
    Log cut = log_;
    for (std::int64_t seq = 16; seq <= 20; ++seq) cut.erase(seq);
    EXPECT_EQ(told(verify(cut, mark_)), "tail_missing 16-20");
    EXPECT_EQ(verify(cut, mark_).verdict, Verdict::tampered);
    Log at_the_mark = log_;
    at_the_mark.at(20).actor = "mallory";
    EXPECT_EQ(told(verify(at_the_mark, mark_)), "changed 20");
    EXPECT_EQ(verify(at_the_mark, mark_).checkpoint, Comparison::unknown);
}

TEST_F(AgainstACheckpoint, ALogThatWentOnAfterARestoreIsRolledBackToTheRightEntry) {
    for (const int more : {1, 5, 9, 30}) {
        Log forked = first(log_, 12);
        for (int i = 0; i < more; ++i) append_later(forked);
        EXPECT_EQ(told(verify(forked, mark_)), "ROLLED BACK rolled_back 13-20") << more;
    }
}

TEST_F(AgainstACheckpoint, ARewrittenHistoryOfTheSameLengthIsFoundByItsHash) {
    Log forged = first(log_, 12);
    while (forged.state.last_seq < 25) forged.append({});
    EXPECT_EQ(told(verify(forged, mark_)), "diverged 20");
    EXPECT_EQ(verify(forged, mark_).verdict, Verdict::tampered);
    CheckpointMark other = mark_;
    other.mac[31] ^= std::byte{1};
    EXPECT_EQ(told(verify(log_, other)), "diverged 20");
}

TEST_F(AgainstACheckpoint, AResumeEntryMakesItGoodAgainForEveryCheckpointOfWhatWasLost) {
    for (const int between : {0, 4, 12}) {
        Log resumed = first(log_, 12);
        for (int i = 0; i < between; ++i) append_later(resumed);
        append_later(resumed, resume_entry(mark_, 12));
        for (int i = 0; i < 2; ++i) append_later(resumed);
        for (const std::int64_t size : {12, 13, 16, 20}) {
            const Verification verification = verify(resumed, mark_of(first(log_, size)));
            EXPECT_EQ(told(verification), "") << size;
            EXPECT_EQ(verification.checkpoint, size == 12 ? Comparison::agrees : Comparison::resumed) << size;
            ASSERT_EQ(verification.resumptions.size(), 1U);
            EXPECT_EQ(verification.resumptions[0].seq, 13 + between);
            EXPECT_EQ(verification.resumptions[0].after, 12);
            EXPECT_EQ(verification.resumptions[0].reason, "restored \"Monday\"'s dump");
        }
        EXPECT_EQ(resumed.verify().resumptions_total, 1) << "also without any checkpoint";
        EXPECT_EQ(told(verify(resumed, mark_of(resumed))), "") << "a checkpoint of what came after it";
    }
}

TEST_F(AgainstACheckpoint, AResumeEntryExplainsNothingElse) {
    CheckpointMark other = mark_;
    other.mac[0] ^= std::byte{1};
    for (const auto& [named, after] :
         std::vector<std::pair<CheckpointMark, std::int64_t>>{{other, 12}, {{19, mark_.mac, 0}, 12}, {mark_, 20}}) {
        Log resumed = first(log_, 12);
        append_later(resumed, resume_entry(named, after));
        EXPECT_EQ(told(verify(resumed, mark_)), "ROLLED BACK rolled_back 13-20");
    }
    Log resumed = first(log_, 12);
    append_later(resumed, resume_entry(mark_, 12));
    EXPECT_EQ(told(verify(first(resumed, 12), mark_)), "ROLLED BACK rolled_back 13-20") << "cut off again";
    const CheckpointMark later = mark_of(resumed);
    Log cut = first(resumed, 5);
    EXPECT_EQ(told(verify(cut, later)), "ROLLED BACK rolled_back 6-13");
    Log changed = resumed;
    changed.at(13).data->replace(changed.at(13).data->find("Monday"), 6, "Sunday");
    EXPECT_EQ(told(verify(changed, mark_)), "changed 13, rolled_back 14-20") << "not signed so";
}

TEST_F(AgainstACheckpoint, AResumeEntryDoesNotExplainACheckpointOfWhatCameAfterIt) {
    Log resumed = first(log_, 12);
    append_later(resumed, resume_entry(mark_, 12));
    for (int i = 0; i < 4; ++i) append_later(resumed);
    const CheckpointMark later{17, mark_of(resumed).mac, resumed.at(17).recorded_at};
    EXPECT_EQ(told(verify(resumed, later)), "");
    for (std::int64_t left = 16; left >= 13; --left) {
        EXPECT_EQ(told(verify(first(resumed, left), later)),
                  fmt::format("ROLLED BACK rolled_back {}", left == 16 ? "17" : fmt::format("{}-17", left + 1)));
    }
}

TEST_F(AgainstACheckpoint, AnEntryCantBeTurnedIntoAResumeEntry) {
    Log log = first(log_, 12);
    Row row = resume_entry(mark_, 12);
    row.action = "note";
    append_later(log, row);
    log.at(13).action = resume_action;
    EXPECT_EQ(findings_of(verify(log, mark_)), "changed 13, rolled_back 14-20");
    ChainKeys keys(log.keyring, {}, log.tenant);
    std::set<Mac> macs;
    for (const auto& action :
         {std::optional<std::string_view>(), std::optional(rotation_action), std::optional(resume_action),
          std::optional(retirement_action), std::optional(acknowledge_action)}) {
        SignedEntry entry;
        entry.key_id = log.keyring.active_id();
        entry.action = action;
        macs.insert(keys.mac(entry));
    }
    EXPECT_EQ(macs.size(), 5U);
}

TEST_F(AgainstACheckpoint, WithoutTheKeysItIsStillFoundThatTheLogIsShorter) {
    ChainVerifierOptions options;
    options.checkpoint = mark_;
    const Verification verification = first(log_, 12).verify(Keyring::generate(), options);
    EXPECT_EQ(verification.verdict, Verdict::rolled_back);
    EXPECT_EQ(verification.unverifiable_entries, 12);
    EXPECT_EQ(log_.verify(Keyring::generate(), options).verdict, Verdict::unverifiable);
}

TEST(ResumptionEntry, IsReadOnlyInTheFormThatItIsWrittenIn) {
    const std::string good = resumption_json({0, 12, 20, {}, 0, {}, "why"});
    SignedEntry entry;
    entry.data = good;
    EXPECT_TRUE(resumption_of(entry));
    for (const std::string data : {"", "{}", "[]", R"({"after": "12", "size": 20, "mac": "", "reason": "why"})",
                                   R"({"after": 12.0, "size": 20, "mac": "00", "reason": "why"})"}) {
        entry.data = data;
        EXPECT_FALSE(resumption_of(entry)) << data;
    }
}

}  // namespace
}  // namespace rowlock
