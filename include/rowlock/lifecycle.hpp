// Parents and children whose statuses stay together: nothing live under a parent that is retired.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "rowlock/database.hpp"

namespace rowlock {

/// Two tables of the user's own. Names mean exactly what they say, case included. Every key is the table's columns
/// without the tenant's.
struct LifecycleDescription {
    struct Parent {
        std::string schema = "public";
        std::string table{};
        std::vector<std::string> key{};  ///< Empty for the primary key.
        std::string status = "status";   ///< The column.
    };
    struct Child {
        std::string schema = "public";
        std::string table{};
        std::vector<std::string> key{};     ///< Empty for the primary key.
        std::vector<std::string> parent{};  ///< The columns that name the parent, in the order of the parent's key;
                                            ///< empty for those of the only foreign key to it.
        std::string status = "status";
    };
    Parent parent{};
    Child child{};
    std::string open = "open";            ///< What `revive` makes of a parent's status.
    std::string retired{};                ///< What `retire` makes of it.
    std::string retired_child{};          ///< What it makes of a live child's; empty for the same word.
    std::string confirmed = "confirmed";  ///< What `confirm` makes of a child's.
    std::vector<std::string> live_children{};
    /// In both tables, if there is one; its value is the transaction's tenant.
    std::string tenant_column{};
    /// The level at which everybody works on these tables; a transaction at another is refused. SERIALIZABLE protects
    /// only those who all use it; REPEATABLE READ is not possible: its snapshot can be older than the lock.
    IsolationLevel isolation = IsolationLevel::read_committed;
};

/// The values of a key, in the order of its columns, as PostgreSQL reads them.
class RowKey {
  public:
    template <std::integral Integer>
    RowKey(Integer value) : values_{std::to_string(value)} {}
    RowKey(std::string value) : values_{std::move(value)} {}
    RowKey(std::string_view value) : values_{std::string(value)} {}
    RowKey(const char* value) : values_{value} {}
    /// Of several columns: {7, "2026"}.
    template <class First, class Second, class... More>
    RowKey(const First& first, const Second& second, const More&... more)
        : values_{RowKey(first).values_.front(), RowKey(second).values_.front(), RowKey(more).values_.front()...} {}
    explicit RowKey(std::vector<std::string> values) : values_(std::move(values)) {}

    [[nodiscard]] const std::vector<std::string>& values() const noexcept { return values_; }
    /// "7", or "(7, 2026)" where there are several columns.
    [[nodiscard]] std::string text() const;
    bool operator==(const RowKey&) const = default;

  private:
    std::vector<std::string> values_;
};

/// What a request does to a parent. Total: every request has an answer in every state.
enum class LifecycleRequest { retire, revive };
enum class ParentState { live, retired };
enum class Transition { cascade, revive, nothing };
[[nodiscard]] constexpr Transition transition_for(LifecycleRequest request, ParentState state) {
    if (request == LifecycleRequest::retire) {
        return state == ParentState::live ? Transition::cascade : Transition::nothing;
    }
    return state == ParentState::retired ? Transition::revive : Transition::nothing;
}

/// Proof that a parent is open and stays so until the transaction ends: only `Lifecycle` makes one, with the parent's
/// row locked. Bound to its transaction: it can't be copied or leave the body, and using it after a rollback to an
/// earlier savepoint, or with another lifecycle, is a contract failure.
class OpenParent : public BoundToTransaction {
  public:
    OpenParent(OpenParent&&) noexcept = default;
    OpenParent& operator=(OpenParent&&) noexcept = default;
    OpenParent(const OpenParent&) = delete;
    OpenParent& operator=(const OpenParent&) = delete;
    ~OpenParent() = default;

    [[nodiscard]] const RowKey& key() const noexcept { return key_; }

  private:
    friend class Lifecycle;
    OpenParent(Transaction& transaction, const void* lifecycle, RowKey key, std::weak_ptr<const void> life)
        : transaction_(&transaction), lifecycle_(lifecycle), key_(std::move(key)), life_(std::move(life)) {}

    Transaction* transaction_;
    const void* lifecycle_;
    RowKey key_;
    std::weak_ptr<const void> life_;  ///< Expires with the lock.
};

/// Answers of a lifecycle that are no faults.
struct RetiredParent {};
struct MissingParent {};  ///< No such row, or row-level security hides it.
using HoldOutcome = std::variant<OpenParent, RetiredParent, MissingParent>;

/// Every child that `retire` changed, counted from the rows that were really written.
struct Cascade {
    struct Child {
        RowKey key;
        std::string earlier;  ///< Its status before.
    };
    std::map<std::string, std::int64_t> earlier_counts{};
    std::vector<Child> children{};  ///< In no order.
};
struct AlreadyRetired {};
using RetireOutcome = std::variant<Cascade, AlreadyRetired, MissingParent>;

struct Revived {};  ///< The parent alone; its children stay as they are.
struct AlreadyOpen {};
using ReviveOutcome = std::variant<Revived, AlreadyOpen, MissingParent>;

/// The child is not under the parent that is held: another transaction moved it, or it was never there.
struct ChildElsewhere {};
struct Confirmed {};
using ConfirmOutcome = std::variant<Confirmed, ChildElsewhere>;

struct Moved {};
using MoveOutcome = std::variant<Moved, ChildElsewhere, RetiredParent, MissingParent>;

struct ColumnValue {
    std::string column;
    Parameter value;
};

/// Parents that are retired with all of their live children, and children that come to life under an open parent only.
///
/// Promise: if every writer goes through these calls, or through the rule in the database (`rowlock lifecycle
/// install`), no committed state has a live child under a retired parent, and `retire` counts every child that it
/// changed once.
///
/// The order of locks, the same in every call: the gate of the parent (an advisory lock of the transaction, only so
/// that a stream of guards can't starve a `retire`), the parent's row, then rows of children in the order of their
/// keys. All are held until the transaction ends. What a call waits is limited by the policy's `lock_wait_max`; then it
/// throws Busy. Taking a parent after a child of the same tables is reported (`DatabaseOptions::lock_order_broken`).
/// Source: https://www.postgresql.org/docs/15/explicit-locking.html#LOCKING-ROWS
class Lifecycle {
  public:
    /// Reads the catalog once, in a transaction of its own. Throws InvalidInput for REPEATABLE READ, and
    /// SetupError with one line that says what is wrong:
    /// a missing table or column, a key that is not unique, no foreign key from child to parent, no index on it.
    Lifecycle(Database& database, const LifecycleDescription& description,
              std::source_location where = std::source_location::current());
    ~Lifecycle();
    Lifecycle(Lifecycle&&) noexcept;
    Lifecycle& operator=(Lifecycle&&) noexcept;

