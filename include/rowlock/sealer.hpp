// Sealing: staged entries get their numbers and their MACs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "rowlock/audit_log.hpp"
#include "rowlock/database.hpp"

namespace rowlock {

/// How much one transaction seals of one tenant: whole staging transactions, until one of the two is reached. Memory
/// holds so much at a time, also where a single staging transaction is larger.
struct SealLimits {
    std::size_t entries_max = 4096;
    std::size_t bytes_max = std::size_t{4} << 20U;
};

struct Sealed {
    std::int64_t appended = 0;
    std::int64_t already_there = 0;  ///< Staged twice with the same content, and left out.
    std::int64_t quarantined = 0;    ///< Their entry id stands in the log with other content.
    bool more = false;               ///< A limit was reached.
};
/// Somebody else holds the head of the tenant's chain; nothing was done.
struct HeadTaken {};
using SealOutcome = std::variant<Sealed, HeadTaken>;

/// Seals staged entries of the transaction's tenant: takes them out of rowlock.audit_staged and appends them to the
/// log, in one transaction, so each is sealed exactly once, whatever dies. The rows of one staging transaction stay
/// together and in their order; `recorded_at` is the time of staging, so it can run backwards against seq.
///
/// Locks: the tenant's row of rowlock.tenant_seq FOR UPDATE until the transaction ends. Where the policy's
/// `lock_wait_max` is `LockWait::skip_locked()` it waits for nobody; else it joins the queue that appends wait in, and
/// throws Busy at the limit. Needs READ COMMITTED (InvalidInput) and the rights of rowlock_sealer. Throws SetupError
/// where the chain's key is not in the keyring.
[[nodiscard]] SealOutcome seal_staged(Transaction& transaction, const AuditLog& log, const SealLimits& limits = {});

/// The tenants that have staged entries and that the role can see, in order. Takes no lock.
[[nodiscard]] std::vector<TenantId> staged_tenants(Transaction& transaction);

/// What waits to be sealed.
struct StagedCount {
    std::int64_t entries = 0;
    std::int64_t quarantined = 0;
    /// Of the oldest that waits, by the server's clock; 0 where none does.
    std::chrono::milliseconds oldest{0};
};
/// Of the transaction's tenant, or of all that the role can see where the policy names none. Takes no lock.
[[nodiscard]] StagedCount count_staged(Transaction& transaction);

struct SealerOptions {
    SealLimits limits{};
    /// A head that was taken so often in a row is waited for: on a hot one, skipping alone never gets a turn.
    int misses_max = 8;
    /// Of the transactions; the tenant is each one's own.
    TransactionPolicy policy{};
};

struct SealFault {
    TenantId tenant;
    std::string what;
};

/// What a round over the tenants came to.
struct SealRound {
    Sealed sealed{};  ///< `more`: something is left, or somebody else was at work on it.
    std::size_t tenants = 0;
    std::vector<SealFault> faults{};  ///< Tenants that could not be sealed; the others were.
};

/// Goes round the tenants that have staged entries. Any number may do so at once, in one process or several: a tenant
/// has one sealer at a time. Not for use by two threads at once.
class Sealer {
  public:
    /// Both must outlive it.
    Sealer(Database& database, const AuditLog& log, SealerOptions options = {});

    /// One transaction for each tenant. Between two it asks `stop` whether to end the round. Throws ConnectionError
    /// where the server is gone; what is not committed then stays staged.
    SealRound round(const std::function<bool()>& stop = {});

  private:
    void seal(const TenantId& tenant, SealRound& round);

    Database& database_;
    const AuditLog& log_;
    SealerOptions options_;
    std::unordered_map<TenantId, int> misses_;
    std::size_t rounds_ = 0;
};

}  // namespace rowlock
