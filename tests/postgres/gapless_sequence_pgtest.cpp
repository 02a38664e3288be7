// Gapless numbers: 1, 2, 3 … per tenant, whatever the number of writers and however their transactions end.
#include "rowlock/gapless_sequence.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "rowlock/database.hpp"
#include "rowlock/schema.hpp"
#include "support/test_database.hpp"

namespace rowlock {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using namespace std::chrono_literals;

struct GiveUp {};

TransactionPolicy of(const std::string& tenant, std::chrono::milliseconds lock_wait_max = 60s) {
    return {.tenant = TenantId(tenant), .lock_wait_max = lock_wait_max, .deadline = 300s};
}

class GaplessNumbers : public testing::Test {
  protected:
    void SetUp() override {
        database_.transact({.lock_wait_max = 60s}, [](Transaction& transaction) {
            install_schema(transaction);
            transaction.execute_script({"test.table",
                                        "CREATE TABLE public.invoice (tenant_id text, number bigint, year int);"
                                        "GRANT SELECT, INSERT, UPDATE ON public.invoice TO rowlock_app"});
        });
    }

    std::int64_t take(const std::string& tenant) {
        return app_.transact(of(tenant), [&](Transaction& transaction) { return invoices_.take_next(transaction); });
    }
    static void insert(Transaction& transaction, std::int64_t number, int year = 2026) {
        transaction.execute({"test.insert", "INSERT INTO public.invoice VALUES ($1, $2, $3)"},
                            {transaction.required_tenant(), number, year});
    }
    void insert_numbers(const std::string& tenant, const std::vector<std::int64_t>& numbers) {
        app_.transact(of(tenant), [&](Transaction& transaction) {
            for (const std::int64_t number : numbers) insert(transaction, number);
        });
    }
    NumberReport check(const std::string& tenant) {
        return app_.transact(of(tenant),
                             [&](Transaction& transaction) { return invoices_.check(transaction, table_); });
    }
    /// One writer of a crowd: numbers rows, and every fifth time thinks better of it, in one of two ways.
    void write_invoices(const std::string& tenant, int rounds) {
        for (int round = 0; round < rounds; ++round) {
            try {
                app_.transact(of(tenant), [&](Transaction& transaction) {
                    insert(transaction, invoices_.take_next(transaction));
                    if (round % 5 == 0) throw GiveUp{};
                });
            } catch (const GiveUp&) {
                continue;
            }
        }
    }

