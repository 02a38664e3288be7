// Entries whose MAC does not fit, kept to find out where they come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "audit/frame.hpp"
#include "audit/owned_entry.hpp"
#include "crypto/sha256.hpp"

namespace rowlock {

/// How much is spent on telling where a bad entry comes from. Whether it is bad never depends on these.
struct SuspectLimits {
    std::size_t entries_max = 256;
    std::size_t bytes_max = 4U << 20U;
    /// Bytes hashed to try places, in all: about a quarter of a second.
    std::size_t trial_bytes_max = 128U << 20U;
};

struct Suspect : OwnedEntry {
    using OwnedEntry::OwnedEntry;

    /// The chain does not use its key here.
    bool key_unexpected = false;
    /// A second entry of its seq, which has been reported as such.
    bool extra = false;
    /// Where the entry after it is true and follows neither its stored nor its recomputed MAC: that one's link_hash.
    std::optional<Digest> next_unlinked;

    std::optional<std::int64_t> belongs_at;
    std::optional<TenantId> belongs_to;
};

class SuspectList {
  public:
    SuspectList(SuspectLimits limits, std::vector<TenantId> other_tenants)
        : limits_(limits), other_tenants_(std::move(other_tenants)) {}

    /// The index, or nothing where the list is full.
    std::optional<std::size_t> add(const SignedEntry& entry);
    [[nodiscard]] Suspect& operator[](std::size_t index) { return suspects_[index]; }
    [[nodiscard]] std::vector<Suspect>& all() { return suspects_; }

    /// A seq that no entry has: a suspect may belong there.
    void add_vacant(std::int64_t first, std::int64_t last);

    /// Looks for the place of every suspect: at the seqs of the others and the vacant ones, in the other tenants, and
    /// anywhere up to `seq_max`.
    void locate(ChainKeys& keys, const LedgerId& ledger, std::int64_t seq_max);

  private:
    /// What may be spent on one suspect.
    struct Share {
        std::size_t bytes;
        std::int64_t seq_max;
    };

    bool fits(ChainKeys& keys, const Suspect& suspect, std::int64_t seq);
    bool locate_at_candidates(ChainKeys& keys, Suspect& suspect);
    bool locate_anywhere(ChainKeys& keys, Suspect& suspect, std::int64_t seq_max, std::size_t bytes_to_leave);
    bool locate_in_others(std::vector<ChainKeys>& others, Suspect& suspect, std::int64_t seq_max,
                          std::size_t bytes_to_leave);
    void locate_with_share(ChainKeys& keys, std::vector<ChainKeys>& others, Suspect& suspect, const Share& share);

    SuspectLimits limits_;
    std::vector<TenantId> other_tenants_;
    std::vector<Suspect> suspects_;
    std::vector<std::int64_t> vacant_;
    std::size_t bytes_ = 0;
    std::size_t trial_bytes_left_ = 0;
};

}  // namespace rowlock
