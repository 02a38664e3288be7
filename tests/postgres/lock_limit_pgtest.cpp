// How long a transaction waits, and for what: lock limits, idle limits, limits of the user's own.
#include <vector>

#include "postgres/one_table.hpp"

namespace rowlock {
namespace {

using testing::HasSubstr;

class LockLimits : public OneTable {
  protected:
    LockLimits() { created_.execute("INSERT INTO item SELECT n, 'a' FROM generate_series(1, 9) AS n"); }

    /// Takes the row's lock after those who already wait for it, and holds it for a while.
    std::jthread holder(int id, std::chrono::milliseconds hold) {
        return std::jthread([this, id, hold] {
            database_.transact({.lock_wait_max = 60s}, [&](Transaction& t) {
                t.execute(lock_row, {id});
                std::this_thread::sleep_for(hold);
            });
        });
    }
    [[nodiscard]] bool is_locked(int id) const {
        return comes_true("SELECT count(*) = 0 FROM (SELECT FROM item WHERE id = " + std::to_string(id) +
                          " FOR UPDATE SKIP LOCKED) AS free");
    }
    static std::string limit(Transaction& t) {
        return std::string(t.execute({"test.limit", "SHOW statement_timeout"}).only().text(0));
    }

    Database database_{options(16)};
};

TEST_F(LockLimits, end_the_wait_for_one_holder_as_busy) {
    for (const Statement& statement :
         {lock_row, Statement{"test.update", "UPDATE item SET note = 'b' WHERE id = $1"}}) {
        const std::jthread held = holder(1, 2s);
        ASSERT_TRUE(is_locked(1));
        const auto start = std::chrono::steady_clock::now();
        const auto busy = fault_of<Busy>(
            [&] { database_.transact({.lock_wait_max = 300ms}, [&](Transaction& t) { t.execute(statement, {1}); }); });
        EXPECT_GE(since(start), 300ms);
        EXPECT_LT(since(start), 1200ms);
        EXPECT_EQ(busy->sqlstate(), "55P03");
        EXPECT_EQ(busy->limit(), 300ms);
        EXPECT_EQ(busy->recovery(), Recovery::run_again);
        EXPECT_EQ(busy->report().statement, statement.name);
        EXPECT_THAT(busy->what(), HasSubstr("not free within 300 ms"));
        EXPECT_THAT(busy->what(), HasSubstr("55P03"));
    }
}

TEST_F(LockLimits, end_a_wait_without_waiting_for_one_who_does_not_want_to) {
    const std::jthread held = holder(1, 1s);
    ASSERT_TRUE(is_locked(1));
    const auto outcome = database_.try_transact({}, [](Transaction& t) {
        return t.execute({"test.no_wait", "SELECT FROM item WHERE id = 1 FOR UPDATE NOWAIT"}).size();
    });
    ASSERT_TRUE(std::holds_alternative<Busy>(outcome));
    EXPECT_EQ(std::get<Busy>(outcome).sqlstate(), "55P03");
}

/// One holder after the other has the row, each ends in time for lock_timeout: only a deadline ends this wait.
TEST_F(LockLimits, are_a_deadline_over_several_holders) {
    created_.execute("INSERT INTO item SELECT n, 'b' FROM generate_series(11, 15) AS n");
    std::vector<std::jthread> holders;
    for (int i = 1; i <= 5; ++i) {
        holders.push_back(holder(10 + i, i * 600ms));
        ASSERT_TRUE(is_locked(10 + i));
    }
    const auto start = std::chrono::steady_clock::now();
    const auto busy = fault_of<Busy>([&] {
        database_.transact({.lock_wait_max = 1s}, [](Transaction& t) {
            t.execute({"test.lock_all", "SELECT FROM item WHERE id > 10 ORDER BY id FOR UPDATE", true});
        });
    });
    EXPECT_GE(since(start), 1s);
    EXPECT_LT(since(start), 2s);
    EXPECT_EQ(busy->sqlstate(), "55P03");
}

TEST_F(LockLimits, do_not_hold_for_the_statement_that_follows) {
    database_.transact({.lock_wait_max = 100ms}, [](Transaction& t) {
        t.execute(lock_row, {1});
        t.execute(sleep_for, {"0.3"});
        t.enqueue(lock_row, {2});
        t.enqueue(sleep_for, {"0.3"});
        EXPECT_THROW(t.savepoint([&] {
            t.execute(lock_row, {3});
            throw std::logic_error("no");
        }),
                     std::logic_error);
        t.execute(sleep_for, {"0.3"});
    });
}

TEST_F(LockLimits, do_not_hold_for_the_commit) {
    created_.execute(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.4); RETURN NULL; END';"
        "CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON item DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION slow()");
    database_.transact({.lock_wait_max = 200ms}, [](Transaction& t) {
        t.execute({"test.update", "UPDATE item SET note = 'b' WHERE id = 1", true});
    });
    EXPECT_EQ(value("SELECT note FROM item WHERE id = 1"), "b");
}

TEST_F(LockLimits, are_told_apart_from_a_cancel_by_somebody) {
    for (const auto limit : {60000ms, 50ms}) {  // of which one is over when the cancel comes
        std::jthread canceller;
        const auto fault = fault_of<ServerError>([&] {
            database_.transact({.lock_wait_max = limit}, [&](Transaction& t) {
                const int pid = t.backend_pid();
                canceller = std::jthread([this, pid] {
                    EXPECT_TRUE(comes_true("SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE pid = " +
                                           std::to_string(pid)));
                    std::this_thread::sleep_for(100ms);
                    created_.execute("SELECT pg_cancel_backend(" + std::to_string(pid) + ")");
                });
                t.execute({"test.wait", "SELECT pg_sleep(9)", limit > 1s});
            });
        });
        EXPECT_EQ(fault->sqlstate(), "57014");
        EXPECT_EQ(fault->recovery(), Recovery::give_up);
    }
}

TEST_F(LockLimits, leave_a_shorter_limit_of_the_users_own) {
    DatabaseOptions limited = options();
    limited.connection += " options='-c statement_timeout=200ms'";
    Database database(limited);
    const std::jthread held = holder(1, 1s);
    ASSERT_TRUE(is_locked(1));
    const auto start = std::chrono::steady_clock::now();
    const auto fault = fault_of<ServerError>([&] {
        database.transact({.lock_wait_max = 700ms}, [](Transaction& t) {
            EXPECT_EQ(limit(t), "200ms");
            t.execute(lock_row, {1});
        });
    });
    EXPECT_LT(since(start), 600ms);
    EXPECT_EQ(fault->sqlstate(), "57014");
}

TEST_F(LockLimits, give_back_a_limit_that_the_body_has_set) {
    database_.transact({.lock_wait_max = 1s}, [](Transaction& t) {
        EXPECT_EQ(limit(t), "0");
        t.execute({"test.own", "SET LOCAL statement_timeout = '7s'"});
        t.execute(lock_row, {1});
        EXPECT_EQ(limit(t), "7s");
        EXPECT_EQ(t.execute({"test.limit_on", "SHOW statement_timeout", true}).only().text(0), "1s");
        EXPECT_THROW(t.savepoint([&] {
            t.execute(lock_row, {2});
            t.execute({"test.own", "SET LOCAL statement_timeout = '5s'"});
            throw std::logic_error("no");
        }),
                     std::logic_error);
        EXPECT_EQ(limit(t), "7s");
    });
}

TEST_F(LockLimits, end_a_transaction_whose_client_falls_silent) {
    const auto fault = fault_of<ConnectionError>([&] {
        database_.transact({.idle_max = 100ms, .attempts_max = 1}, [&](Transaction& t) {
            t.execute(lock_row, {1});
            std::this_thread::sleep_for(400ms);
            t.execute(lock_row, {2});
        });
    });
    EXPECT_EQ(fault->sqlstate(), "25P03");
    EXPECT_EQ(fault->recovery(), Recovery::reconnect_and_run_again);
}

/// The link was lost before COMMIT was sent, and seen to be: there is no doubt in that.
TEST_F(LockLimits, leave_no_doubt_when_the_client_wakes_up_only_for_the_commit) {
    for (const bool enqueues : {true, false}) {
        const auto fault = fault_of<ConnectionError>([&] {
            database_.transact({.idle_max = 100ms, .attempts_max = 1}, [&](Transaction& t) {
                insert(t, 100);
                std::this_thread::sleep_for(400ms);
                if (enqueues) t.enqueue(insert_row, {101, "a"});
            });
        });
        EXPECT_EQ(fault->sqlstate(), "25P03");
    }
    EXPECT_EQ(count(), 9);
}

TEST_F(LockLimits, below_the_deadlock_timeout_say_that_it_may_have_been_a_deadlock) {
    for (const char* const timeout : {"1s", "20ms"}) {
        Database database(
            DatabaseOptions{.connection = created_.connection() + " options='-c deadlock_timeout=" + timeout + "'"});
        const auto holding = holder(1, 400ms);
        ASSERT_TRUE(is_locked(1));
        const auto busy = fault_of<Busy>(
            [&] { database.transact({.lock_wait_max = 100ms}, [](Transaction& t) { t.execute(lock_row, {1}); }); });
        EXPECT_EQ(busy->report().hint.empty(), std::string(timeout) == "20ms") << busy->report().hint;
    }
}

}  // namespace
}  // namespace rowlock
