// Compares a chain with what a checkpoint says of it, and with the entries that tell of a resumption. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "audit/chain_findings.hpp"
#include "audit/frame.hpp"
#include "audit/own_entries.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/checkpoint.hpp"

namespace rowlock {

/// A checkpoint's word on one tenant.
struct CheckpointMark {
    std::int64_t size = 0;
    Mac mac{};
    std::int64_t made_at = 0;
};

/// Nothing where there is no checkpoint, or where it does not name the tenant.
[[nodiscard]] std::optional<CheckpointMark> mark_of(const Checkpoint* checkpoint, const TenantId& tenant);
/// Throws SetupError for a checkpoint of another ledger; `what` is what it is compared with.
void require_same_ledger(const Checkpoint& checkpoint, const LedgerId& ledger, std::string_view what);

/// Is shown the true entries of a chain, in order.
///
/// Where the chain went on after it had been put back, entries that are newer than the checkpoint stand at numbers that
/// it counts: entries up to its size were recorded before it was made. The first such entry shows where the log was put
/// back to.
class CheckpointComparison {
  public:
    explicit CheckpointComparison(std::optional<CheckpointMark> mark) : mark_(mark) {}

    void see(const SignedEntry& entry, const Mac& mac);
    /// `end`: the last entry that there is, or that the state row counts. `all_gone`: there is neither. `retired`: the
    /// entries that were dropped in order.
    [[nodiscard]] std::optional<FoundAt> finish(std::int64_t end, bool all_gone,
                                                const std::optional<Retirement>& retired);
    void tell(Verification& verification);

    /// The last entry from before the checkpoint; `end` where all are.
    [[nodiscard]] std::int64_t last_before(std::int64_t end) const;

  private:
    std::optional<FoundAt> finish_retired(const Retirement& retired);

    std::optional<CheckpointMark> mark_;
    std::optional<std::int64_t> first_newer_;
    Comparison comparison_ = Comparison::none;
    bool seen_ = false;
    std::vector<Resumption> resumptions_;
    std::int64_t resumptions_total_ = 0;
    bool resumed_ = false;
};

}  // namespace rowlock
