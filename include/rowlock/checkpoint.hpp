// Checkpoints: where every tenant's chain ended at one moment, signed, to be kept where the database is not.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rowlock/identifiers.hpp"
#include "rowlock/signing_key.hpp"
#include "rowlock/transaction.hpp"

namespace rowlock {

/// The end of one tenant's chain.
struct ChainHead {
    TenantId tenant;
    std::int64_t size = 0;            ///< The number of the last entry; at least 1.
    std::array<std::byte, 32> mac{};  ///< That entry's MAC. It is no secret: only who has the key can make another.
    std::string key_id;               ///< The key that the next entry must be signed with.

    bool operator==(const ChainHead&) const = default;
};

struct Checkpoint {
    LedgerId ledger{};
    std::int64_t made_at = 0;      ///< Microseconds since 1970-01-01 UTC, by the server's clock.
    std::vector<ChainHead> heads;  ///< In the order of the tenants' bytes, without those that have no entry yet.

    /// Null where the checkpoint says nothing of the tenant.
    [[nodiscard]] const ChainHead* find(const TenantId& tenant) const;
    bool operator==(const Checkpoint&) const = default;
};

/// Why a signed note is not believed.
struct NoteRefused {
    enum class Reason {
        damaged,        ///< It is no note of this kind.
        other_signer,   ///< None of the pinned keys has signed it.
        bad_signature,  ///< It bears the name of a pinned key, and is not what that key signed.
    };
    Reason reason;
    std::string detail;
};

/// Reads the ends of all chains that the role can see (rowlock_auditor sees all) in one snapshot: one statement. Takes
/// no lock. It reads the state rows alone and verifies nothing. Throws SetupError where a state row counts entries and
/// has no MAC, which is for `AuditLog::verify` to explain.
[[nodiscard]] Checkpoint read_checkpoint(Transaction& transaction);

/// What the database says of the last checkpoint that was noted: that it was made, not that it is still kept.
struct NotedCheckpoint {
    std::int64_t made_at = 0;          ///< Microseconds since 1970-01-01 UTC.
    std::chrono::milliseconds age{0};  ///< By the server's clock.
    std::int64_t tenants = 0;
    std::int64_t entries = 0;
};

/// Notes that the checkpoint was made, for `last_noted_checkpoint`. False, and nothing is done, where the role may not
/// (only rowlock_auditor may: others do not see all tenants) or the server takes no writes. Locks the one row that
/// holds it until the transaction ends.
bool note_checkpoint(Transaction& transaction, const Checkpoint& checkpoint);
/// Takes no lock.
[[nodiscard]] std::optional<NotedCheckpoint> last_noted_checkpoint(Transaction& transaction);

/// The checkpoint as a signed note (docs/formats/checkpoint.md). The same checkpoint and key give the same bytes.
[[nodiscard]] std::string sign_checkpoint(const Checkpoint& checkpoint, const SigningKey& key);

/// Reads a signed note and checks that one of `pinned` has signed it.
[[nodiscard]] std::variant<Checkpoint, NoteRefused> open_checkpoint(std::string_view note,
                                                                    std::span<const PublicKey> pinned);

}  // namespace rowlock
