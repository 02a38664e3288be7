// Every way to tamper with a log is found, with its kind and seq, and nothing else is reported.
#include "audit/chain.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "unit/chain_log.hpp"

namespace rowlock {

namespace {

using test::findings_of;
using test::Log;
using test::make_log;
using test::Row;
using test::without;

std::string numbered(std::string_view kind, std::int64_t seq) {
    return fmt::format("{} {}", kind, seq);
}

std::string range(std::string_view kind, std::int64_t first, std::int64_t last) {
    return first == last ? numbered(kind, first) : fmt::format("{} {}-{}", kind, first, last);
}

class Chain : public testing::Test {
  protected:
    /// Tampers with a fresh log and gives what is found.
    std::string after(const std::function<void(Log&)>& tamper, ChainVerifierOptions options = {}) {
        Log log = log_;
        tamper(log);
        const Verification verification = log.verify(keyring_, std::move(options));
        EXPECT_EQ(verification.verdict, verification.findings.empty() ? Verdict::intact : Verdict::tampered);
        EXPECT_EQ(verification.findings_total, static_cast<std::int64_t>(verification.findings.size()));
        return findings_of(verification);
    }

    const Keyring keyring_ = Keyring::generate().rotated().rotated();
    const Log log_ = make_log(keyring_);
    const std::string first_key_ = keyring_.ids()[0];
    const std::string second_key_ = keyring_.ids()[1];
    const std::string unused_key_ = keyring_.ids()[2];
};

TEST_F(Chain, ThatIsUntouchedIsIntact) {
    const Verification verification = log_.verify();
    EXPECT_EQ(verification.verdict, Verdict::intact);
    EXPECT_EQ(verification.entries, 20);
    EXPECT_EQ(verification.unverifiable_entries, 0);
    EXPECT_EQ(findings_of(verification), "");
}

TEST_F(Chain, ThatHasNothingIsEmptyAndNotIntact) {
    Log log(keyring_, "acme");
    EXPECT_EQ(log.verify().verdict, Verdict::empty);
    log.has_state = false;
    EXPECT_EQ(log.verify().verdict, Verdict::empty);
    log.has_state = true;
    log.state.head_mac.assign(32, std::byte{1});
    EXPECT_EQ(findings_of(log.verify()), "state_changed 0");
}

TEST(ChainOfAnyContent, GivesNoFalseAlarm) {
    std::mt19937 random(20);
    for (int round = 0; round < 1000; ++round) {
        const Log log = test::make_random_log(random);
        const Verification verification = log.verify();
        ASSERT_EQ(findings_of(verification), "") << round;
        ASSERT_EQ(verification.verdict, log.rows.empty() ? Verdict::empty : Verdict::intact);
        // Nor if any key is missing.
        for (const std::string& id : log.keyring.ids()) {
            const Verification partly = log.verify(without(log.keyring, id));
            ASSERT_EQ(findings_of(partly), "") << round;
            const auto signed_by =
                std::count_if(log.rows.begin(), log.rows.end(), [&](const Row& row) { return row.key_id == id; });
            ASSERT_EQ(partly.unverifiable_entries, signed_by);
        }
    }
}

/// All bits of a short text; the text becomes NULL and, if it is not, empty.
std::vector<std::optional<std::string>> changes_of(const std::optional<std::string>& text) {
    std::vector<std::optional<std::string>> changes{text.value_or("") + "x"};
    if (!text) return {"", "x"};
    changes.emplace_back(std::nullopt);
    if (!text->empty()) changes.emplace_back("");
    for (std::size_t byte = 0; byte < text->size(); ++byte) {
        for (unsigned bit = 0; bit < 8; ++bit) {
            std::string changed = *text;
            changed[byte] = static_cast<char>(static_cast<unsigned char>(changed[byte]) ^ (1U << bit));
            changes.emplace_back(changed);
        }
    }
    return changes;
}

std::vector<std::vector<std::byte>> changes_of(const std::vector<std::byte>& bytes) {
    std::vector<std::vector<std::byte>> changes{{}, std::vector<std::byte>(bytes.size())};
    changes.emplace_back(bytes.begin(), bytes.end() - 1);
    changes.push_back(bytes);
    changes.back().push_back(std::byte{0});
    for (std::size_t byte = 0; byte < bytes.size(); ++byte) {
        for (unsigned bit = 0; bit < 8; ++bit) {
            changes.push_back(bytes);
            changes.back()[byte] ^= static_cast<std::byte>(1U << bit);
        }
    }
    return changes;
}

TEST_F(Chain, NamesTheEntryOfWhichATextWasChanged) {
    for (const auto column : {&Row::actor, &Row::action, &Row::object, &Row::data}) {
        for (const Row& row : log_.rows) {
            for (const auto& changed : changes_of(row.*column)) {
                ASSERT_EQ(after([&](Log& log) { log.at(row.seq).*column = changed; }), numbered("changed", row.seq));
            }
        }
    }
}

TEST_F(Chain, NamesTheEntryOfWhichAMacWasChanged) {
    for (const auto column : {&Row::prev_mac, &Row::mac}) {
        for (const Row& row : log_.rows) {
            for (const auto& changed : changes_of(row.*column)) {
                ASSERT_EQ(after([&](Log& log) { log.at(row.seq).*column = changed; }), numbered("changed", row.seq));
            }
        }
    }
}

TEST_F(Chain, NamesTheEntryOfWhichAnIdOrATimeWasChanged) {
    for (const Row& row : log_.rows) {
        for (std::size_t byte = 0; byte < 16; ++byte) {
            ASSERT_EQ(after([&](Log& log) { log.at(row.seq).entry_id.at(byte) ^= std::byte{1}; }),
                      numbered("changed", row.seq));
        }
        for (unsigned bit = 0; bit < 64; ++bit) {
            ASSERT_EQ(after([&](Log& log) {
                          auto& time = log.at(row.seq).recorded_at;
                          time = static_cast<std::int64_t>(static_cast<std::uint64_t>(time) ^ (1ULL << bit));
                      }),
                      numbered("changed", row.seq));
        }
    }
}

TEST_F(Chain, NamesTheEntryOfWhichTheKeyIdWasChanged) {
    for (const Row& row : log_.rows) {
        for (const std::string& id :
             {first_key_, second_key_, unused_key_, std::string("k000000000000"), std::string()}) {
            if (id == row.key_id) continue;
            ASSERT_EQ(after([&](Log& log) { log.at(row.seq).key_id = id; }), numbered("unknown_key", row.seq)) << id;
        }
    }
}

TEST_F(Chain, NamesTheEntryOfWhichTheFormatWasChanged) {
    for (const Row& row : log_.rows) {
        for (const int format : {0, 2, -1, 257}) {
            ASSERT_EQ(after([&](Log& log) { log.at(row.seq).format = static_cast<std::int16_t>(format); }),
                      numbered("unknown_format", row.seq));
        }
    }
}

TEST_F(Chain, NamesTheEntryThatWasRemovedAndTheTail) {
    for (std::int64_t first = 1; first <= 20; ++first) {
        for (std::int64_t last = first; last <= 20; ++last) {
            const std::string expected = range(last == 20 ? "tail_missing" : "missing", first, last);
            ASSERT_EQ(after([&](Log& log) {
                          for (std::int64_t seq = first; seq <= last; ++seq) log.erase(seq);
                      }),
                      expected);
        }
    }
}

TEST_F(Chain, NamesBothEntriesThatWereSwappedAndWhereTheyBelong) {
    for (std::int64_t left = 1; left <= 20; ++left) {
        for (std::int64_t right = left + 1; right <= 20; ++right) {
            const std::string expected = fmt::format("displaced {0}>{1}, displaced {1}>{0}", left, right);
            ASSERT_EQ(after([&](Log& log) { std::swap(log.at(left).seq, log.at(right).seq); }), expected);
        }
    }
}

TEST_F(Chain, NamesAnEntryThatWasRenumberedBeyondTheEnds) {
    for (std::int64_t seq = 1; seq <= 20; ++seq) {
        const std::string gone = numbered(seq == 20 ? "tail_missing" : "missing", seq);
        for (const std::int64_t to : {std::int64_t{21}, std::int64_t{22}, INT64_MAX}) {
            ASSERT_EQ(after([&](Log& log) { log.at(seq).seq = to; }),
                      fmt::format("{}, displaced {}>{}", gone, to, seq));
        }
        for (const std::int64_t to : {std::int64_t{0}, std::int64_t{-3}, INT64_MIN}) {
            ASSERT_EQ(after([&](Log& log) { log.at(seq).seq = to; }),
                      fmt::format("displaced {}>{}, {}", to, seq, gone));
        }
    }
}

TEST_F(Chain, NamesACopyOfAnEntryAtItsOwnPlace) {
    for (std::int64_t seq = 1; seq <= 20; ++seq) {
        ASSERT_EQ(after([&](Log& log) { log.rows.push_back(Row(log.at(seq))); }), numbered("duplicate", seq));
    }
}

TEST_F(Chain, NamesACopyOfAnEntryBesideOrOverAnother) {
    for (std::int64_t from = 1; from <= 20; ++from) {
        for (std::int64_t to = 1; to <= 21; ++to) {
            if (to == from) continue;
            const std::string displaced = fmt::format("displaced {}>{}", to, from);
            const auto copy = [&](Log& log, bool first) {
                Row row = log.at(from);
                row.seq = to;
                log.rows.insert(first ? log.rows.begin() : log.rows.end(), row);
            };
            const std::string beside = to == 21 ? displaced : fmt::format("duplicate {}, {}", to, displaced);
            ASSERT_EQ(after([&](Log& log) { copy(log, true); }), beside);
            ASSERT_EQ(after([&](Log& log) { copy(log, false); }), beside);
            ASSERT_EQ(after([&](Log& log) {
                          log.erase(to);
                          copy(log, true);
                      }),
                      displaced);
        }
    }
}

TEST_F(Chain, NamesAnEntryOfAnotherTenant) {
    const Log other = make_log(keyring_, "other");
    const ChainVerifierOptions options{{TenantId("third"), TenantId("other")}, {}};
    for (const Row& row : other.rows) {
        const std::string expected = fmt::format("foreign {0}>{0}", row.seq);
        const std::string beside = fmt::format("duplicate {}, {}", row.seq, expected);
        ASSERT_EQ(after([&](Log& log) { log.at(row.seq) = row; }, options), expected);
        ASSERT_EQ(after([&](Log& log) { log.rows.push_back(row); }, options), beside);
        ASSERT_EQ(after([&](Log& log) { log.rows.insert(log.rows.begin(), row); }, options), beside);
        ASSERT_EQ(after(
                      [&](Log& log) {
                          log.rows.push_back(row);
                          log.rows.back().seq = 21;
                      },
                      options),
                  fmt::format("foreign 21>{}", row.seq));
        // Without a tenant to try, it is still found.
        const std::string next = row.seq == 20 ? "state_changed 20" : numbered("unlinked", row.seq + 1);
        ASSERT_EQ(after([&](Log& log) { log.at(row.seq) = row; }), fmt::format("changed {}, {}", row.seq, next));
    }
    EXPECT_EQ(findings_of(other.verify()), "");
}

TEST_F(Chain, DoesNotTakeAnotherTenantsChainForItsOwn) {
    Log other = make_log(keyring_, "other");
    other.tenant = TenantId("acme");
    EXPECT_EQ(findings_of(other.verify()), "changed 1-20");
}

TEST_F(Chain, NamesAStateRowThatDoesNotFitTheEnd) {
    EXPECT_EQ(after([](Log& log) { log.has_state = false; }), "state_changed 20");
    EXPECT_EQ(after([](Log& log) { log.state.last_seq = 21; }), "state_changed 20");
    EXPECT_EQ(after([](Log& log) { log.state.last_seq = INT64_MAX; }), "state_changed 20");
    EXPECT_EQ(after([](Log& log) { log.state.last_seq = 19; }), "state_changed 20");
    EXPECT_EQ(after([](Log& log) { log.state.last_seq = 0; }), "state_changed 1-20");
    EXPECT_EQ(after([](Log& log) { log.state.last_seq = -1; }), "state_changed 1-20");
    for (std::size_t byte = 0; byte < 32; ++byte) {
        EXPECT_EQ(after([&](Log& log) { log.state.head_mac.at(byte) ^= std::byte{1}; }), "state_changed 20");
    }
    EXPECT_EQ(after([](Log& log) { log.state.head_mac.clear(); }), "state_changed 20");
    EXPECT_EQ(after([&](Log& log) { log.state.key_id = first_key_; }), "state_changed 20");
    EXPECT_EQ(after([&](Log& log) { log.state.key_id.clear(); }), "state_changed 20");
    EXPECT_EQ(after([&](Log& log) {
                  log.state.last_seq = 19;
                  log.state.head_mac = log.at(19).mac;
              }),
              "state_changed 20");
}

TEST_F(Chain, FindsARemovedTailAlsoWhenTheStateRowWasLoweredOnlyInPart) {
    EXPECT_EQ(after([](Log& log) {
                  log.erase(20);
                  log.state.last_seq = 19;
              }),
              "state_changed 19");
    EXPECT_EQ(after([](Log& log) {
                  log.erase(20);
                  log.state.head_mac = log.at(19).mac;
              }),
              "state_changed 19");
}

TEST_F(Chain, AfterARotationTheStateRowNamesTheNewKey) {
    Log log(keyring_, "acme");
    log.append({});
    log.rotate(1);
    EXPECT_EQ(findings_of(log.verify()), "");
    log.state.key_id = first_key_;
    EXPECT_EQ(findings_of(log.verify()), "state_changed 2");
}

}  // namespace

}  // namespace rowlock
