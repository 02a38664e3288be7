// Every attack on every kind of log, at every entry: found and named there. Each kind of log untouched: no alarm.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <functional>
#include <iterator>

#include "audit/bundle_writer.hpp"
#include "audit/own_entries.hpp"
#include "support/environment.hpp"
#include "unit/bundle_pieces.hpp"
#include "unit/chain_log.hpp"

namespace rowlock {
namespace {

using test::joined;
using test::Log;
using test::make_log;
using test::pieces_of;
using test::Row;
using test::verify_text;
using Kinds = std::vector<FindingKind>;

constexpr LedgerId ledger{std::byte{7}};
constexpr std::int64_t far_future = 1'900'000'000'000'000;

/// A log that something lawful has happened to, and a checkpoint that it agrees with or has an answer to.
struct Kind {
    std::string name;
    Log log;
    CheckpointMark mark;
    Verdict verdict = Verdict::intact;
};

Mac mac_at(Log log, std::int64_t seq) {
    Mac mac{};
    std::ranges::copy(log.at(seq).mac, mac.begin());
    return mac;
}

CheckpointMark mark_at(const Log& log, std::int64_t seq) {
    return {seq, mac_at(log, seq), far_future};
}

Log with_more(Log log, int more) {
    for (int i = 0; i < more; ++i) log.append({});
    return log;
}

/// Entries 1 … through are dropped in order.
Log retired(Log log, std::int64_t through) {
    const std::string key = through >= 10 ? log.keyring.ids()[1] : log.keyring.ids()[0];
    Row row;
    row.action = retirement_action;
    row.data = retirement_json({0, through, mac_at(log, through), key, "ten years are over"});
    log.append(std::move(row));
    std::erase_if(log.rows, [&](const Row& each) { return each.seq <= through; });
    return log;
}

/// Put back to entry `after`, as by an older dump, resumed and gone on.
Log resumed(Log log, std::int64_t after) {
    Row row;
    row.action = resume_action;
    row.data = resumption_json({0, after, log.state.last_seq, mac_at(log, log.state.last_seq), 0, {}, "disk died"});
    std::erase_if(log.rows, [&](const Row& each) { return each.seq > after; });
    log.state.last_seq = after;
    log.state.head_mac = log.rows.back().mac;
    log.append(std::move(row));
    return with_more(std::move(log), 3);
}

/// Of the log that `acknowledged` makes; harmless to ask of another.
bool is_known_break(const Log& log, std::int64_t seq) {
    const bool known = std::ranges::any_of(log.rows, [](const Row& row) { return row.action == acknowledge_action; });
    return known && seq == 3;
}

/// Entry 3 is changed and entry 7 gone, and two entries say that this is known.
Log acknowledged(Log log) {
    log.at(3).actor = "mallory";
    log.erase(7);
    for (const Finding& finding : log.verify().findings) {
        Row row;
        row.action = acknowledge_action;
        row.data = acknowledgement_json(
            {0, finding.kind, finding.seq, finding.last_seq, finding.evidence.value(), 0, {}, "known", false});
        log.append(std::move(row));
    }
    return log;
}

/// The same history written once more from entry `from` on, truly signed, with another first entry.
Log branched(const Log& log, std::int64_t from) {
    Log branch = log;
    std::erase_if(branch.rows, [&](const Row& each) { return each.seq >= from; });
    branch.state = {from - 1, branch.rows.back().mac, Log(log).at(from).key_id};
    for (const Row& row : log.rows) {
        if (row.seq < from) continue;
        Row again = row;
        if (row.seq == from) again.actor = "another history";
        branch.append(std::move(again));
    }
    return branch;
}

class Attacks : public testing::Test {
  protected:
    Attacks() {
        const Log rotated = make_log(keyring_);  // at entry 10
        kinds_.push_back({"rotated", with_more(rotated, 2), mark_at(rotated, 20)});
        kinds_.push_back({"retired before a rotation", with_more(retired(rotated, 5), 2), mark_at(rotated, 20)});
        kinds_.push_back({"retired at a rotation", with_more(retired(rotated, 10), 2), mark_at(rotated, 20)});
        kinds_.push_back({"retired past the checkpoint", with_more(retired(rotated, 12), 2), mark_at(rotated, 11)});
        kinds_.push_back({"resumed", resumed(rotated, 15), mark_at(rotated, 20)});
        kinds_.push_back(
            {"resumed, then retired", with_more(retired(resumed(rotated, 15), 4), 1), mark_at(rotated, 20)});
        kinds_.push_back(
            {"acknowledged", with_more(acknowledged(rotated), 2), mark_at(rotated, 20), Verdict::acknowledged});
    }