    /// With what was left out filled in from the catalog.
    [[nodiscard]] const LifecycleDescription& description() const noexcept;

    /// Holds the parent open. Lock: its row FOR SHARE. One round trip.
    [[nodiscard]] HoldOutcome hold_open(Transaction& transaction, const RowKey& parent,
                                        std::source_location where = std::source_location::current()) const;
    /// For a transaction that will also write the parent: two that hold it FOR SHARE and both write it deadlock.
    /// Lock: its row FOR NO KEY UPDATE.
    [[nodiscard]] HoldOutcome hold_open_to_write(Transaction& transaction, const RowKey& parent,
                                                 std::source_location where = std::source_location::current()) const;

    /// Inserts a child under the parent; `columns` are all but those that name the parent and the tenant.
    /// Gives back the child's key, with what the server made of it.
    RowKey add_child(const OpenParent& parent, const std::vector<ColumnValue>& columns,
                     std::source_location where = std::source_location::current()) const;

    /// Makes the status of a child of this parent `confirmed`. Lock: the child's row.
    [[nodiscard]] ConfirmOutcome confirm(const OpenParent& parent, const RowKey& child,
                                         std::source_location where = std::source_location::current()) const;

    /// Moves a child between parents, its status as it is. Locks: both parents FOR SHARE, in the order of their keys,
    /// whatever the order here; then the child's row. RetiredParent and MissingParent are about `to`.
    [[nodiscard]] MoveOutcome move(Transaction& transaction, const RowKey& child, const RowKey& from, const RowKey& to,
                                   std::source_location where = std::source_location::current()) const;

    /// Retires the parent and every live child, in one statement for the children; no other column is written, so what
    /// tells of a human's doing (reviewed_at) stays. Locks: the parent's row FOR UPDATE, in a statement of its own, so
    /// that the next one sees what was committed while it waited; then the live children FOR UPDATE, in the order of
    /// their keys. Two round trips.
    [[nodiscard]] RetireOutcome retire(Transaction& transaction, const RowKey& parent,
                                       std::source_location where = std::source_location::current()) const;

    /// Opens a retired parent again. Children stay as they are: which of them were live is not kept. Lock: the parent's
    /// row FOR UPDATE.
    [[nodiscard]] ReviveOutcome revive(Transaction& transaction, const RowKey& parent,
                                       std::source_location where = std::source_location::current()) const;

    struct Implementation;

  private:
    std::unique_ptr<Implementation> implementation_;
};

/// How a batch of retirements went. Nothing of a parent that is not in `done` was changed.
struct RetireReport {
    struct Done {
        RowKey parent;
        std::map<std::string, std::int64_t> earlier_counts;
    };
    struct Skipped {
        RowKey parent;
        std::vector<Blocker> blockers;  ///< Who was in the way; empty where that was gone when the server was asked.
    };
    struct Failed {
        RowKey parent;
        std::string reason;
    };
    std::vector<Done> done{};
    std::vector<RowKey> already_retired{};
    std::vector<RowKey> missing{};
    std::vector<Skipped> busy{};
    std::vector<Failed> failed{};
    std::vector<RowKey> not_tried{};  ///< The batch was interrupted before.
};

struct RetireBatchOptions {
    /// Of each parent's transaction: tenant, limits, retries.
    TransactionPolicy policy{};
    /// How many parents share a transaction, each behind a savepoint: fewer commits, but what is locked stays locked
    /// until the last of them is done. So nobody is waited for there: a parent that is held, or fails, gets a
    /// transaction of its own afterwards, with the whole limit.
    std::size_t parents_per_transaction = 1;
    /// Told after each parent, or after each transaction that several share.
    std::function<void(std::size_t tried, const RetireReport& so_far)> progress{};
    /// Asked before each transaction.
    std::function<bool()> is_interrupted{};
};

/// Retires each parent, in a transaction of its own unless the options say otherwise. One that is busy is skipped and
/// reported with whoever is in the way, one that fails is reported: the batch goes on. Run it again with what is left;
/// parents that were retired by then are no-ops. Throws only what concerns the batch as a whole: ConnectionError,
/// CommitOutcomeUnknown.
[[nodiscard]] RetireReport retire_each(Database& database, const Lifecycle& lifecycle, std::span<const RowKey> parents,
                                       const RetireBatchOptions& options);

}  // namespace rowlock
