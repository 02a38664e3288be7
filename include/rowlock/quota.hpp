// A cap on a total over many rows: seats, stock, coupons, confirmed children of all parents.
//
// Three homes for such a rule, by cost: a Quota row (the default), an AdvisoryRule where the total is not kept
// anywhere, and IsolationLevel::serializable with the retries of `Database::transact`, which needs every writer to use
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rowlock/transaction.hpp"

namespace rowlock {

struct QuotaState {
    std::int64_t used;
    std::int64_t cap;
};

/// The amount is taken, until the transaction is rolled back or it is released.
struct Reserved {
    QuotaState now;
};
/// It does not fit; nothing was changed.
struct Full {
    QuotaState now;
};
struct Released {
    QuotaState now;
};
/// More than is used: a row was counted twice or never reserved. Nothing was changed; a recount tells what is true.
struct NotThatMuch {
    QuotaState now;
};
/// The transaction's tenant has no quota of that name.
struct NoQuota {};

/// A table of the user's own whose rows the quota is about.
struct CountedTable {
    std::string schema = "public";
    std::string table{};
    std::string tenant_column{};
    /// Summed up, where rows count for more than one each; NULL counts for nothing. Empty: rows are counted.
    std::string amount_column{};
    /// Only rows with one of these values count. Empty: all rows.
    std::string status_column{};
    std::vector<std::string> statuses{};
};

struct Recount {
    QuotaState before;
    QuotaState now;
    [[nodiscard]] bool repaired() const { return before.used != now.used; }
};

/// A total of the transaction's tenant, by name.
///
/// Promise: of concurrent reservations, only so many are told Reserved as fit under the cap, for any number of writers,
/// at any isolation level. One conditional UPDATE of the quota's row, which stays locked FOR NO KEY UPDATE until the
/// transaction ends: reserve in the transaction that writes the rows, and late in it. A rollback, also to a savepoint,
/// gives the amount back. Throws Busy after the policy's lock limit, InvalidInput without a tenant; at REPEATABLE READ
/// and above a wait ends in 40001, which `transact` runs again.
/// Not promised: anything about writers who do not reserve. Two quotas in one transaction are reserved in the same
/// order by all writers, else they deadlock (40P01, which `transact` runs again). Source:
/// https://www.postgresql.org/docs/15/transaction-iso.html#XACT-READ-COMMITTED
class Quota {
  public:
    /// 1 to 200 bytes of UTF-8.
    explicit Quota(std::string name);

    [[nodiscard]] const std::string& name() const noexcept { return name_; }

    /// `amount` is 1 or more; else InvalidInput.
    [[nodiscard]] std::variant<Reserved, Full, NoQuota> reserve(Transaction& transaction,
                                                                std::int64_t amount = 1) const;
    [[nodiscard]] std::variant<Released, NotThatMuch, NoQuota> release(Transaction& transaction,
                                                                       std::int64_t amount = 1) const;

    /// Makes the quota, or changes its cap. A cap below what is used stands: nothing more fits until enough is
    /// released.
    QuotaState set_cap(Transaction& transaction, std::int64_t cap) const;

    /// Takes no lock, so it can be out of date at once.
    [[nodiscard]] std::optional<QuotaState> look(Transaction& transaction) const;

    /// Makes `used` what the table really holds, and says what it was. Locks the quota's row FOR UPDATE until the
    /// transaction ends, so that every reservation is either counted or comes after; the table itself is not locked.
    /// READ COMMITTED alone (InvalidInput): above it the snapshot is older than the lock. The role must see the rows.
    [[nodiscard]] std::variant<Recount, NoQuota> recount(Transaction& transaction, const CountedTable& table) const;

    struct Named {
        std::string name;
        QuotaState state;
    };
    /// All quotas of the transaction's tenant, in order of their names. Takes no lock.
    [[nodiscard]] static std::vector<Named> list(Transaction& transaction);

  private:
    std::string name_;
};

/// A rule that the writers of one key keep one at a time, where no row stands for it.
///
/// Promise: between `hold` and the end of the transaction nobody else holds the same rule and key of the same tenant.
/// What is read after `hold` is then true until COMMIT, if every writer holds it first.
/// Lock: pg_advisory_xact_lock(namespace "rlqu", 32 bits of the SHA-256 of tenant, rule and key), until the transaction
/// ends; never one of the session. Two given keys share a lock with odds of 1 in 2^32, some two of 9,300 keys with 1 %:
/// their writers then wait for each other, and no more. Throws Busy after the policy's lock limit.
/// Source: https://www.postgresql.org/docs/15/explicit-locking.html#ADVISORY-LOCKS
class AdvisoryRule {
  public:
    /// The name of the rule: 1 to 200 bytes of UTF-8, one for each rule of the application.
    explicit AdvisoryRule(std::string name);

    /// READ COMMITTED or SERIALIZABLE; at REPEATABLE READ the snapshot is older than the lock (InvalidInput).
    void hold(Transaction& transaction, std::string_view key) const;

  private:
    std::string name_;
};

}  // namespace rowlock
