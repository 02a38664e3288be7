// Numbers per tenant with no gap and no duplicate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rowlock/transaction.hpp"

namespace rowlock {

/// A table of the user's own whose rows carry the numbers.
struct NumberedTable {
    std::string schema = "public";
    std::string table{};
    std::string tenant_column{};
    std::string number_column{};
    /// Further condition that picks the rows of this sequence, as column = value; empty for none (for a yearly series).
    std::string series_column{};
    std::string series_value{};
};

/// What a look at the numbers in a table found, for the transaction's tenant.
struct NumberReport {
    std::int64_t rows = 0;
    std::int64_t first = 0;
    std::int64_t last = 0;
    struct Hole {
        std::int64_t first;
        std::int64_t last;
    };
    std::vector<Hole> holes;               ///< At most `findings_max` of them, in order.
    std::vector<std::int64_t> duplicates;  ///< Likewise.
    bool truncated = false;                ///< There were more.
    static constexpr std::size_t findings_max = 1000;
};

/// A named series of numbers (invoice, ticket, "invoice 2026"), one per tenant.
///
/// Promise: within a tenant, the numbers of committed transactions are start, start + 1, … with no gap and no
/// duplicate, for any number of writers, at any isolation level. The number comes from a state row that is locked FOR
/// UPDATE in the caller's own transaction and stays locked until that transaction ends: a rollback, also to a
/// savepoint, gives the number back. So writers of one tenant and name queue behind each other from `take_next` to
/// their COMMIT: take the number late. Tenants never wait for each other. Source:
/// https://www.postgresql.org/docs/15/explicit-locking.html#LOCKING-ROWS
class GaplessSequence {
  public:
    /// 1 to 200 bytes of UTF-8.
    explicit GaplessSequence(std::string name);

    [[nodiscard]] const std::string& name() const noexcept { return name_; }

    /// The next number for the transaction's tenant: 1 at first use, which makes the state row itself.
    /// Throws Busy after the policy's lock limit, InvalidInput without a tenant; at REPEATABLE READ and above, a wait
    /// ends in 40001, which `transact` runs again.
    [[nodiscard]] std::int64_t take_next(Transaction& transaction) const;

    /// The last number that was taken, 0 if none; takes no lock, so it can be out of date at once.
    [[nodiscard]] std::int64_t last_taken(Transaction& transaction) const;

    /// Makes `first` the next number. Throws InvalidInput if a number was taken already, or first < 1.
    void start_at(Transaction& transaction, std::int64_t first) const;

    /// Looks at the numbers that a table already holds; changes nothing.
    [[nodiscard]] NumberReport check(Transaction& transaction, const NumberedTable& table) const;

    /// Goes on from the highest number in a table. Takes LOCK TABLE … IN SHARE ROW EXCLUSIVE MODE on that table until
    /// the transaction ends, so that no row with a number is added meanwhile. Never lowers the counter. The report
    /// tells of the holes and duplicates that were there before.
    NumberReport adopt(Transaction& transaction, const NumberedTable& table) const;

  private:
    std::string name_;
};

}  // namespace rowlock
