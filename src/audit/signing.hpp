// Numbers and signs entries that follow a head. Pure: the head, the clock and what is there already come in as values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "audit/frame.hpp"
#include "rowlock/audit_log.hpp"

namespace rowlock {

/// The tenant's state row, as read under its lock.
struct Head {
    std::int64_t last_seq = 0;
    std::optional<Mac> mac;             ///< Nothing before the first entry.
    std::optional<std::string> key_id;  ///< Likewise; else the key that the next entry must be signed with.
};

/// An entry that was there before, with an id that is asked for again.
struct ExistingEntry {
    std::int64_t seq;
    AuditEntry content;
};

/// An entry as it goes into the table.
struct SignedRow {
    std::int64_t seq;
    std::int64_t recorded_at;
    AuditEntry content;
    std::string key_id;
    Mac prev_mac;
    Mac mac;
};

struct SignedBatch {
    std::vector<SignedRow> rows;
    std::vector<AppendOutcome> outcomes;  ///< One for each entry that was given, in order.
};

/// Everything that decides on the numbers and MACs of one tenant's new entries.
struct SigningSituation {
    Head head;
    std::int64_t clock = 0;  ///< Microseconds since 1970, read under the lock.
    std::vector<ExistingEntry> existing;
};

struct EntryToSign {
    const AuditEntry* entry;
    /// When it was staged, if it was; else it is recorded at the situation's clock.
    std::optional<std::int64_t> recorded_at;
};

/// Numbers and signs `entries` with the active key; where the chain is still under another key, a rotation entry,
/// signed with that one, comes first. An id that is there already, or twice in `entries`, is not appended again. Throws
/// SetupError if the chain's key is not in the keyring.
[[nodiscard]] SignedBatch sign_entries(ChainKeys& keys, const SigningSituation& situation,
                                       const std::vector<EntryToSign>& entries);

}  // namespace rowlock
