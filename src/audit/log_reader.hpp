// Reads one tenant's log as a stream, in memory that does not grow with it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "audit/chain.hpp"
#include "audit/frame.hpp"
#include "rowlock/transaction.hpp"

namespace rowlock {

/// What there is to read, fixed before the first entry is read: what is appended meanwhile is not looked at.
struct LogRange {
    LedgerId ledger{};
    /// Nothing where the tenant has no state row. Points into this LogRange.
    std::optional<StateRow> state;
    std::vector<std::byte> head_mac;
    std::string key_id;
    std::int64_t first = 1;
    std::int64_t last = 0;  ///< Below `first` where there is no entry.

    LogRange() = default;
    LogRange(const LogRange&) = delete;
    LogRange& operator=(const LogRange&) = delete;
};

/// Reads state row and ends in one snapshot: appends move them together. Takes no lock.
void read_range(Transaction& transaction, const TenantId& tenant, LogRange& range);

/// Hands over the entries of the range, by seq, as pieces of COPY BINARY, a COPY for each `chunk_entries`: at READ
/// COMMITTED each has a snapshot of its own, so that the server can remove dead versions of the state rows meanwhile.
/// `next_chunk` is called before each one with the sequence number that it begins with. Takes no lock.
void read_pieces(Transaction& transaction, const TenantId& tenant, const LogRange& range, std::int64_t chunk_entries,
                 const std::function<void(std::int64_t)>& next_chunk,
                 const std::function<void(std::span<const std::byte>)>& piece);

}  // namespace rowlock
