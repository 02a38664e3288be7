// The list of what a verification found.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rowlock/audit_log.hpp"

namespace rowlock {

/// One thing found, without the tenant that all of them share.
struct FoundAt {
    FindingKind kind;
    std::int64_t seq;
    std::int64_t last_seq;
    std::optional<std::int64_t> belongs_at;
    std::string detail;
};

/// Takes findings, kind by kind in order of seq, joins runs of one kind, and keeps at most Verification::findings_max.
class FindingList {
  public:
    explicit FindingList(TenantId tenant) : tenant_(std::move(tenant)) {}

    void add(FoundAt found);
    /// Moves the findings, in order of seq, into the verification.
    void finish(Verification& verification);

  private:
    static constexpr std::size_t kinds = 14;

    void close(std::optional<FoundAt>& run);

    TenantId tenant_;
    std::array<std::optional<FoundAt>, kinds> runs_;
    std::vector<FoundAt> kept_;
    std::int64_t total_ = 0;
};

}  // namespace rowlock
