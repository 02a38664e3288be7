#include "race/footprint.hpp"

#include <gtest/gtest.h>

namespace rowlock::race::test {
namespace {

Footprint reading(ResourceId table) {
    Footprint footprint;
    footprint.reads.add(table);
    footprint.locks.add(table, lock_mode::access_share);
    return footprint;
}

Footprint writing(ResourceId table) {
    Footprint footprint;
    footprint.writes.add(table);
    footprint.locks.add(table, lock_mode::row_exclusive | lock_mode::any_row_update);
    return footprint;
}

Footprint committing(ResourceId table) {
    Footprint footprint;
    footprint.published.add(table);
    footprint.released.add(table, lock_mode::row_exclusive | lock_mode::any_row_update);
    return footprint;
}

TEST(Dependency, IsBetweenAReaderAndTheCommitNotTheWrite) {
    EXPECT_FALSE(are_dependent(reading(1), writing(1)));
    EXPECT_TRUE(are_dependent(reading(1), committing(1)));
    EXPECT_FALSE(are_dependent(reading(2), committing(1)));
}

TEST(Dependency, IsBetweenWritersOfOneTable) {
    EXPECT_TRUE(are_dependent(writing(1), writing(1)));
    EXPECT_FALSE(are_dependent(writing(1), writing(2)));
    EXPECT_TRUE(are_dependent(writing(1), committing(1)));
}

TEST(Dependency, HoldsForASnapshotOfEverything) {
    Footprint snapshot;
    snapshot.reads_everything = true;
    EXPECT_TRUE(are_dependent(snapshot, committing(1)));
    EXPECT_FALSE(are_dependent(snapshot, reading(1)));
}

TEST(Dependency, HoldsForAPlainReadAndLockTable) {
    Footprint locking;
    locking.locks.add(1, lock_mode::access_exclusive);
    EXPECT_TRUE(are_dependent(reading(1), locking));
}

TEST(Dependency, LeavesWhatTouchesNothingAlone) {
    Footprint everything;
    everything.everything = true;
    EXPECT_TRUE(are_dependent(everything, reading(1)));
    EXPECT_FALSE(are_dependent(everything, Footprint{}));
}

TEST(LockModes, ConflictAsPostgresqlDocuments) {
    using namespace lock_mode;
    EXPECT_FALSE(modes_conflict(row_for_key_share, row_for_no_key_update));
    EXPECT_TRUE(modes_conflict(row_for_key_share, row_for_update));
    EXPECT_TRUE(modes_conflict(row_for_share, row_for_no_key_update));
    EXPECT_FALSE(modes_conflict(row_for_share, row_for_share));
    EXPECT_FALSE(modes_conflict(row_exclusive, row_exclusive));
    EXPECT_TRUE(modes_conflict(row_exclusive, share));
    EXPECT_TRUE(modes_conflict(access_share, access_exclusive));
}

}  // namespace
}  // namespace rowlock::race::test
