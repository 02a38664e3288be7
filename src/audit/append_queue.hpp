// What waits to be appended, and which of it goes next. Neither threads nor a server in here.
#pragma once

#include <cstddef>
#include <deque>
#include <future>
#include <optional>
#include <unordered_map>
#include <vector>

#include "rowlock/audit_log.hpp"

namespace rowlock {

struct WaitingEntry {
    AuditEntry entry;
    std::promise<AppendOutcome> outcome;
};

/// Entries of one tenant for one transaction, in the order in which they came.
struct AppendBatch {
    TenantId tenant;
    std::vector<WaitingEntry> entries;
};

/// Tenants take turns; one that has a batch under way gets no other until that is done.
class AppendQueue {
  public:
    AppendQueue(std::size_t batch_entries_max, std::size_t batch_bytes_max)
        : batch_entries_max_(batch_entries_max), batch_bytes_max_(batch_bytes_max) {}

    /// Whether it made a turn: false where the tenant has one already, or a batch under way.
    bool add(const TenantId& tenant, WaitingEntry entry);
    /// Something that `take` would give.
    [[nodiscard]] bool has_turn() const noexcept { return !turns_.empty(); }
    [[nodiscard]] std::optional<AppendBatch> take();
    /// The tenant's batch is settled.
    void done(const TenantId& tenant);
    /// Neither waiting nor under way.
    [[nodiscard]] bool empty() const noexcept { return tenants_.empty(); }

  private:
    std::size_t batch_entries_max_;
    std::size_t batch_bytes_max_;
    /// Tenants with something waiting or under way.
    std::unordered_map<TenantId, std::deque<WaitingEntry>> tenants_;
    /// Those of them with something waiting and nothing under way, the one that has waited longest first.
    std::deque<TenantId> turns_;
};

}  // namespace rowlock