    test::TestDatabase server_;
    Database database_{server_.connection()};
    Database app_{{.connection = server_.connection(), .role = "rowlock_app"}};
    /// For what happens beside an open transaction of the same thread: it must not wait for a connection of the same
    /// pool.
    Database beside_{{.connection = server_.connection(), .role = "rowlock_app"}};
    GaplessSequence invoices_{"invoice"};
    NumberedTable table_{.table = "invoice", .tenant_column = "tenant_id", .number_column = "number"};
};

TEST_F(GaplessNumbers, CountFromOnePerTenantAndName) {
    const GaplessSequence tickets("ticket");
    EXPECT_EQ(take("acme"), 1);
    EXPECT_EQ(take("acme"), 2);
    EXPECT_EQ(take("globex"), 1);
    app_.transact(of("acme"), [&](Transaction& transaction) {
        EXPECT_EQ(tickets.take_next(transaction), 1);
        EXPECT_EQ(invoices_.take_next(transaction), 3);
        EXPECT_EQ(invoices_.last_taken(transaction), 3);
        EXPECT_EQ(GaplessSequence("unused").last_taken(transaction), 0);
    });
}

TEST_F(GaplessNumbers, HaveNoGapAndNoDuplicateWithEightWritersThatSometimesRollBack) {
    constexpr int writers = 8;
    constexpr int rounds = 40;
    std::vector<std::thread> crowd;
    for (int i = 0; i < writers; ++i) {
        crowd.emplace_back([&, i] { write_invoices(i % 4 == 3 ? "globex" : "acme", rounds); });
    }
    for (std::thread& writer : crowd) writer.join();
    for (const auto& [tenant, expected] : {std::pair<std::string, std::int64_t>{"acme", 6 * 32}, {"globex", 2 * 32}}) {
        const NumberReport report = check(tenant);
        EXPECT_EQ(report.rows, expected);
        EXPECT_EQ(report.first, 1);
        EXPECT_EQ(report.last, expected);
        EXPECT_THAT(report.holes, IsEmpty());
        EXPECT_THAT(report.duplicates, IsEmpty());
    }
}

TEST_F(GaplessNumbers, OfTheTwinThatReadsTheMaximumAndAddsOneAreFoundTwice) {
    std::barrier both_have_read(2);
    const auto write = [&] {
        app_.transact(of("acme"), [&](Transaction& transaction) {
            const std::int64_t next =
                transaction.execute({"test.maximum", "SELECT coalesce(max(number), 0) + 1 FROM public.invoice"})
                    .only()
                    .integer(0);
            both_have_read.arrive_and_wait();
            insert(transaction, next);
        });
    };
    std::thread other(write);
    write();
    other.join();
    EXPECT_THAT(check("acme").duplicates, ElementsAre(1));
}

TEST_F(GaplessNumbers, AreDistinctForAnyNumberOfFirstUsers) {
    constexpr int writers = 8;
    std::barrier start(writers);
    std::vector<std::thread> crowd;
    for (int i = 0; i < writers; ++i) {
        crowd.emplace_back([&] {
            start.arrive_and_wait();
            app_.transact(of("acme"),
                          [&](Transaction& transaction) { insert(transaction, invoices_.take_next(transaction)); });
        });
    }
    for (std::thread& writer : crowd) writer.join();
    const NumberReport report = check("acme");
    EXPECT_EQ(report.rows, writers);
    EXPECT_EQ(report.last, writers);
    EXPECT_THAT(report.duplicates, IsEmpty());
}

TEST_F(GaplessNumbers, GoBackWhenASavepointIsRolledBack) {
    app_.transact(of("acme"), [&](Transaction& transaction) {
        EXPECT_EQ(invoices_.take_next(transaction), 1);
        EXPECT_THROW(transaction.savepoint([&] {
            EXPECT_EQ(invoices_.take_next(transaction), 2);
            throw GiveUp{};
        }),
                     GiveUp);
        EXPECT_EQ(invoices_.take_next(transaction), 2);
    });
}

TEST_F(GaplessNumbers, MakeASecondWriterBusyAfterItsLimitAndAnotherTenantNotAtAll) {
    app_.transact(of("acme"), [&](Transaction& transaction) {
        EXPECT_EQ(invoices_.take_next(transaction), 1);
        const auto began = std::chrono::steady_clock::now();
        const auto outcome =
            beside_.try_transact(of("acme", 200ms), [&](Transaction& second) { return invoices_.take_next(second); });
        EXPECT_TRUE(std::holds_alternative<Busy>(outcome));
        EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
        EXPECT_EQ(
            beside_.transact(of("globex", 200ms), [&](Transaction& second) { return invoices_.take_next(second); }), 1);
    });
}

TEST_F(GaplessNumbers, AtRepeatableReadARaceIsRunAgain) {
    take("acme");
    TransactionPolicy policy = of("acme");
    policy.isolation = IsolationLevel::repeatable_read;
    int runs = 0;
    const std::int64_t number = app_.transact(policy, [&](Transaction& transaction) {
        transaction.execute({"test.snapshot", "SELECT count(*) FROM public.invoice"});
        if (++runs == 1) {
            beside_.transact(of("acme"), [&](Transaction& other) { EXPECT_EQ(invoices_.take_next(other), 2); });
        }
        return invoices_.take_next(transaction);
    });
    EXPECT_EQ(number, 3);
    EXPECT_EQ(runs, 2);
}

TEST_F(GaplessNumbers, NeedATenant) {
    EXPECT_THROW(static_cast<void>(
                     app_.transact({}, [&](Transaction& transaction) { return invoices_.take_next(transaction); })),
                 InvalidInput);
}

TEST_F(GaplessNumbers, StartWhereTheyAreTold) {
    app_.transact(of("acme"), [&](Transaction& transaction) {
        invoices_.start_at(transaction, 5000);
        EXPECT_EQ(invoices_.last_taken(transaction), 0);
        invoices_.start_at(transaction, 1000);
        EXPECT_EQ(invoices_.take_next(transaction), 1000);
        EXPECT_EQ(invoices_.last_taken(transaction), 1000);
        EXPECT_THROW(invoices_.start_at(transaction, 2000), InvalidInput);
        EXPECT_THROW(invoices_.start_at(transaction, 0), InvalidInput);
        EXPECT_EQ(invoices_.take_next(transaction), 1001);
    });
}

TEST_F(GaplessNumbers, StartNowhereElseWhileTheFirstIsBeingTaken) {
    app_.transact(of("acme"), [&](Transaction& transaction) { invoices_.start_at(transaction, 1); });
    std::thread starter;
    app_.transact(of("acme"), [&](Transaction& transaction) {
        EXPECT_EQ(invoices_.take_next(transaction), 1);
        starter = std::thread([&] {
            EXPECT_THROW(beside_.transact(of("acme"), [&](Transaction& other) { invoices_.start_at(other, 1); }),
                         InvalidInput);
        });
        constexpr int looks_max = 1000;
        for (int i = 0; i < looks_max && server_.value("SELECT count(*) FROM pg_locks WHERE NOT granted") == "0"; ++i) {
            std::this_thread::sleep_for(10ms);
        }
    });
    starter.join();
    EXPECT_EQ(take("acme"), 2) << "and not 1 again";
}

TEST_F(GaplessNumbers, InATableAreReportedWithTheirHolesAndDuplicates) {
    insert_numbers("acme", {3, 4, 4, 7, 10});
    insert_numbers("globex", {1, 1, 9});
    const NumberReport report = check("acme");
    EXPECT_EQ(report.rows, 5);
    EXPECT_EQ(report.first, 3);
    EXPECT_EQ(report.last, 10);
    ASSERT_EQ(report.holes.size(), 2U);
    EXPECT_EQ(report.holes[0].first, 5);
    EXPECT_EQ(report.holes[0].last, 6);
    EXPECT_EQ(report.holes[1].first, 8);
    EXPECT_EQ(report.holes[1].last, 9);
    EXPECT_THAT(report.duplicates, ElementsAre(4));
    EXPECT_FALSE(report.truncated);
    EXPECT_EQ(check("initech").rows, 0);
}

TEST_F(GaplessNumbers, AtTheEndsOfSixtyFourBitsAreReportedToo) {
    insert_numbers("acme", {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()});
    const NumberReport report = check("acme");
    ASSERT_EQ(report.holes.size(), 1U);
    EXPECT_EQ(report.holes[0].first, std::numeric_limits<std::int64_t>::min() + 1);
    EXPECT_EQ(report.holes[0].last, std::numeric_limits<std::int64_t>::max() - 1);
}

TEST_F(GaplessNumbers, WithMoreFindingsThanTheLimitSayThatThereAreMore) {
    std::vector<std::int64_t> odd;
    for (std::int64_t i = 0; i <= 1000; ++i) odd.push_back(2 * i + 1);
    insert_numbers("acme", odd);
    EXPECT_EQ(check("acme").holes.size(), NumberReport::findings_max);
    EXPECT_FALSE(check("acme").truncated);
    insert_numbers("acme", {2003});
    EXPECT_EQ(check("acme").holes.size(), NumberReport::findings_max);
    EXPECT_TRUE(check("acme").truncated);
}

TEST_F(GaplessNumbers, OfOneSeriesAreLookedAtAlone) {
    app_.transact(of("acme"), [&](Transaction& transaction) {
        insert(transaction, 1, 2025);
        insert(transaction, 9, 2025);
        insert(transaction, 1, 2026);
        NumberedTable table = table_;
        table.series_column = "year";
        table.series_value = "2026";
        const NumberReport report = invoices_.check(transaction, table);
        EXPECT_EQ(report.rows, 1);
        EXPECT_THAT(report.holes, IsEmpty());
    });
}

TEST_F(GaplessNumbers, GoOnFromATableThatIsAdopted) {
    insert_numbers("acme", {1, 2, 4});
    app_.transact(of("acme"), [&](Transaction& transaction) {
        const NumberReport report = invoices_.adopt(transaction, table_);
        EXPECT_EQ(report.last, 4);
        EXPECT_EQ(report.holes.size(), 1U);
        EXPECT_EQ(invoices_.last_taken(transaction), 4);
        EXPECT_EQ(invoices_.take_next(transaction), 5);
        EXPECT_EQ(invoices_.take_next(transaction), 6);
        EXPECT_EQ(invoices_.adopt(transaction, table_).last, 4);
        EXPECT_EQ(invoices_.take_next(transaction), 7) << "adopting again must not lower the counter";
    });
}

TEST_F(GaplessNumbers, AreNotLoweredByAnEmptyTable) {
    take("acme");
    app_.transact(of("acme"), [&](Transaction& transaction) {
        EXPECT_EQ(invoices_.adopt(transaction, table_).rows, 0);
        EXPECT_EQ(invoices_.take_next(transaction), 2);
    });
}

TEST_F(GaplessNumbers, AdoptedWaitForAWriterThatBypassesTheSequence) {
    std::atomic<bool> adopted = false;
    std::thread adopter;
    app_.transact(of("acme"), [&](Transaction& bypass) {
        insert(bypass, 41);
        adopter = std::thread([&] {
            app_.transact(of("acme"), [&](Transaction& transaction) { invoices_.adopt(transaction, table_); });
            adopted = true;
        });
        std::this_thread::sleep_for(300ms);
        EXPECT_FALSE(adopted) << "the bypassing row is not committed yet";
    });
    adopter.join();
    EXPECT_EQ(take("acme"), 42);
}

TEST_F(GaplessNumbers, AdoptedWhileWritersTakeAndInsertDoNotDeadlock) {
    std::vector<std::thread> crowd;
    for (int i = 0; i < 3; ++i) crowd.emplace_back([&] { write_invoices("acme", 20); });
    TransactionPolicy once = of("acme");
    once.attempts_max = 1;
    for (int i = 0; i < 20; ++i) {
        EXPECT_NO_THROW(app_.transact(once, [&](Transaction& transaction) { invoices_.adopt(transaction, table_); }));
    }
    for (std::thread& writer : crowd) writer.join();
    EXPECT_THAT(check("acme").duplicates, IsEmpty());
    EXPECT_THAT(check("acme").holes, IsEmpty());
}

TEST_F(GaplessNumbers, AreNotAdoptedUnderASnapshotOlderThanTheLock) {
    TransactionPolicy policy = of("acme");
    policy.isolation = IsolationLevel::serializable;
    EXPECT_THROW(app_.transact(policy, [&](Transaction& transaction) { invoices_.adopt(transaction, table_); }),
                 InvalidInput);
}

TEST_F(GaplessNumbers, InATableWithAnAwkwardNameAreFound) {
    database_.transact({}, [](Transaction& transaction) {
        transaction.execute_script(
            {"test.awkward",
             R"(CREATE SCHEMA "Ac""me"; CREATE TABLE "Ac""me"."in; DROP" ("Ten Ant" text, "No" int);
                                       GRANT USAGE ON SCHEMA "Ac""me" TO rowlock_app;
                                       GRANT SELECT ON "Ac""me"."in; DROP" TO rowlock_app;
                                       INSERT INTO "Ac""me"."in; DROP" VALUES ('acme', 12))"});
    });
    const NumberedTable awkward{
        .schema = "Ac\"me", .table = "in; DROP", .tenant_column = "Ten Ant", .number_column = "No"};
    app_.transact(of("acme"), [&](Transaction& transaction) {
        EXPECT_EQ(invoices_.check(transaction, awkward).last, 12);
        NumberedTable nameless = awkward;
        nameless.table = "";
        EXPECT_THROW(static_cast<void>(invoices_.check(transaction, nameless)), InvalidInput);
        nameless.table = std::string(64, 'x');
        EXPECT_THROW(static_cast<void>(invoices_.check(transaction, nameless)), InvalidInput);
    });
}

TEST(GaplessSequenceName, HasOneToTwoHundredBytes) {
    EXPECT_THROW(GaplessSequence(""), InvalidInput);
    EXPECT_THROW(GaplessSequence(std::string(201, 'x')), InvalidInput);
    EXPECT_THROW(GaplessSequence(std::string("a\0b", 3)), InvalidInput);
    EXPECT_THROW(GaplessSequence("\xff"), InvalidInput);
    EXPECT_EQ(GaplessSequence(std::string(200, 'x')).name().size(), 200U);
}

}  // namespace
}  // namespace rowlock
