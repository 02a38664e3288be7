// Verifies a bundle. Pure: its records come in as values, in their order.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "audit/bundle_format.hpp"
#include "audit/chain.hpp"
#include "audit/chain_checkpoint.hpp"
#include "rowlock/bundle.hpp"

namespace rowlock {

/// Two things bind the entries: each has a hash over itself and the hash before it, so that a changed one is named; the
/// signed note has the last hash of each tenant, so that nobody can make all of them anew. Goes on after a finding;
/// stops where a record does not fit the grammar, since nothing tells what would come next.
class BundleVerifier {
  public:
    explicit BundleVerifier(const BundleVerifyOptions& options) : options_(options) {}

    /// What is wrong with the record, where it spoils the file; nothing of the payload is used after the call.
    [[nodiscard]] std::optional<std::string> take(BundleRecord type, std::span<const std::byte> payload);
    [[nodiscard]] std::int64_t entries() const noexcept { return result_.entries; }
    /// `damage`: what ended the reading before the end of the file. To be called once.
    [[nodiscard]] BundleVerification finish(std::optional<BundleDamage> damage);
    /// Has the trailer come?
    [[nodiscard]] bool complete() const noexcept { return phase_ == Phase::done; }

  private:
    enum class Phase { header, entries, trailer, done };

    /// What is known of the tenant whose entries are being read.
    struct Chain {
        BundleHead head;
        Digest computed{};  ///< The hash of the last entry as it stands, beside the stored one in `head`.
        bool sound = true;  ///< The last entry is as it was hashed.
        CheckpointComparison comparison;
        RetiredPrefix prefix;
        Acknowledgements acknowledgements;
        FindingList found;  ///< In the log that was exported, as far as it can be seen without its keys.
        std::optional<ChainVerifier> verifier;
    };

    std::optional<std::string> take_header(std::span<const std::byte> payload);
    std::optional<std::string> take_entry(std::span<const std::byte> payload);
    std::optional<std::string> take_note(std::span<const std::byte> payload);
    std::optional<std::string> take_trailer(std::span<const std::byte> payload);

    bool open_chain(const BundleEntry& read);
    void close_chain();
    void check_hash(const BundleEntry& read);
    [[nodiscard]] Digest hash_after(const Digest& before, std::span<const std::byte> hashed);
    void check_log(Chain& chain);
    void tell_acknowledged(const TenantId& tenant, const std::vector<Acknowledgement>& acknowledgements);
    void check_chain(Chain& chain);

    void tell_not_in_bundle();

    void compare_heads(const std::vector<BundleHead>& signed_heads);
    void compare_head(const BundleHead& here, const BundleHead& signed_head);
    void report(FindingKind kind, const TenantId& tenant, std::int64_t first, std::int64_t last, std::string detail);
    void keep(Finding finding);
    [[nodiscard]] Verdict verdict() const;

    const BundleVerifyOptions& options_;
    BundleVerification result_;
    Phase phase_ = Phase::header;
    std::optional<Chain> chain_;
    std::vector<BundleHead> heads_;
    std::vector<Digest> computed_;  ///< As Chain::computed, for each of heads_.
    Sha256 hash_;
    bool pinned_ = false;
};

}  // namespace rowlock
