// The head of a tenant's chain on the server: how its row is locked, read and moved.
#pragma once

#include <span>
#include <vector>

#include "audit/signing.hpp"
#include "rowlock/transaction.hpp"

namespace rowlock {

/// Notes that the heads are about to be locked. A contract failure where the transaction has locked others before.
void note_head_locks(Transaction& transaction, std::span<const TenantId> tenants);

/// Locks: one transaction-scoped advisory lock, until the transaction ends. See AuditLog::append_all for what it is
/// for.
[[nodiscard]] Query join_queue_of(const TenantId& tenant);

/// Locks: the tenant's state row, FOR UPDATE, until the transaction ends. No row: there is none.
[[nodiscard]] Query lock_head(Transaction& transaction, const TenantId& tenant);
/// The same, waiting for nobody. No row: there is none, or somebody holds it.
[[nodiscard]] Query lock_head_or_skip(Transaction& transaction, const TenantId& tenant);
/// Locks: the new row, until the transaction ends; waits for another first user. Only on first use.
[[nodiscard]] Query make_head(Transaction& transaction, const TenantId& tenant);

/// What one of the two locks gave.
[[nodiscard]] Head head_of(const Row& row);

/// For a transaction whose snapshot is older than the row that another first user committed: 40001, run again.
[[noreturn]] void throw_head_made_meanwhile();

/// Sends rows that follow the locked head with the next statement, or with the COMMIT; the head moves with them.
void enqueue_entries(Transaction& transaction, const TenantId& tenant, const std::vector<SignedRow>& rows);

}  // namespace rowlock
