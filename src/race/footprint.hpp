// What an event reads, locks, writes, publishes and releases, and when two events can't be swapped.
//
// Two events are independent where doing them in either order ends in the same state and shows each session the same.
// The relation below may call independent events dependent, which costs executions; never the other way round, which
// would lose outcomes.
#pragma once

#include <compare>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/hash.hpp"

namespace rowlock::race {

/// A relation, by a hash of its name, so that it is the same after a setup has made it again; or an advisory key, with
/// the highest bit set.
using ResourceId = std::uint64_t;
inline constexpr ResourceId advisory_bit = ResourceId{1} << 63U;

/// By a hash; never an advisory key.
[[nodiscard]] constexpr ResourceId resource_named(std::string_view name) {
    return fnv1a_64(name) & ~advisory_bit;
}

/// Resources that have no name in a database.
namespace resource {
/// Names are looked up in it by whatever is no BEGIN or SET, so that all of that is dependent with DDL.
inline constexpr ResourceId catalog = 1;
/// Written, as it were, by every event whose change an `invariant always` sees.
inline constexpr ResourceId seen_states = 2;
}  // namespace resource

/// A set of lock modes: those of tables, those of rows, and "inserts a key". Advisory locks use `share` and
/// `exclusive`.
using LockModes = std::uint16_t;

namespace lock_mode {
inline constexpr LockModes access_share = 1U << 0U;
inline constexpr LockModes row_share = 1U << 1U;
inline constexpr LockModes row_exclusive = 1U << 2U;
inline constexpr LockModes share_update_exclusive = 1U << 3U;
inline constexpr LockModes share = 1U << 4U;
inline constexpr LockModes share_row_exclusive = 1U << 5U;
inline constexpr LockModes exclusive = 1U << 6U;
inline constexpr LockModes access_exclusive = 1U << 7U;
inline constexpr LockModes row_for_key_share = 1U << 8U;
inline constexpr LockModes row_for_share = 1U << 9U;
inline constexpr LockModes row_for_no_key_update = 1U << 10U;
inline constexpr LockModes row_for_update = 1U << 11U;
inline constexpr LockModes key_insert = 1U << 12U;
inline constexpr LockModes any_row_update = row_for_no_key_update | row_for_update;
inline constexpr LockModes any_row_lock = row_for_key_share | row_for_share | any_row_update;
}  // namespace lock_mode

/// PostgreSQL's two conflict tables.
/// Source: https://www.postgresql.org/docs/15/explicit-locking.html, tables 13.2 and 13.3
[[nodiscard]] bool modes_conflict(LockModes one, LockModes other);

/// A set of resources, each with its modes; small, so a sorted vector.
class ResourceSet {
  public:
    struct Entry {
        ResourceId resource;
        LockModes modes;
        auto operator<=>(const Entry&) const = default;
    };

    void add(ResourceId resource, LockModes modes = 0);
    void add(const ResourceSet& other);
    void remove(ResourceId resource);
    [[nodiscard]] bool contains(ResourceId resource) const;
    [[nodiscard]] LockModes modes(ResourceId resource) const;
    [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }
    [[nodiscard]] const std::vector<Entry>& entries() const noexcept { return entries_; }
    void clear() { entries_.clear(); }
    auto operator<=>(const ResourceSet&) const = default;

  private:
    std::vector<Entry> entries_;
};

struct Footprint {
    /// Can't be swapped with anything that touches anything: what can't be seen from outside is taken for this.
    bool everything = false;
    /// Takes the snapshot of a whole REPEATABLE READ transaction, which may come to read any table.
    bool reads_everything = false;
    ResourceSet reads{};
    ResourceSet writes{};
    ResourceSet published{};  ///< Writes that others see from here on: those of a COMMIT, and of sequences at once.
    ResourceSet locks{};      ///< Requested here, granted or not.
    ResourceSet released{};

    [[nodiscard]] bool empty() const;
    /// Modes of tables are the table's; those of rows and "inserts a key" belong to `rows`, which may be the table,
    /// too.
    void add_locks(ResourceId table, ResourceId rows, LockModes modes);
    /// An event is its step and every step that it wakes.
    void unite(const Footprint& other);
    bool operator==(const Footprint&) const = default;
};

[[nodiscard]] bool are_dependent(const Footprint& one, const Footprint& other);

}  // namespace rowlock::race