    [[nodiscard]] Verification verify(const Log& log, const std::optional<CheckpointMark>& mark) const {
        ChainVerifierOptions options;
        options.checkpoint = mark;
        options.other_tenants = {other_.tenant};
        options.limits.trial_bytes_max = 1U << 16U;
        return log.verify(keyring_, std::move(options));
    }
    [[nodiscard]] std::string bundle_of(const Log& log) const {
        std::string bundle;
        BundleWriter writer(ledger, key_, [&](std::span<const std::byte> bytes) { bundle += test::as_string(bytes); });
        for (const Row& row : log.rows) writer.add(log.tenant, row.view());
        writer.finish(far_future);
        return bundle;
    }
    static bool names(const std::vector<Finding>& findings, std::int64_t seq, const Kinds& kinds) {
        return std::ranges::any_of(findings, [&](const Finding& finding) {
            return finding.seq <= seq && seq <= finding.last_seq &&
                   std::ranges::find(kinds, finding.kind) != kinds.end();
        });
    }
    /// Each entry of each kind of log, with a checkpoint and without one.
    void at_every_entry(const std::function<Kinds(Log&, std::int64_t)>& attack) const {
        for (const Kind& kind : kinds_) {
            for (const Row& row : kind.log.rows) {
                Log log = kind.log;
                const Kinds expected = attack(log, row.seq);
                if (expected.empty()) continue;
                for (const auto& mark : {std::optional<CheckpointMark>(), std::optional(kind.mark)}) {
                    const Verification found = verify(log, mark);
                    ASSERT_EQ(found.verdict, Verdict::tampered) << kind.name << ", entry " << row.seq;
                    ASSERT_TRUE(names(found.findings, row.seq, expected))
                        << kind.name << ", entry " << row.seq << ": " << test::findings_of(found);
                }
            }
        }
    }

