// Appends that belong to no business transaction, gathered from any number of threads.
#pragma once

#include <cstddef>
#include <future>
#include <memory>

#include "rowlock/audit_log.hpp"
#include "rowlock/database.hpp"

namespace rowlock {

struct AppenderOptions {
    /// Tenants that are written at the same time; each takes one connection of the database's pool.
    std::size_t writers = 4;
    /// One transaction writes at most so many entries, and entries of so many bytes (a larger one goes alone).
    std::size_t batch_entries_max = 4096;
    std::size_t batch_bytes_max = std::size_t{4} << 20U;
    /// Entries accepted and not yet settled, over all tenants; beyond it `append` waits.
    std::size_t pending_max = std::size_t{1} << 16U;
    /// Of the transactions; the tenant is each batch's own.
    TransactionPolicy policy{};
};

/// Gathers appends per tenant and writes what has gathered as one transaction: a flush is shared by all callers that
/// waited for it. For an entry that must stand or fall with rows of your own, use AuditLog::append in that transaction.
///
/// Promise: as AuditLog's. A future is settled after the commit, so a number that a caller was told is durable. One
/// tenant has one transaction under way at a time; entries that one thread gives for a tenant are numbered in the order
/// in which it gave them. Locks: those of AuditLog::append_all, for the one transaction.
/// Isolation level: the policy's; READ COMMITTED is the one that waits for other writers instead of running again.
/// Safe for use by many threads.
class Appender {
  public:
    /// Both must outlive the appender. Throws InvalidInput for a limit of zero.
    Appender(Database& database, const AuditLog& log, const AppenderOptions& options = {});
    /// Waits until every accepted entry is settled, as `close` does.
    ~Appender();
    Appender(const Appender&) = delete;
    Appender& operator=(const Appender&) = delete;

    /// Accepts an entry. Waits only while `pending_max` entries are pending (that is, until some transaction ends,
    /// which the policy's deadline bounds).
    ///
    /// The future gives the outcome after the commit, or throws what became of this entry: InvalidInput or ServerError
    /// where it can't be stored (what was gathered with it is appended all the same), or Busy, ConnectionError,
    /// CommitOutcomeUnknown, SetupError where its transaction failed. A commit in doubt is settled by sending the same
    /// entry ids again.
    [[nodiscard]] std::future<AppendOutcome> append(const TenantId& tenant, AuditEntry entry);

    /// Waits until every accepted entry is settled. `append` after it is a contract failure.
    void close();

  private:
    struct Implementation;
    std::unique_ptr<Implementation> implementation_;
};

}  // namespace rowlock
