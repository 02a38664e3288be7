#include "race/footprint.hpp"

#include <algorithm>
#include <array>

namespace rowlock::race {

namespace {

using namespace lock_mode;

/// For each mode, those that it conflicts with.
constexpr std::array<LockModes, 13> conflicts{
    /* access_share */ access_exclusive,
    /* row_share */ exclusive | access_exclusive,
    /* row_exclusive */ share | share_row_exclusive | exclusive | access_exclusive,
    /* share_update_exclusive */ share_update_exclusive | share | share_row_exclusive | exclusive | access_exclusive,
    /* share */ row_exclusive | share_update_exclusive | share_row_exclusive | exclusive | access_exclusive,
    /* share_row_exclusive */
    row_exclusive | share_update_exclusive | share | share_row_exclusive | exclusive | access_exclusive,
    /* exclusive */
    row_share | row_exclusive | share_update_exclusive | share | share_row_exclusive | exclusive | access_exclusive,
    /* access_exclusive */
    access_share | row_share | row_exclusive | share_update_exclusive | share | share_row_exclusive | exclusive |
        access_exclusive,
    /* row_for_key_share */ row_for_update,
    /* row_for_share */ row_for_no_key_update | row_for_update,
    /* row_for_no_key_update */ row_for_share | row_for_no_key_update | row_for_update,
    /* row_for_update */ any_row_lock,
    /* key_insert */ key_insert,
};

bool meet(const ResourceSet& one, const ResourceSet& other) {
    return std::ranges::any_of(one.entries(), [&](const auto& entry) { return other.contains(entry.resource); });
}

bool locks_conflict(const ResourceSet& one, const ResourceSet& other) {
    return std::ranges::any_of(
        one.entries(), [&](const auto& entry) { return modes_conflict(entry.modes, other.modes(entry.resource)); });
}

/// The half of the relation that is not symmetric: what `one` publishes or releases matters to `other`.
bool affects(const Footprint& one, const Footprint& other) {
    if (!one.published.empty() && other.reads_everything) return true;
    if (meet(one.published, other.reads) || meet(one.published, other.writes)) return true;
    return locks_conflict(one.released, other.locks);
}

}  // namespace

bool modes_conflict(LockModes one, LockModes other) {
    for (std::size_t mode = 0; mode < conflicts.size(); ++mode) {
        if ((one >> mode & 1U) != 0 && (conflicts[mode] & other) != 0) return true;
    }
    return false;
}

void ResourceSet::add(ResourceId resource, LockModes modes) {
    const auto at = std::ranges::lower_bound(entries_, resource, {}, &Entry::resource);
    if (at != entries_.end() && at->resource == resource) {
        at->modes = static_cast<LockModes>(at->modes | modes);
    } else {
        entries_.insert(at, {resource, modes});
    }
}

void ResourceSet::add(const ResourceSet& other) {
    for (const Entry& entry : other.entries_) add(entry.resource, entry.modes);
}

void ResourceSet::remove(ResourceId resource) {
    std::erase_if(entries_, [&](const Entry& entry) { return entry.resource == resource; });
}

bool ResourceSet::contains(ResourceId resource) const {
    return std::ranges::binary_search(entries_, resource, {}, &Entry::resource);
}

LockModes ResourceSet::modes(ResourceId resource) const {
    const auto at = std::ranges::lower_bound(entries_, resource, {}, &Entry::resource);
    return at != entries_.end() && at->resource == resource ? at->modes : LockModes{0};
}

bool Footprint::empty() const {
    return !everything && !reads_everything && reads.empty() && writes.empty() && published.empty() && locks.empty() &&
           released.empty();
}

void Footprint::add_locks(ResourceId table, ResourceId rows, LockModes modes) {
    constexpr LockModes of_rows = any_row_lock | key_insert;
    locks.add(table, static_cast<LockModes>(modes & ~of_rows));
    locks.add(rows, static_cast<LockModes>(modes & of_rows));
}

void Footprint::unite(const Footprint& other) {
    everything = everything || other.everything;
    reads_everything = reads_everything || other.reads_everything;
    reads.add(other.reads);
    writes.add(other.writes);
    published.add(other.published);
    locks.add(other.locks);
    released.add(other.released);
}

bool are_dependent(const Footprint& one, const Footprint& other) {
    if (one.empty() || other.empty()) return false;
    if (one.everything || other.everything) return true;
    if (meet(one.writes, other.writes) || locks_conflict(one.locks, other.locks)) return true;
    return affects(one, other) || affects(other, one);
}

}  // namespace rowlock::race
