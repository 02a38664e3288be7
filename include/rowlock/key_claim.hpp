// Key claims: many writers, one of them wins a row, and nobody waits.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rowlock/transaction.hpp"

namespace rowlock {

/// The user's own tables: one whose rows carry a key, and one that keeps the keys that were used.
struct ClaimedTable {
    std::string schema = "public";  ///< Of both tables.
    std::string table{};
    /// The columns that name a row: together unique.
    std::vector<std::string> id{};
    /// Of type uuid, text or bytea, NOT NULL. Nobody but `KeyClaim::complete` changes it.
    std::string key{};
    /// The table that `KeyClaim::used_keys_sql` makes.
    std::string used_keys{};
    /// The column in both tables that holds the tenant; empty where there are no tenants.
    std::string tenant{};
    /// The longest lease that a claim may ask for; used keys stay at least so long.
    std::chrono::milliseconds lease_max{60'000};
};

/// The values of `ClaimedTable::id`, in its order.
using RowId = std::vector<Parameter>;

struct ClaimOptions {
    /// The key that was read together with what the work is based on: the claim is lost if it does not stand any more.
    /// Without one the key of this moment is claimed; then read what the work is based on after the claim.
    std::optional<std::string> key{};
    /// For people, and for the losers: who has the row.
    std::string owner{};
    /// How long after the claim another may take it over, by the server's clock. 1 ms to `lease_max`.
    std::chrono::milliseconds lease{30'000};
};

/// The right to write, until another has taken it over. Cheap to copy and to store: a process that comes back with it
/// late is refused.
struct Claimed {
    RowId id;
    std::string key;
    std::int64_t epoch = 0;  ///< 1, and one more for each that took an expired claim over.
};

/// Somebody else was first.
struct LostTo {
    enum class How {
        being_claimed,  ///< By a transaction that is still open; so who it is can't be seen.
        claimed,        ///< By `owner`, who has not completed it.
        completed,      ///< The key that was read does not stand any more.
    };
    How how = How::being_claimed;
    std::optional<std::string> owner{};
    /// Microseconds since 1970-01-01 UTC: from then on the claim can be taken over.
    std::optional<std::int64_t> leased_until{};
};

/// There is no such row, or row-level security hides it.
struct Missing {};

using ClaimOutcome = std::variant<Claimed, LostTo, Missing>;

/// Another has taken the claim over, or it was completed. Nothing was written.
struct Fenced {};
struct Completed {
    std::string key;  ///< The fresh one.
};
struct Renewed {
    std::int64_t leased_until;  ///< Microseconds since 1970-01-01 UTC.
};

/// What the table of used keys holds.
struct ClaimCounts {
    std::int64_t open = 0;     ///< Claimed, the lease still runs.
    std::int64_t expired = 0;  ///< Claimed, the lease is over: the next claim of the row takes it over.
    std::int64_t used = 0;     ///< Done with; sweep removes them.
};
struct OpenClaim {
    std::string row;  ///< The values of the id, separated by commas.
    std::string owner;
    std::int64_t epoch;
    std::int64_t claimed_at;    ///< Microseconds since 1970-01-01 UTC.
    std::int64_t leased_until;  ///< The same.
    bool expired;
};

/// Claims on the rows of one table. Cheap to make; holds no connection. Safe for use by many threads.
///
/// Promise: of all who claim a row with one key, one is told Claimed, the others LostTo, at once: no claim waits for
/// another, and a lost one leaves no lock behind. Only who has the claim can write through it and put in a fresh key;
/// the changed key is how everyone sees that the work was done. Three modes, which differ in where COMMIT stands:
/// - one transaction for claim, writes and completion: a crash undoes all of it;
/// - the claim in one transaction, the writes with the completion in another one later: a crash in between leaves a
///   claim that the next may take over when its lease is over;
/// - every statement in a transaction of its own: a crash also leaves the writes so far.
/// In the latter two the late writer is Fenced: the epoch of its claim is not the row's any more.
///
/// Locks: a transaction-scoped advisory lock (namespace "rlck", the row), tried and never waited for, and the row in
/// the table of used keys; both until the transaction ends. Isolation level: READ COMMITTED; above it InvalidInput,
/// since the snapshot would be older than the claim. Source: https://www.postgresql.org/docs/15/explicit-locking.html
///
/// At first use the description is checked against the catalog; SetupError says what is wrong with it.
/// Not promised: fairness; and nothing about writers who change the row without a claim. Two different rows share one
/// advisory lock with odds of 1 in 2^32; then one may be told LostTo although its row was free.
class KeyClaim {
  public:
    /// Throws InvalidInput for names that can't be, and a lease_max below 1 ms.
    explicit KeyClaim(ClaimedTable table);
    ~KeyClaim();
    KeyClaim(KeyClaim&&) noexcept;
    KeyClaim& operator=(KeyClaim&&) noexcept;

    /// SQL that makes the table of used keys, with the types of the columns that it refers to.
    [[nodiscard]] std::string used_keys_sql() const;

    /// Checks the description now. Takes no lock.
    void check(Transaction& transaction) const;

    /// Claims the row, or takes an expired claim over. Waits for nobody. Two round trips; three for one that is lost.
    [[nodiscard]] ClaimOutcome claim(Transaction& transaction, const RowId& id, const ClaimOptions& options = {}) const;

    /// Runs a statement that changes nothing if the claim is not the caller's any more. The statement is an INSERT,
    /// UPDATE, DELETE or MERGE and refers to `rowlock_fence`, a table that then has no row: `UPDATE … WHERE id = $1 AND
    /// EXISTS (SELECT FROM rowlock_fence)`, `INSERT … SELECT $1 FROM rowlock_fence`.
    /// Lock: the claim's row FOR SHARE until the transaction ends, so nobody takes it over meanwhile, lease or not.
    /// Throws InvalidInput for a statement that does not refer to it, Busy after the policy's lock limit.
    [[nodiscard]] std::variant<Rows, Fenced> write(Transaction& transaction, const Claimed& claimed,
                                                   const Statement& statement,
                                                   std::vector<Parameter> parameters = {}) const;

    /// Puts in a fresh key of 128 random bits, if the old one stands and the claim is the caller's. The last write.
    /// Lock: the claim's row and then the row itself, until the transaction ends. Throws Busy after the lock limit.
    [[nodiscard]] std::variant<Completed, Fenced> complete(Transaction& transaction, const Claimed& claimed) const;

    /// Lets the lease run for so long from now.
    [[nodiscard]] std::variant<Renewed, Fenced> renew(Transaction& transaction, const Claimed& claimed,
                                                      std::chrono::milliseconds lease) const;

    /// Removes used keys that are not current, and whose lease and completion are older than this; returns how many, at
    /// most `batch_max`: call it again, in a transaction of its own, until it removes fewer.
    /// Skips rows that others hold. Throws InvalidInput for less than `lease_max`.
    std::int64_t sweep(Transaction& transaction, std::chrono::milliseconds older_than,
                       std::int64_t batch_max = 1000) const;

    /// Both take no lock, so they can be out of date at once.
    [[nodiscard]] ClaimCounts count(Transaction& transaction) const;
    /// At most `count_max`, the oldest first.
    [[nodiscard]] std::vector<OpenClaim> list_open(Transaction& transaction, std::int64_t count_max) const;

  private:
    struct Implementation;
    std::unique_ptr<const Implementation> implementation_;
};

}  // namespace rowlock
