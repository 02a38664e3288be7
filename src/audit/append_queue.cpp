#include "audit/append_queue.hpp"

#include "base/contract.hpp"

namespace rowlock {

namespace {

std::size_t content_bytes(const AuditEntry& entry) {
    std::size_t bytes = 0;
    for (const auto* const text : {&entry.actor, &entry.action, &entry.object, &entry.data}) {
        if (*text) bytes += (*text)->size();
    }
    return bytes;
}

}  // namespace

bool AppendQueue::add(const TenantId& tenant, WaitingEntry entry) {
    const auto [at, is_new] = tenants_.try_emplace(tenant);
    at->second.push_back(std::move(entry));
    if (is_new) turns_.push_back(tenant);
    return is_new;
}

std::optional<AppendBatch> AppendQueue::take() {
    if (turns_.empty()) return std::nullopt;
    AppendBatch batch{std::move(turns_.front()), {}};
    turns_.pop_front();
    auto& waiting = tenants_.at(batch.tenant);
    std::size_t bytes = 0;
    while (!waiting.empty() && batch.entries.size() < batch_entries_max_) {
        bytes += content_bytes(waiting.front().entry);
        if (bytes > batch_bytes_max_ && !batch.entries.empty()) break;
        batch.entries.push_back(std::move(waiting.front()));
        waiting.pop_front();
    }
    return batch;
}

void AppendQueue::done(const TenantId& tenant) {
    const auto at = tenants_.find(tenant);
    contract(at != tenants_.end(), "a batch that is done was taken before");
    if (at->second.empty()) {
        tenants_.erase(at);
    } else {
        turns_.push_back(tenant);
    }
}

}  // namespace rowlock
