// Many writers at once: 1, 2, 3 … with no gap and no duplicate, one chain, and no deadlock.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <map>
#include <mutex>
#include <random>

#include "postgres/audit_fixture.hpp"

namespace rowlock {
namespace {

using namespace std::chrono_literals;

constexpr int writers = 16;

class AuditLogInACrowd : public AuditTest {
  protected:
    /// What the writers were told, by tenant.
    void note(const std::string& tenant, const AppendOutcome& outcome) {
        const std::lock_guard lock(mutex_);
        told_[tenant].push_back(std::get<Appended>(outcome).seq);
    }
    void expect_all_told_and_gapless() {
        for (auto& [tenant, seqs] : told_) {
            std::sort(seqs.begin(), seqs.end());
            for (std::size_t i = 0; i < seqs.size(); ++i) {
                ASSERT_EQ(seqs[i], static_cast<std::int64_t>(i) + 1) << tenant;
            }
            expect_gapless(tenant, static_cast<std::int64_t>(seqs.size()));
        }
    }
    static AuditEntry entry_of(int writer, int round) {
        return {.actor = "writer " + std::to_string(writer),
                .action = "round",
                .data = "{\"round\": " + std::to_string(round) + "}"};
    }
    /// Opens this many connections, so that what comes next begins at one moment.
    void warm_up(int count) {
        std::barrier all_open(count);
        in_threads(count, [&](int) {
            app_->transact({}, [&](Transaction& transaction) {
                transaction.execute({"test.warm_up", "SELECT"});
                all_open.arrive_and_wait();
            });
        });
    }
    /// Pairs of tenants whose places in the advisory queue are one and the same.
    std::vector<TenantId> tenants_that_share_a_queue() {
        std::vector<TenantId> tenants;
        const Rows rows = superuser_.transact({}, [](Transaction& transaction) {
            return transaction.execute({"test.collisions",
                                        "SELECT min(t), max(t) FROM (SELECT 'shop-' || g AS t"
                                        " FROM generate_series(1, 300000) AS g) AS s"
                                        " GROUP BY hashtext(t) HAVING count(*) > 1 LIMIT 3"});
        });
        for (const Row row : rows) {
            tenants.emplace_back(std::string(row.text(0)));
            tenants.emplace_back(std::string(row.text(1)));
        }
        return tenants;
    }

