// Verifies one tenant's chain. Pure: entries come in as values, in order of seq; nothing is read from anywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "audit/chain_acknowledgement.hpp"
#include "audit/chain_checkpoint.hpp"
#include "audit/chain_findings.hpp"
#include "audit/chain_retirement.hpp"
#include "audit/chain_suspects.hpp"
#include "audit/frame.hpp"
#include "rowlock/audit_log.hpp"

namespace rowlock {

/// The tenant's row of rowlock.tenant_seq; what is NULL there is empty here.
struct StateRow {
    std::int64_t last_seq = 0;
    std::span<const std::byte> head_mac;
    /// The key of the next entry: after a rotation the new one.
    std::string_view key_id;
};

struct ChainVerifierOptions {
    /// Tenants that an entry may have been taken from. Each costs a key derivation for each key once an entry is bad.
    std::vector<TenantId> other_tenants;
    SuspectLimits limits;
    /// What the chain is to be compared with.
    std::optional<CheckpointMark> checkpoint{};
};

/// Checks every entry by its own MAC ("authentic") and by the recomputed MAC of the one before it ("linked"), goes on
/// after a break, and names each break once, at the first bad seq:
///
/// - An entry that is not authentic is `changed`, unless its MAC fits another seq (`displaced`) or another tenant
///   (`foreign`). The link of the entry after it is judged only as far as it can be: `unlinked` if it follows neither
///   the stored nor the recomputed MAC of an entry that is `changed`.
/// - The chain's key is the one that genesis names, then the one that each rotation entry names; any other is
///   `unknown_key`, at hand or not. After a bad or missing entry, which may have been a rotation, an authentic entry's
///   key is taken for the chain's, unless the chain had left that key before.
/// - A break that an entry further on acknowledges is told by that entry and is no finding.
/// - An entry of the chain's key that is not at hand counts as unverifiable; the chain goes on from its stored MAC.
///
/// Memory does not grow with the log: the limits bound the suspects, Verification::findings_max the findings.
class ChainVerifier {
  public:
    ChainVerifier(Keyring keyring, const LedgerId& ledger, TenantId tenant, ChainVerifierOptions options = {});

    /// The next entry by seq. Each stored row is given once; a seq that comes again is a `duplicate`. Nothing of the
    /// entry is used after the call.
    void feed(const SignedEntry& entry);

    [[nodiscard]] std::int64_t entries() const noexcept { return verification_.entries; }

    /// Compares the end with the state row (nothing where there is none) and tells all. To be called once.
    [[nodiscard]] Verification finish(const std::optional<StateRow>& state);

  private:
    enum class Standing {
        none,          ///< Nothing came before: the chain begins.
        gap,           ///< The entry before is missing.
        good,          ///< Authentic, and the chain's key.
        unverifiable,  ///< The chain's key, not at hand.
        suspect,       ///< Not authentic.
        rejected,      ///< Of a key or a format that the chain does not have.
    };

    struct Last {
        std::int64_t seq = 0;
        Standing standing = Standing::none;
        Mac stored{};
        Mac recomputed{};
        std::optional<std::size_t> suspect;
    };

    /// What the entries so far say of the next one.
    struct Position {
        Last last;
        /// Empty before the first entry.
        std::string key_id;
        /// A bad or missing entry may have brought another key, perhaps `named_key`.
        bool key_open = false;
        std::string named_key;
    };

    void report(FindingKind kind, std::int64_t first, std::int64_t last, std::string detail);
    /// Of one entry, and what shows that it is the same one when it is found again.
    void report_entry(FindingKind kind, std::int64_t seq, const Digest& hash, std::string detail);
    void report_unlinked(const SignedEntry& entry, const Mac& before, std::string detail);
    void stray(const SignedEntry& entry, bool extra);
    void repeated(const SignedEntry& entry);
    void judge(const SignedEntry& entry);
    void judge_without_key(const SignedEntry& entry);
    void reject(const SignedEntry& entry, FindingKind kind, std::string detail);
    void suspect(const SignedEntry& entry, const Mac& recomputed);
    void accept(const SignedEntry& entry, Standing standing, const Mac& recomputed);
    void note_gap(std::int64_t first, std::int64_t last);
    void flush_gaps();
    void begin_with(const SignedEntry& entry);
    void check_link(const SignedEntry& entry);
    void introduce_key(const SignedEntry& entry);
    void change_key(std::string_view key_id);
    [[nodiscard]] bool is_chain_key(const SignedEntry& entry) const;
    [[nodiscard]] bool may_adopt(std::string_view key_id) const;

    void finish_without_state();
    void finish_gaps(std::int64_t last_seq);
    void finish_tail(const StateRow& state);
    void finish_head(const StateRow& state);
    [[nodiscard]] bool agrees_with_end(const StateRow& state, const Last& end);
    void finish_suspects();
    void finish_prefix();
    void finish_checkpoint(const std::optional<StateRow>& state);
    [[nodiscard]] Verdict verdict() const;
    void report_suspect(const Suspect& suspect);

    ChainKeys keys_;
    LedgerId ledger_;
    SuspectList suspects_;
    CheckpointComparison comparison_;
    RetiredPrefix prefix_;
    Acknowledgements acknowledgements_;
    FindingList findings_;
    Verification verification_;
    Position position_;
    /// As it was before the entry at position_.last, if that one is bad: a second entry of the same seq may be the true
    /// one.
    Position before_;
    Last last_good_;
    /// The seq of the entry that the first key was taken from.
    std::int64_t begun_at_ = 0;
    /// Keys at hand that a rotation has ended.
    std::vector<std::string> retired_keys_;
    /// Not reported yet: nothing good has come after them, so what came may stand far beyond the end.
    std::vector<std::pair<std::int64_t, std::int64_t>> gaps_;
};

}  // namespace rowlock
