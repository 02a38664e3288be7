// The statements of a lifecycle, built once from its description. Nothing here talks to a server.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "rowlock/lifecycle.hpp"

namespace rowlock {

/// Which lock on the parent's row.
enum class ParentLock {
    share,          ///< FOR SHARE: stays open; many at once.
    no_key_update,  ///< FOR NO KEY UPDATE: stays open, and will be written.
    update,         ///< FOR UPDATE: will be retired; foreign key checks of new children wait, too.
};
constexpr std::size_t parent_lock_count = 3;

/// The tenant's column, if there is one, before the others: quoted.
[[nodiscard]] std::vector<std::string> quoted_columns(const std::string& tenant,
                                                      const std::vector<std::string>& columns);

/// The values that name one row: the tenant's, if the tables have one, then the key's.
using RowIdentity = std::vector<Parameter>;

/// Hands out queries whose SQL it owns: they are valid as long as it is.
class LifecycleStatements {
  public:
    /// `description` has every key. Throws InvalidInput for what can't be a name.
    explicit LifecycleStatements(const LifecycleDescription& description);

    /// Lock: an advisory one of the transaction, exclusive unless for `share`. Only for fairness: new FOR SHARE holders
    /// overtake a FOR UPDATE that waits, and here they queue behind it. Where the wait is not allowed, a row of f.
    [[nodiscard]] Query gate(ParentLock lock, LockWait wait, const RowKey& parent) const;
    /// The same for two parents, shared; in the order of their hashes.
    [[nodiscard]] Query gate_of_two(const RowKey& one, const RowKey& other) const;
    /// A row (retired); none where the parent is missing, or skipped.
    [[nodiscard]] Query lock_parent(ParentLock lock, LockWait wait, const RowIdentity& parent) const;
    /// Rows (is the second, retired). Lock: FOR SHARE, in the order of their keys.
    [[nodiscard]] Query lock_two_parents(const RowIdentity& from, const RowIdentity& to) const;
    /// A row where the parent is there. Lock: none.
    [[nodiscard]] Query find_parent(const RowIdentity& parent) const;
    /// Rows (key…, earlier status). Locks: the live children FOR UPDATE, in the order of their keys.
    [[nodiscard]] Query retire_children(const RowIdentity& parent) const;
    /// Lock: the parent's row, which the transaction holds by then.
    [[nodiscard]] Query set_parent_status(const RowIdentity& parent, const std::string& status) const;
    /// Affects no row where the child is not under the parent. Lock: the child's row.
    [[nodiscard]] Query confirm_child(const RowIdentity& child, const RowIdentity& parent) const;
    /// The same. Also checks the foreign key: FOR KEY SHARE on the new parent, which the transaction holds by then.
    [[nodiscard]] Query move_child(const RowIdentity& child, const RowIdentity& from, const RowIdentity& to) const;
    /// `INSERT INTO child (tenant, parent…, columns…) … RETURNING key…`. Lock: that of the foreign key's check.
    [[nodiscard]] std::string add_child_sql(const std::vector<ColumnValue>& columns) const;

    [[nodiscard]] const LifecycleDescription& description() const noexcept { return description_; }
    /// The parent's table, quoted.
    [[nodiscard]] const std::string& parent_table() const noexcept { return parent_table_; }
    [[nodiscard]] const std::string& child_table() const noexcept { return child_table_; }

  private:
    static constexpr std::size_t wait_count = 3;

    void build_parent_statements();
    void build_child_statements();
    [[nodiscard]] std::string gate_text(const RowKey& parent) const;

    LifecycleDescription description_;
    std::string parent_table_;
    std::string child_table_;
    std::vector<std::string> parent_identity_;  ///< Quoted columns: the tenant's, the key's.
    std::vector<std::string> child_identity_;
    std::vector<std::string> child_parent_;  ///< Those of the child that name the parent.
    std::string live_children_;              ///< An array.

    std::array<std::array<std::string, wait_count>, parent_lock_count> lock_parent_;
    std::string lock_two_parents_;
    std::string find_parent_;
    std::string retire_children_;
    std::string set_parent_status_;
    std::string confirm_child_;
    std::string move_child_;
};

}  // namespace rowlock
