// Connections that threads share.
#include <atomic>
#include <vector>

#include "postgres/one_table.hpp"
#include "postgres/pool.hpp"
#include "support/pgbouncer.hpp"

namespace rowlock {
namespace {

using testing::HasSubstr;

class PoolTest : public OneTable {
  protected:
    [[nodiscard]] int backends() const {
        return std::stoi(
            value("SELECT count(*) FROM pg_stat_activity"
                  " WHERE datname = current_database() AND pid <> pg_backend_pid()"));
    }
    template <class Work>
    static void crowd(int threads, Work&& work) {
        std::vector<std::jthread> all;
        for (int i = 0; i < threads; ++i) all.emplace_back(work, i);
    }
};

TEST_F(PoolTest, opens_no_more_than_its_limit_for_any_number_of_threads) {
    Database database(options(3));
    std::atomic<int> inside = 0;
    std::atomic<int> most = 0;
    crowd(12, [&](int thread) {
        for (int round = 0; round < 20; ++round) {
            database.transact({}, [&](Transaction& t) {
                const int now = ++inside;
                for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) continue;
                insert(t, thread * 100 + round);
                --inside;
            });
        }
    });
    EXPECT_EQ(count(), 240);
    EXPECT_LE(most, 3);
    EXPECT_LE(backends(), 3);
}

TEST_F(PoolTest, keeps_one_connection_for_one_thread) {
    Database database(options(16));
    const auto pid = [&] { return database.transact({}, [](Transaction& t) { return t.backend_pid(); }); };
    const int first = pid();
    for (int i = 0; i < 20; ++i) EXPECT_EQ(pid(), first);
    EXPECT_EQ(backends(), 1);
}

TEST_F(PoolTest, says_so_when_all_stay_in_use) {
    DatabaseOptions small = options(1);
    small.connect_wait_max = 1s;
    Database database(small);
    std::atomic<bool> inside = false;
    std::atomic<bool> release = false;
    std::jthread holder([&] {
        database.transact({}, [&](Transaction&) {
            inside = true;
            for (int i = 0; i < 4000 && !release; ++i) std::this_thread::sleep_for(5ms);
        });
    });
    for (int i = 0; i < 2000 && !inside; ++i) std::this_thread::sleep_for(5ms);
    const auto fault = fault_of<ConnectionError>([&] { database.transact({}, [](Transaction&) {}); });
    release = true;
    EXPECT_EQ(fault->recovery(), Recovery::give_up);
    EXPECT_THAT(fault->what(), HasSubstr("connections_max"));
}

/// A place that got lost in any of these would be missed in the end: the pool has only two.
TEST_F(PoolTest, loses_no_place_however_transactions_end) {
    DatabaseOptions small = options(2);
    small.connect_wait_max = 5s;
    Database database(small);
    crowd(6, [&](int thread) {
        for (int round = 0; round < 30; ++round) {
            const auto body = [&](Transaction& t) {
                insert(t, thread * 1000 + round);
                if (round % 5 == 1) throw std::logic_error("no");
                if (round % 5 == 2) t.execute(terminate, {t.backend_pid()});
                if (round % 5 == 3) t.execute({"test.wrong", "SELECT 1 / 0"});
                if (round % 5 == 4) {
                    t.copy_out({"test.copy", "COPY (SELECT generate_series(1, 1000000)) TO STDOUT"},
                               [](auto) { throw std::logic_error("enough"); });
                }
            };
            try {
                database.transact({.attempts_max = 1}, body);
                EXPECT_EQ(round % 5, 0);
            } catch (const ServerError& fault) {
                EXPECT_EQ(fault.sqlstate(), "22012");
            } catch (const ConnectionError& fault) {
                // Also in the others: a lost link closes idle ones, never one that is in use.
                EXPECT_EQ(fault.sqlstate(), "57P01") << fault.what();
                EXPECT_EQ(round % 5, 2);
            } catch (const std::logic_error&) {
                EXPECT_TRUE(round % 5 == 1 || round % 5 == 4);
            }
        }
    });
    EXPECT_EQ(count(), 6 * 6);
    EXPECT_LE(backends(), 2);
    crowd(2, [&](int) {
        for (int i = 0; i < 10; ++i) database.transact({}, [](Transaction& t) { t.execute({"test.one", "SELECT 1"}); });
    });
}

TEST_F(PoolTest, loses_no_place_to_connections_that_can_not_be_made) {
    const auto login = created_.add_login("app");
    DatabaseOptions small = options(1);
    small.connection = created_.connection_as(login);
    small.connect_wait_max = 2s;
    Database database(small);
    created_.execute("ALTER ROLE " + login.role + " CONNECTION LIMIT 0");
    terminate_all();
    for (int i = 0; i < 3; ++i) {
        const auto fault = fault_of<ConnectionError>(
            [&] { database.transact({.attempts_max = 2}, [](Transaction&) { FAIL() << "there is no connection"; }); });
        EXPECT_EQ(fault->sqlstate(), "53300");
    }
    created_.execute("ALTER ROLE " + login.role + " CONNECTION LIMIT -1");
    database.transact({.attempts_max = 1}, [](Transaction& t) { t.execute({"test.one", "SELECT 1"}); });
}

TEST_F(PoolTest, does_not_hand_out_what_the_server_has_ended_meanwhile) {
    Database database(options(4));
    crowd(4, [&](int) { database.transact({}, [](Transaction& t) { t.execute(sleep_for, {"0.1"}); }); });
    EXPECT_EQ(backends(), 4);
    terminate_all();
    for (int i = 0; i < 4; ++i) {
        database.transact({.attempts_max = 1}, [&](Transaction& t) { t.enqueue(insert_row, {i, "a"}); });
    }
    EXPECT_EQ(count(), 4);
}

/// A notification that nobody reads is no reason to part with a connection.
TEST_F(PoolTest, keeps_a_connection_that_the_server_has_said_something_on) {
    Database database(options(1));
    const auto pid = [&](const std::string& sql) {
        return database.transact({}, [&](Transaction& t) {
            t.execute_script({"test.sql", sql});
            return t.backend_pid();
        });
    };
    const int first = pid("LISTEN news");
    created_.execute("SELECT pg_notify('news', repeat('n', 7000)) FROM generate_series(1, 5)");
    EXPECT_EQ(pid("SELECT 1"), first);
    EXPECT_EQ(pid("SELECT 1"), first);
}

TEST_F(PoolTest, behind_a_pooler_serves_many_threads_and_leaks_no_setting) {
    if (!test::Pgbouncer::available()) GTEST_SKIP() << "pgbouncer is not installed";
    const test::Pgbouncer pooler({.pool_size = 2});
    DatabaseOptions behind = options(8);
    behind.connection = pooler.connection(created_.name());
    behind.connect_wait_max = 60s;
    Database database(behind);
    const Statement see{"test.see",
                        "SELECT current_setting('rowlock.tenant'), current_setting('lock_timeout'),"
                        " (SELECT count(*) FROM pg_prepared_statements)"};
    std::atomic<int> done = 0;
    crowd(8, [&](int thread) {
        for (int round = 0; round < 125; ++round) {
            TransactionPolicy policy{.lock_wait_max = std::chrono::milliseconds(10001 + thread), .deadline = 120s};
            if (thread % 2 == 0) policy.tenant = TenantId("T" + std::to_string(thread));
            database.transact(policy, [&](Transaction& t) {
                t.enqueue(insert_row, {thread * 1000 + round, t.tenant() ? t.tenant()->text() : "none"});
                const Rows rows = t.execute(see);
                EXPECT_EQ(rows.only().text(0), t.tenant() ? t.tenant()->text() : "");
                EXPECT_EQ(rows.only().text(1), std::to_string(10001 + thread) + "ms");
                EXPECT_EQ(rows.only().integer(2), 0);
            });
            ++done;
        }
    });
    EXPECT_EQ(done, 1000);
    EXPECT_EQ(count(), 1000);
    EXPECT_LE(backends(), 2);
    const std::string left =
        test::run_sql(behind.connection,
                      "SELECT concat(current_setting('rowlock.tenant', true), '/',"
                      " current_setting('lock_timeout'), '/', current_setting('statement_timeout'))");
    EXPECT_EQ(left, "/0/0");
}

}  // namespace
}  // namespace rowlock