    const Keyring keyring_ = Keyring::generate().rotated().rotated();
    const SigningKey key_ = SigningKey::generate("shop.example/audit");
    const Log other_ = with_more(make_log(keyring_, "globex"), 30);
    std::vector<Kind> kinds_;
};

TEST_F(Attacks, ThereAreNoneInWhatIsUntouchedAndNoAlarm) {
    for (const Kind& kind : kinds_) {
        const Verification alone = verify(kind.log, {});
        EXPECT_EQ(alone.verdict, kind.verdict) << kind.name << ": " << test::findings_of(alone);
        const Verification compared = verify(kind.log, kind.mark);
        EXPECT_EQ(compared.verdict, kind.verdict) << kind.name << ": " << test::findings_of(compared);
        BundleVerifyOptions options{.pinned = {key_.public_key()}};
        for (const bool with_keys : {false, true}) {
            if (with_keys) options.keyring = keyring_;
            const BundleVerification bundle = verify_text(bundle_of(kind.log), options);
            EXPECT_EQ(bundle.verdict, kind.verdict) << kind.name << ": " << test::told(bundle);
        }
    }
}

TEST_F(Attacks, OnAnyColumnAreNamed) {
    const std::vector<std::function<void(Row&)>> columns{
        [](Row& row) { row.actor = row.actor ? *row.actor + "x" : ""; },
        [](Row& row) { row.actor = row.actor == "" ? std::nullopt : std::optional<std::string>("eve"); },
        [](Row& row) { row.action = row.action ? *row.action + "x" : ""; },
        [](Row& row) { row.object = row.object ? *row.object + "x" : ""; },
        [](Row& row) { row.data = row.data ? *row.data + " " : "{}"; },
        [](Row& row) { ++row.recorded_at; },
        [](Row& row) { row.entry_id[15] ^= std::byte{1}; },
        [](Row& row) { row.prev_mac[31] ^= std::byte{1}; },
        [](Row& row) { row.mac[0] ^= std::byte{1}; },
    };
    for (const auto& change : columns) {
        at_every_entry([&](Log& log, std::int64_t seq) {
            change(log.at(seq));
            return Kinds{FindingKind::changed};
        });
    }
}

TEST_F(Attacks, OnTheKeyIdOrTheFormatAreNamed) {
    const auto other_key = [&](std::string_view key) {
        return [key = std::string(key)](Log& log, std::int64_t seq) {
            if (log.at(seq).key_id == key) return Kinds{};
            log.at(seq).key_id = key;
            return Kinds{FindingKind::changed, FindingKind::unknown_key};
        };
    };
    for (const std::string& key : keyring_.ids()) at_every_entry(other_key(key));
    at_every_entry(other_key("k000000000000"));
    at_every_entry([](Log& log, std::int64_t seq) {
        log.at(seq).format = 2;
        return Kinds{FindingKind::unknown_format};
    });
}

TEST_F(Attacks, ThatRemoveAnEntryAreNamed) {
    at_every_entry([](Log& log, std::int64_t seq) {
        log.erase(seq);
        return Kinds{FindingKind::missing, FindingKind::tail_missing};
    });
}

TEST_F(Attacks, ThatRemoveFromTheEndWithTheStateRowAreFoundAgainstACheckpoint) {
    for (const Kind& kind : kinds_) {
        const std::int64_t end = kind.log.state.last_seq;
        Log log = kind.log;
        while (!log.rows.empty()) {
            log.rows.pop_back();
            log.state.last_seq = log.rows.empty() ? 0 : log.rows.back().seq;
            log.state.head_mac = log.rows.empty() ? std::vector<std::byte>() : log.rows.back().mac;
            log.has_state = !log.rows.empty();
            if (log.has_state) log.state.key_id = log.state.last_seq >= 10 ? keyring_.ids()[1] : keyring_.ids()[0];
            const Verification found = verify(log, mark_at(kind.log, end));
            ASSERT_NE(found.verdict, Verdict::intact) << kind.name;
            ASSERT_NE(found.verdict, Verdict::empty) << kind.name;
            ASSERT_TRUE(names(found.findings, end, {FindingKind::rolled_back, FindingKind::chain_missing}))
                << kind.name << ": " << test::findings_of(found);
        }
    }
}

TEST_F(Attacks, ThatSwapMoveOrRepeatAreNamed) {
    at_every_entry([](Log& log, std::int64_t seq) {
        const auto next = std::ranges::find(log.rows, seq + 1, &Row::seq);
        if (next == log.rows.end()) return Kinds{};
        std::swap(log.at(seq).seq, next->seq);
        return Kinds{FindingKind::displaced, FindingKind::changed};
    });
    at_every_entry([](Log& log, std::int64_t seq) {
        log.rows.push_back(log.at(seq));
        return Kinds{FindingKind::duplicate};
    });
    at_every_entry([&](Log& log, std::int64_t seq) {
        Log other = other_;
        log.at(seq) = other.at(seq);
        return Kinds{FindingKind::foreign};
    });
    at_every_entry([](Log& log, std::int64_t seq) {
        // A gap: all behind it are numbered one higher, and so is the state row.
        for (Row& row : log.rows) row.seq += row.seq >= seq ? 1 : 0;
        ++log.state.last_seq;
        return Kinds{FindingKind::missing};
    });
}

TEST_F(Attacks, ThatSwapEntriesFarApartAreNamedAtBoth) {
    for (const std::int64_t distance : {2, 5}) {
        for (const bool at_first : {true, false}) {
            at_every_entry([&](Log& log, std::int64_t seq) {
                const auto other = std::ranges::find(log.rows, at_first ? seq + distance : seq - distance, &Row::seq);
                if (other == log.rows.end() || is_known_break(log, seq) || is_known_break(log, other->seq))
                    return Kinds{};
                std::swap(log.at(seq).seq, other->seq);
                return Kinds{FindingKind::displaced};
            });
        }
    }
}

TEST_F(Attacks, ThatPutTheTailOfOneBranchBehindAnotherAreNamed) {
    at_every_entry([](Log& log, std::int64_t seq) {
        const auto before = std::ranges::find(log.rows, seq - 1, &Row::seq);
        const auto before_that = std::ranges::find(log.rows, seq - 2, &Row::seq);
        if (before == log.rows.end() || before_that == log.rows.end() || is_known_break(log, seq - 1)) return Kinds{};
        const Row kept = *before;
        log = branched(log, seq - 1);
        log.at(seq - 1) = kept;
        return Kinds{FindingKind::unlinked};
    });
}

TEST_F(Attacks, ThatRemoveEveryEntryAndLeaveTheStateRowAreNamed) {
    for (const Kind& kind : kinds_) {
        Log log = kind.log;
        log.rows.clear();
        for (const auto& mark : {std::optional<CheckpointMark>(), std::optional(kind.mark)}) {
            const Verification found = verify(log, mark);
            EXPECT_EQ(found.verdict, Verdict::tampered) << kind.name;
            EXPECT_TRUE(names(found.findings, log.state.last_seq, {FindingKind::tail_missing}))
                << kind.name << ": " << test::findings_of(found);
        }
    }
}

TEST_F(Attacks, OnABundleAreNamed) {
    const BundleVerifyOptions options{.pinned = {key_.public_key()}};
    const Kinds kinds{FindingKind::changed,      FindingKind::missing, FindingKind::displaced,
                      FindingKind::tail_missing, FindingKind::foreign, FindingKind::chain_missing};
    const auto expect_named = [&](const std::vector<test::Piece>& pieces, std::int64_t seq, const std::string& what) {
        const BundleVerification found = verify_text(joined(pieces), options);
        ASSERT_EQ(found.verdict, Verdict::tampered) << what << ", entry " << seq;
        ASSERT_TRUE(found.damage || names(found.findings, seq, kinds))
            << what << ", entry " << seq << ": " << test::told(found);
    };
    const auto others = pieces_of(bundle_of(other_));
    for (const Kind& kind : kinds_) {
        const auto whole = pieces_of(bundle_of(kind.log));
        for (std::size_t at = 1; at <= kind.log.rows.size(); ++at) {
            const std::int64_t seq = kind.log.rows[at - 1].seq;
            auto pieces = whole;
            pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(at));
            expect_named(pieces, seq, kind.name + ", one removed");
            pieces = whole;
            pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(at), whole[at]);
            expect_named(pieces, seq, kind.name + ", one twice");
            pieces = whole;
            pieces[at] = others[static_cast<std::size_t>(seq)];
            expect_named(pieces, seq, kind.name + ", one of another tenant");
            if (at < kind.log.rows.size()) {
                pieces = whole;
                std::swap(pieces[at], pieces[at + 1]);
                expect_named(pieces, seq, kind.name + ", two swapped");
            }
            const auto step = static_cast<std::size_t>(test::full_or(7, 61));
            for (std::size_t byte = 0; byte < whole[at].payload.size(); byte += step) {
                pieces = whole;
                pieces[at].payload[byte] ^= 1;
                const BundleVerification found = verify_text(joined(pieces), options);
                ASSERT_EQ(found.verdict, Verdict::tampered) << kind.name << ", entry " << seq << ", byte " << byte;
                ASSERT_TRUE(found.damage || !found.findings.empty())
                    << kind.name << ", entry " << seq << ", byte " << byte;
            }
        }
    }
}

}  // namespace
}  // namespace rowlock
