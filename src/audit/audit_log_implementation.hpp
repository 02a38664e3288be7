#pragma once

#include "audit/chain_keys_cache.hpp"
#include "rowlock/audit_log.hpp"

namespace rowlock {

struct AuditLog::Implementation {
    explicit Implementation(Keyring keyring) : cache(std::move(keyring)) {}
    /// Also entries with the log's own actions, which callers may not give.
    [[nodiscard]] std::vector<AppendOutcome> append_all(Transaction& transaction,
                                                        std::span<const TenantEntry> entries) const;
    /// Appends one entry of the log's own to the transaction's tenant and gives back its number. Throws InvalidInput
    /// where the id is another entry's.
    [[nodiscard]] std::int64_t append_own(Transaction& transaction, AuditEntry entry) const;

    mutable ChainKeysCache cache;
};

}  // namespace rowlock
