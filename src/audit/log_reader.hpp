// Reads one tenant's log as a stream, in memory that does not grow with it.
#pragma once

#include <chrono>
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

/// Whether entries have been dropped since a range was read that began with `first`. Takes no lock.
[[nodiscard]] bool begins_later_than(Transaction& transaction, const TenantId& tenant, std::int64_t first);

/// Called after a chunk during which others wrote, with how long to leave the server to them.
using Rest = std::function<void(std::chrono::nanoseconds)>;

/// How a range is handed over.
struct PieceReader {
    std::int64_t chunk_entries;                             ///< Entries in one COPY.
    std::function<void(std::int64_t)> next_chunk;           ///< Called before each COPY with its first sequence number.
    std::function<void(std::span<const std::byte>)> piece;  ///< Called with each piece of COPY BINARY.
    Rest rest{};                                            ///< None for full speed.
};

/// Sleeps; none where it is not to give way.
Rest rest_for_writers(bool gives_way);

/// Hands over the entries of the range, by seq. At READ COMMITTED each chunk has a snapshot of its own, so that the
/// server can remove dead versions of the state rows meanwhile. Takes no lock.
void read_pieces(Transaction& transaction, const TenantId& tenant, const LogRange& range, const PieceReader& reader);

}  // namespace rowlock
