#include "race/footprint_tracker.hpp"

#include <algorithm>

#include "race/text_footprint.hpp"

namespace rowlock::race {

namespace {

bool is_advisory(ResourceId resource) {
    return (resource & advisory_bit) != 0;
}

bool is_plain_end(const Analysis& analysis) {
    return analysis.is_single(StatementKind::commit) || analysis.is_single(StatementKind::rollback);
}

bool ends_inside(const Analysis& analysis) {
    return analysis.statements.size() > 1 && std::ranges::any_of(analysis.statements, [](StatementKind kind) {
               return kind == StatementKind::commit || kind == StatementKind::rollback;
           });
}

bool takes_snapshot(const Analysis& analysis) {
    return std::ranges::any_of(analysis.statements, [](StatementKind kind) {
        return kind == StatementKind::query || kind == StatementKind::other;
    });
}

bool touches_nothing(const Analysis& analysis) {
    return std::ranges::all_of(analysis.statements, [](StatementKind kind) {
        return kind == StatementKind::begin || kind == StatementKind::setting;
    });
}

}  // namespace

void FootprintTracker::restart() {
    advisory_.clear();
    forget_transaction();
}

void FootprintTracker::forget_transaction() {
    has_snapshot_ = false;
    held_.clear();
    taken_.clear();
    written_.clear();
}

/// A lock that is new was taken by this statement. One that was there already may have been used again: where the
/// statement's text can reach the table, or where what it runs is not written down.
bool FootprintTracker::touches(const Analysis& analysis, const HeldLock& lock) const {
    if ((lock.modes & static_cast<LockModes>(~held_.modes(lock.resource))) != 0 || !lock.granted) return true;
    if (is_advisory(lock.resource)) return analysis.names_advisory;
    return analysis.reach.may_touch(lock.resource);
}

void FootprintTracker::add_relation_lock(const Analysis& analysis, const HeldLock& lock, Footprint& footprint) const {
    using namespace lock_mode;
    const auto relation = catalog_->relations.find(lock.resource);
    if (relation == catalog_->relations.end()) return;  // an index, a catalog, a toast table
    const ResourceId rows = rows_of(lock.resource, analysis, *catalog_);
    LockModes modes = lock.modes;
    if ((modes & row_exclusive) != 0) {
        footprint.writes.add(rows);
        // The server shows sequences at once, to everybody.
        if (relation->second.is_sequence) footprint.published.add(lock.resource);
        modes = static_cast<LockModes>(modes | (analysis.only_inserts ? key_insert : any_row_update | key_insert));
    }
    if ((modes & row_share) != 0) {
        const bool only_by_key = analysis.reach.by_foreign_key.contains(lock.resource) &&
                                 !analysis.reach.named.contains(lock.resource) && !analysis.reach.unbounded;
        const LockModes by_text = analysis.row_locks == 0 ? any_row_lock : analysis.row_locks;
        modes = static_cast<LockModes>(modes | (only_by_key ? row_for_key_share : by_text));
        if (analysis.reach.by_foreign_key.contains(lock.resource)) {
            modes = static_cast<LockModes>(modes | row_for_key_share);
        }
    }
    const bool inserted_only = analysis.inserted_only == lock.resource && (modes & row_share) == 0;
    if (!inserted_only) footprint.reads.add(rows);
    footprint.add_locks(lock.resource, rows, modes);
}

void FootprintTracker::add_end_of_transaction(bool committed, Footprint& footprint) {
    if (committed) {
        footprint.published.add(written_);
        footprint.everything = footprint.everything || (catalog_->has_deferrable && !written_.empty());
    }
    footprint.released.add(taken_);
    // Session-level advisory locks stay; taking them for released costs executions, never outcomes.
    forget_transaction();
}

Footprint FootprintTracker::take(const StatementFacts& facts) {
    const Analysis& analysis = *facts.analysis;
    Footprint footprint;
    const bool begins = std::ranges::find(analysis.statements, StatementKind::begin) != analysis.statements.end();
    footprint.everything =
        analysis.everything || (begins && reads_surroundings_) || meets_every_row(analysis, *catalog_);
    if (facts.was_in_failed_transaction && !is_plain_end(analysis)) {
        // Refused with 25P02 unless it is a ROLLBACK TO, which gives back nothing that the failure had not.
        footprint.everything = footprint.everything || !facts.failed;
        return footprint;
    }
    if (touches_nothing(analysis) && !facts.failed) return footprint;
    footprint.reads.add(resource::catalog);
    footprint.everything = footprint.everything || ends_inside(analysis) || isolation_ == Isolation::serializable;
    // The locks of what failed, of an implicit transaction, and of what an exception handler undid are gone before
    // they can be seen.
    const bool was_seen = facts.was_in_transaction || facts.is_open_after || facts.was_wrapped || facts.is_waiting;
    if (facts.failed || !was_seen || analysis.handles_exceptions) {
        footprint.unite(footprint_by_text(analysis, *catalog_));
        footprint.released.add(footprint.locks);
        if (facts.failed) footprint.released.add(taken_);
    }
    if (isolation_ == Isolation::repeatable_read && !has_snapshot_ && takes_snapshot(analysis)) {
        footprint.reads_everything = true;
        has_snapshot_ = !facts.is_waiting;
    }
    if (analysis.is_single(StatementKind::rollback_to)) footprint.released.add(taken_);
    if (analysis.unlocks_advisory) footprint.released.add(advisory_);
    ResourceSet held;
    for (const HeldLock& lock : facts.locks) {
        if (touches(analysis, lock)) {
            if (is_advisory(lock.resource)) {
                footprint.locks.add(lock.resource, lock.modes);
                advisory_.add(lock.resource, lock.modes);
            } else {
                add_relation_lock(analysis, lock, footprint);
            }
        }
        if (lock.granted) held.add(lock.resource, lock.modes);
    }
    taken_.add(footprint.locks);
    written_.add(footprint.writes);
    // While it waits, what it took so far still belongs to this statement, and is seen again when it goes on.
    if (!facts.is_waiting) held_ = held;
    const bool committed = facts.committed || (!was_seen && !facts.failed);
    if (!facts.is_open_after && !facts.is_waiting) add_end_of_transaction(committed, footprint);
    return footprint;
}

}  // namespace rowlock::race