    std::mutex mutex_;
    std::map<std::string, std::vector<std::int64_t>> told_;
};

TEST_F(AuditLogInACrowd, NumbersOneTenantWithoutGapOrDuplicateBySixteenWriters) {
    const int rounds = full_or(2000, 60);
    in_threads(writers, [&](int writer) {
        for (int round = 0; round < rounds; ++round) note("acme", append("acme", entry_of(writer, round)));
    });
    EXPECT_EQ(told_["acme"].size(), static_cast<std::size_t>(writers * rounds));
    expect_all_told_and_gapless();
}

TEST_F(AuditLogInACrowd, NumbersAHundredTenantsWithoutGapOrDuplicateBySixteenWriters) {
    const int rounds = full_or(2000, 60);
    constexpr int tenants = 100;
    in_threads(writers, [&](int writer) {
        for (int round = 0; round < rounds; ++round) {
            const std::string tenant = "tenant-" + std::to_string((writer * 31 + round) % tenants);
            note(tenant, append(tenant, entry_of(writer, round)));
        }
    });
    std::size_t total = 0;
    for (const auto& [tenant, seqs] : told_) total += seqs.size();
    EXPECT_EQ(total, static_cast<std::size_t>(writers * rounds));
    expect_all_told_and_gapless();
}

TEST_F(AuditLogInACrowd, MakesATenantsStateRowForThirtyTwoFirstWritersAtOnce) {
    constexpr int first_writers = 32;
    warm_up(first_writers);
    for (int round = 0; round < 5; ++round) {
        const std::string tenant = "new-" + std::to_string(round);
        std::barrier start(first_writers);
        in_threads(first_writers, [&](int writer) {
            start.arrive_and_wait();
            note(tenant, append(tenant, entry_of(writer, round)));
        });
        EXPECT_EQ(told_[tenant].size(), static_cast<std::size_t>(first_writers));
    }
    expect_all_told_and_gapless();
}

TEST_F(AuditLogInACrowd, MakesATenantsStateRowForFirstWritersAboveReadCommittedToo) {
    constexpr int first_writers = 8;
    warm_up(first_writers);
    for (const auto isolation : {IsolationLevel::repeatable_read, IsolationLevel::serializable}) {
        const std::string tenant = isolation == IsolationLevel::serializable ? "serializable" : "repeatable";
        TransactionPolicy policy = of(tenant);
        policy.isolation = isolation;
        policy.attempts_max = 1000;
        policy.backoff_max = 50ms;
        std::barrier start(first_writers);
        in_threads(first_writers, [&](int writer) {
            start.arrive_and_wait();
            for (int round = 0; round < 5; ++round) note(tenant, append_on(*app_, policy, entry_of(writer, round)));
        });
        EXPECT_EQ(told_[tenant].size(), static_cast<std::size_t>(first_writers * 5));
    }
    expect_all_told_and_gapless();
}

// The queue lets one writer at READ COMMITTED at a time come to the row, so a crowd of those alone would not miss the
// row's lock. Those above READ COMMITTED do not queue.
TEST_F(AuditLogInACrowd, StaysGaplessWhereSomeWritersDoNotQueue) {
    const int rounds = full_or(200, 60);
    in_threads(8, [&](int writer) {
        TransactionPolicy policy = of("acme");
        // One attempt for those that queue: nothing but the wait may happen to them.
        policy.attempts_max = 1;
        if (writer % 2 == 1) {
            policy.isolation = writer % 4 == 1 ? IsolationLevel::repeatable_read : IsolationLevel::serializable;
            policy.attempts_max = 100000;
            policy.backoff_max = 20ms;
        }
        for (int round = 0; round < rounds; ++round) note("acme", append_on(*app_, policy, entry_of(writer, round)));
    });
    EXPECT_EQ(told_["acme"].size(), static_cast<std::size_t>(8 * rounds));
    expect_all_told_and_gapless();
}

TEST_F(AuditLogInACrowd, GivesNumbersBackWhenWritersThinkBetterOfIt) {
    struct ThoughtBetter {};
    in_threads(8, [&](int writer) {
        for (int round = 0; round < 50; ++round) {
            try {
                const AppendOutcome outcome = app_->transact(of("acme"), [&](Transaction& transaction) {
                    const AppendOutcome appended = log_.append(transaction, entry_of(writer, round));
                    if ((round + writer) % 3 == 0) throw ThoughtBetter{};
                    return appended;
                });
                note("acme", outcome);
            } catch (const ThoughtBetter&) {
                continue;
            }
        }
    });
    expect_all_told_and_gapless();
}

TEST_F(AuditLogInACrowd, AppendsAnEntryOnceThatManyAppendAtOnce) {
    constexpr int many = 8;
    warm_up(many);
    for (int round = 1; round <= 20; ++round) {
        const AuditEntry entry{.actor = "same", .data = std::to_string(round)};
        std::map<std::string, int> outcomes;
        std::barrier start(many);
        in_threads(many, [&](int) {
            start.arrive_and_wait();
            const std::string outcome = said(append("acme", entry));
            const std::lock_guard lock(mutex_);
            ++outcomes[outcome];
        });
        const std::string seq = std::to_string(round);
        EXPECT_EQ(outcomes, (std::map<std::string, int>{{"appended " + seq, 1}, {"already " + seq, many - 1}}));
    }
    expect_gapless("acme", 20);
}

TEST_F(AuditLogInACrowd, GivesAnIdToOneOfManyThatWantItForDifferentEntries) {
    constexpr int many = 8;
    warm_up(many);
    for (int round = 1; round <= 20; ++round) {
        const EntryId id = EntryId::generate();
        std::map<std::string, int> outcomes;
        std::barrier start(many);
        in_threads(many, [&](int writer) {
            AuditEntry entry = entry_of(writer, round);
            entry.id = id;
            start.arrive_and_wait();
            const std::string outcome = said(append("acme", entry));
            const std::lock_guard lock(mutex_);
            ++outcomes[outcome];
        });
        const std::string seq = std::to_string(round);
        EXPECT_EQ(outcomes, (std::map<std::string, int>{{"appended " + seq, 1}, {"taken " + seq, many - 1}}));
    }
    expect_gapless("acme", 20);
}

TEST_F(AuditLogInACrowd, AppendsToSeveralTenantsInAnyOrderWithoutDeadlock) {
    std::vector<TenantId> tenants = tenants_that_share_a_queue();
    ASSERT_GE(tenants.size(), 2U) << "no two tenants share a place in the queue";
    for (int i = 0; i < 6; ++i) tenants.emplace_back("tenant-" + std::to_string(i));
    const int rounds = full_or(60, 15);
    in_threads(8, [&](int writer) {
        std::mt19937 dice(static_cast<unsigned>(writer));
        for (int round = 0; round < rounds; ++round) {
            std::vector<TenantEntry> entries;
            for (int i = 0; i < 10; ++i) {
                entries.push_back({tenants[dice() % tenants.size()], entry_of(writer, round * 10 + i)});
            }
            // One attempt: a deadlock would not be run again, but thrown.
            const auto outcomes =
                app_->transact({.lock_wait_max = 120s, .attempts_max = 1, .deadline = 300s},
                               [&](Transaction& transaction) { return log_.append_all(transaction, entries); });
            for (std::size_t i = 0; i < entries.size(); ++i) note(entries[i].tenant.text(), outcomes[i]);
        }
    });
    expect_all_told_and_gapless();
}

TEST_F(AuditLogInACrowd, TakesTheFirstEntriesOfSeveralTenantsAboveReadCommittedByRunningAgain) {
    const int rounds = full_or(10, 3);
    for (const IsolationLevel level : {IsolationLevel::repeatable_read, IsolationLevel::serializable}) {
        for (int round = 0; round < rounds; ++round) {
            const std::string prefix = "first " + std::to_string(static_cast<int>(level)) + std::to_string(round);
            in_threads(6, [&](int writer) {
                std::vector<TenantEntry> entries;
                for (int i = 0; i < 4; ++i) {
                    entries.push_back({TenantId(prefix + std::to_string((i + writer) % 4)), entry_of(writer, i)});
                }
                const TransactionPolicy policy{
                    .isolation = level, .lock_wait_max = 30s, .attempts_max = 100, .deadline = 120s};
                const auto outcomes = app_->transact(
                    policy, [&](Transaction& transaction) { return log_.append_all(transaction, entries); });
                for (std::size_t i = 0; i < entries.size(); ++i) note(entries[i].tenant.text(), outcomes[i]);
            });
        }
    }
    expect_all_told_and_gapless();
}

TEST_F(AuditLogInACrowd, IsIntactToWhoVerifiesItMeanwhile) {
    append_many("acme", 50);
    std::atomic<bool> done = false;
    std::atomic<std::int64_t> appended = 50;
    std::vector<std::thread> crowd;
    for (int writer = 0; writer < 4; ++writer) {
        crowd.emplace_back([&, writer] {
            constexpr int rounds_max = 20000;
            report_fault([&] {
                for (int round = 0; round < rounds_max && !done; ++round) {
                    append("acme", entry_of(writer, round));
                    ++appended;
                }
            });
        });
    }
    for (int round = 0; round < 60; ++round) {
        const std::int64_t before = appended;
        VerifyOptions options{.progress = {}, .chunk_entries = 1 + round * 3};
        // The crowd goes on while this reads: what it appends after the first chunk is not looked at.
        std::int64_t to_read = 0;
        options.progress = [&](std::int64_t, std::int64_t last) { to_read = last; };
        const Verification verification = verify("acme", options);
        EXPECT_EQ(verification.verdict, Verdict::intact) << told(verification);
        EXPECT_EQ(verification.entries, to_read);
        EXPECT_GE(verification.entries, before);
    }
    done = true;
    for (std::thread& writer : crowd) writer.join();
    expect_gapless("acme", appended);
}

}  // namespace
}  // namespace rowlock
