// Which entries go into the next transaction.
#include "audit/append_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

namespace rowlock {
namespace {

const TenantId acme("acme");
const TenantId globex("globex");

WaitingEntry entry(const std::string& data) {
    return {{.data = data}, {}};
}

std::string data_of(const std::optional<AppendBatch>& batch) {
    if (!batch) return "none";
    std::string all = batch->tenant.text() + ":";
    for (const WaitingEntry& waiting : batch->entries) all += " " + *waiting.entry.data;
    return all;
}

TEST(AppendQueue, GivesWhatHasGatheredInTheOrderInWhichItCame) {
    AppendQueue queue(10, 1000);
    for (const char* const data : {"1", "2", "3"}) queue.add(acme, entry(data));
    EXPECT_EQ(data_of(queue.take()), "acme: 1 2 3");
    EXPECT_EQ(data_of(queue.take()), "none");
    queue.done(acme);
    EXPECT_TRUE(queue.empty());
}

TEST(AppendQueue, GivesATenantOneBatchAtATime) {
    AppendQueue queue(2, 1000);
    for (const char* const data : {"1", "2", "3"}) queue.add(acme, entry(data));
    EXPECT_EQ(data_of(queue.take()), "acme: 1 2");
    queue.add(acme, entry("4"));
    EXPECT_FALSE(queue.has_turn());
    EXPECT_EQ(data_of(queue.take()), "none");
    queue.done(acme);
    EXPECT_EQ(data_of(queue.take()), "acme: 3 4");
}

TEST(AppendQueue, SaysWhetherAnEntryMadeATurnThatAWriterIsToBeWokenFor) {
    AppendQueue queue(10, 1000);
    EXPECT_TRUE(queue.add(acme, entry("1")));
    EXPECT_FALSE(queue.add(acme, entry("2"))) << "it goes with the first";
    EXPECT_TRUE(queue.add(globex, entry("1")));
    EXPECT_EQ(data_of(queue.take()), "acme: 1 2");
    EXPECT_FALSE(queue.add(acme, entry("3"))) << "the one who writes the first batch takes it";
    queue.done(acme);
    EXPECT_FALSE(queue.add(acme, entry("4")));
    EXPECT_EQ(data_of(queue.take()), "globex: 1");
    EXPECT_EQ(data_of(queue.take()), "acme: 3 4");
    queue.done(acme);
    EXPECT_TRUE(queue.add(acme, entry("5")));
}

TEST(AppendQueue, LetsTenantsTakeTurns) {
    AppendQueue queue(1, 1000);
    for (const char* const data : {"1", "2"}) queue.add(acme, entry(data));
    queue.add(globex, entry("1"));
    EXPECT_EQ(data_of(queue.take()), "acme: 1");
    queue.done(acme);
    EXPECT_EQ(data_of(queue.take()), "globex: 1") << "acme has had a turn";
    EXPECT_EQ(data_of(queue.take()), "acme: 2") << "globex is under way, which keeps nobody else waiting";
    queue.done(globex);
    queue.done(acme);
    EXPECT_TRUE(queue.empty());
}

TEST(AppendQueue, BoundsABatchByItsBytesAndLetsALargerEntryGoAlone) {
    AppendQueue queue(10, 5);
    for (const char* const data : {"123", "45", "6", "1234567", "8"}) queue.add(acme, entry(data));
    for (const char* const batch : {"acme: 123 45", "acme: 6", "acme: 1234567", "acme: 8"}) {
        EXPECT_EQ(data_of(queue.take()), batch);
        queue.done(acme);
    }
}

TEST(AppendQueue, LosesNothingAndKeepsTheOrderOfEachTenant) {
    std::mt19937 dice(3);
    AppendQueue queue(3, 40);
    std::map<std::string, std::vector<int>> given;
    std::map<std::string, std::vector<int>> taken;
    std::vector<TenantId> under_way;
    for (int i = 0; i < 20000; ++i) {
        const auto what = dice() % 4;
        if (what < 2) {
            const TenantId tenant("tenant-" + std::to_string(dice() % 5));
            given[tenant.text()].push_back(i);
            queue.add(tenant, entry(std::to_string(i)));
        } else if (what == 2) {
            auto batch = queue.take();
            if (!batch) continue;
            EXPECT_THAT(under_way, testing::Not(testing::Contains(batch->tenant)));
            under_way.push_back(batch->tenant);
            for (const WaitingEntry& one : batch->entries) {
                taken[batch->tenant.text()].push_back(std::stoi(*one.entry.data));
            }
        } else if (!under_way.empty()) {
            queue.done(under_way.back());
            under_way.pop_back();
        }
    }
    for (const TenantId& tenant : under_way) queue.done(tenant);
    while (auto batch = queue.take()) {
        for (const WaitingEntry& one : batch->entries)
            taken[batch->tenant.text()].push_back(std::stoi(*one.entry.data));
        queue.done(batch->tenant);
    }
    EXPECT_EQ(taken, given);
    EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace rowlock
