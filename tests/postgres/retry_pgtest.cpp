// When a transaction is run again, and what comes of it.
#include <atomic>
#include <barrier>
#include <vector>

#include "postgres/one_table.hpp"

namespace rowlock {
namespace {

constexpr Statement raise{"test.raise", "DO $$ BEGIN RAISE EXCEPTION 'as asked' USING ERRCODE = '40001'; END $$"};
constexpr Statement raise_deadlock{"test.raise", "DO $$ BEGIN RAISE 'as asked' USING ERRCODE = '40P01'; END $$"};

class Retry : public OneTable {
  protected:
    Database database_{options(16)};
};

TEST_F(Retry, of_a_passing_failure_gives_the_result_of_the_last_run_and_one_effect) {
    for (const Statement& failure : {raise, raise_deadlock}) {
        int runs = 0;
        const int before = count();
        const int result = database_.transact({.attempts_max = 3}, [&](Transaction& t) {
            insert(t, 100 + before);
            if (++runs < 3) t.execute(failure);
            return runs * 10;
        });
        EXPECT_EQ(result, 30);
        EXPECT_EQ(count(), before + 1);
    }
}

TEST_F(Retry, ends_after_the_attempts_of_the_policy) {
    for (const int attempts_max : {1, 4}) {
        int runs = 0;
        const auto fault = fault_of<ServerError>([&] {
            database_.transact({.attempts_max = attempts_max}, [&](Transaction& t) {
                ++runs;
                t.execute(raise);
            });
        });
        EXPECT_EQ(runs, attempts_max);
        EXPECT_EQ(fault->sqlstate(), "40001");
        EXPECT_EQ(fault->recovery(), Recovery::run_again);
    }
}

TEST_F(Retry, ends_at_the_deadline_of_the_policy) {
    int runs = 0;
    const auto start = std::chrono::steady_clock::now();
    EXPECT_THROW(database_.transact({.attempts_max = 1000000, .deadline = 200ms},
                                    [&](Transaction& t) {
                                        ++runs;
                                        t.execute(raise);
                                    }),
                 ServerError);
    EXPECT_GT(runs, 1);
    EXPECT_LT(since(start), 2s);
}

TEST_F(Retry, is_not_for_what_stays_wrong) {
    int runs = 0;
    EXPECT_THROW(database_.transact({},
                                    [&](Transaction& t) {
                                        ++runs;
                                        t.execute({"test.wrong", "SELECT nothing"});
                                    }),
                 ServerError);
    EXPECT_EQ(runs, 1);
}

TEST_F(Retry, of_busy_is_only_on_demand) {
    created_.execute("INSERT INTO item VALUES (1, 'a')");
    for (const bool retry_busy : {false, true}) {
        std::atomic<int> runs = 0;
        std::atomic<bool> release = false;
        std::barrier held(2);
        std::jthread holder([&] {
            database_.transact({}, [&](Transaction& t) {
                t.execute(lock_row, {1});
                held.arrive_and_wait();
                for (int i = 0; i < 2000 && !release; ++i) std::this_thread::sleep_for(5ms);
            });
        });
        held.arrive_and_wait();
        const auto outcome = database_.try_transact(
            {.lock_wait_max = 50ms, .attempts_max = 50, .retry_busy = retry_busy}, [&](Transaction& t) {
                if (++runs == 3) release = true;
                return t.execute(lock_row, {1}).size();
            });
        release = true;
        EXPECT_EQ(std::holds_alternative<Busy>(outcome), !retry_busy);
        EXPECT_TRUE(retry_busy ? runs >= 3 : runs == 1) << runs;
    }
}

TEST_F(Retry, makes_serializable_counters_exact) {
    created_.execute("INSERT INTO item VALUES (1, '0')");
    constexpr int writers = 6;
    constexpr int rounds = 10;
    std::atomic<int> runs = 0;
    {
        std::vector<std::jthread> crowd;
        for (int i = 0; i < writers; ++i) {
            crowd.emplace_back([&] {
                for (int round = 0; round < rounds; ++round) {
                    database_.transact(
                        {.isolation = IsolationLevel::serializable, .attempts_max = 1000, .deadline = 60s},
                        [&](Transaction& t) {
                            ++runs;
                            const auto n = t.execute({"test.read", "SELECT note::int FROM item WHERE id = 1"});
                            t.execute({"test.write", "UPDATE item SET note = $1 WHERE id = 1"},
                                      {n.only().integer(0) + 1});
                        });
                }
            });
        }
    }
    EXPECT_EQ(value("SELECT note FROM item WHERE id = 1"), std::to_string(writers * rounds));
    EXPECT_GT(runs, writers * rounds) << "nothing was in anybody's way";
}

TEST_F(Retry, gets_two_out_of_a_deadlock) {
    created_.execute("INSERT INTO item VALUES (1, '0'), (2, '0')");
    std::atomic<int> runs = 0;
    std::barrier both_have_one(2);
    const auto writer = [&](int first, int second) {
        bool met = false;
        database_.transact({.lock_wait_max = 30s}, [&](Transaction& t) {
            ++runs;
            t.execute({"test.add", "UPDATE item SET note = note::int + 1 WHERE id = $1"}, {first});
            if (!std::exchange(met, true)) both_have_one.arrive_and_wait();
            t.execute({"test.add", "UPDATE item SET note = note::int + 1 WHERE id = $1"}, {second});
        });
    };
    {
        const std::jthread one(writer, 1, 2);
        const std::jthread other(writer, 2, 1);
    }
    EXPECT_EQ(runs, 3);
    EXPECT_EQ(value("SELECT string_agg(note, ',') FROM item"), "2,2");
}

TEST_F(Retry, after_a_terminated_backend_has_exactly_one_effect) {
    int runs = 0;
    const int pid = database_.transact({}, [&](Transaction& t) {
        insert(t, 1);
        if (++runs == 1) terminate_all();
        insert(t, 2);
        return t.backend_pid();
    });
    EXPECT_EQ(runs, 2);
    EXPECT_EQ(count(), 2);
    EXPECT_GT(pid, 0);
}

TEST_F(Retry, of_a_terminated_backend_says_so_when_it_may_not_be) {
    const auto fault = fault_of<ConnectionError>([&] {
        database_.transact({.attempts_max = 1}, [&](Transaction& t) { t.execute(terminate, {t.backend_pid()}); });
    });
    EXPECT_EQ(fault->sqlstate(), "57P01");
    EXPECT_EQ(fault->recovery(), Recovery::reconnect_and_run_again);
}

/// Both would fail again and again on the same connection.
TEST_F(Retry, gets_rid_of_prepared_statements_that_are_gone_or_stale) {
    Database one(options(1));
    const Statement all{"test.all", "SELECT * FROM item"};
    const auto columns = [&] { return one.transact({}, [&](Transaction& t) { return t.execute(all).columns(); }); };
    EXPECT_EQ(columns(), 2U);
    created_.execute("ALTER TABLE item ADD COLUMN more text");
    EXPECT_EQ(columns(), 3U);
    int runs = 0;
    one.transact({}, [&](Transaction& t) {
        if (++runs == 1) t.execute({"test.deallocate", "DEALLOCATE ALL"});
        t.execute(all);
    });
    EXPECT_EQ(runs, 2);
    EXPECT_EQ(columns(), 3U);
}

TEST_F(Retry, of_stale_statements_at_commit_is_no_doubt) {
    int runs = 0;
    database_.transact({}, [](Transaction& t) { insert(t, 0); });  // prepares the COMMIT
    database_.transact({}, [&](Transaction& t) {
        insert(t, 1);
        if (++runs == 1) t.execute({"test.deallocate", "DEALLOCATE ALL"});
    });
    EXPECT_EQ(runs, 2);
    EXPECT_EQ(count(), 2);
}

TEST_F(Retry, forgets_no_more_statements_than_the_server_does) {
    Database one(options(1));
    std::vector<std::string> texts;
    for (int i = 0; i < 300; ++i) texts.push_back("SELECT " + std::to_string(i));
    for (int round = 0; round < 2; ++round) {
        one.transact({}, [&](Transaction& t) {
            std::vector<Query> queries;
            for (const std::string& text : texts) queries.push_back({{"test.many", text}, {}});
            const auto rows = t.execute_all(queries);
            for (std::size_t i = 0; i < texts.size(); ++i) {
                EXPECT_EQ(rows[i].only().integer(0), static_cast<std::int64_t>(i));
            }
            const auto known = t.execute({"test.known", "SELECT count(*) FROM pg_prepared_statements"});
            EXPECT_LE(known.only().integer(0), 256);
        });
    }
}

/// One that failed to prepare, or did not get to it, is not taken for prepared.
TEST_F(Retry, prepares_again_what_could_not_be_prepared) {
    Database one(options(1));
    const Statement late{"test.late", "SELECT count(*) FROM later"};
    const Statement behind{"test.behind", "SELECT 5"};
    EXPECT_THROW(one.transact({}, [&](Transaction& t) { t.execute_all({{late, {}}, {behind, {}}}); }), ServerError);
    created_.execute("CREATE TABLE later ()");
    one.transact({},
                 [&](Transaction& t) { EXPECT_EQ(t.execute_all({{late, {}}, {behind, {}}})[1].only().integer(0), 5); });
}

}  // namespace
}  // namespace rowlock
