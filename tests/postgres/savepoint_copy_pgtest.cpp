// Parts of a transaction: savepoints, and COPY within it.
#include <stdexcept>

#include "postgres/one_table.hpp"

namespace rowlock {
namespace {

using testing::HasSubstr;

class Savepoints : public OneTable {
  protected:
    Database database_{options(4)};
};

TEST_F(Savepoints, undo_what_a_throwing_body_did_and_the_transaction_goes_on) {
    const int result = database_.transact({}, [](Transaction& t) {
        insert(t, 1);
        EXPECT_THROW(t.savepoint([&] {
            insert(t, 2);
            insert(t, 2);
        }),
                     ServerError);
        EXPECT_THROW(t.savepoint([&] {
            insert(t, 3);
            t.enqueue(insert_row, {4, "a"});
            throw std::logic_error("no");
        }),
                     std::logic_error);
        return t.savepoint([&] {
            insert(t, 5);
            return 55;
        });
    });
    EXPECT_EQ(result, 55);
    EXPECT_EQ(value("SELECT string_agg(id::text, ',' ORDER BY id) FROM item"), "1,5");
}

TEST_F(Savepoints, nest) {
    database_.transact({}, [](Transaction& t) {
        t.savepoint([&] {
            insert(t, 1);
            EXPECT_THROW(t.savepoint([&] {
                insert(t, 2);
                t.savepoint([&] { insert(t, 3); });
                throw std::logic_error("no");
            }),
                         std::logic_error);
            insert(t, 4);
        });
    });
    EXPECT_EQ(value("SELECT string_agg(id::text, ',' ORDER BY id) FROM item"), "1,4");
}

TEST_F(Savepoints, hold_back_an_enqueued_statement_that_fails_as_they_are_released) {
    database_.transact({}, [](Transaction& t) {
        insert(t, 1);
        EXPECT_THROW(t.savepoint([&] { t.enqueue(insert_row, {1, "again"}); }), ServerError);
        insert(t, 2);
    });
    EXPECT_EQ(count(), 2);
}

TEST_F(Savepoints, do_not_hold_back_an_enqueued_statement_from_before_them) {
    const auto fault = fault_of<ServerError>([&] {
        database_.transact({}, [](Transaction& t) {
            insert(t, 1);
            t.enqueue(insert_row, {1, "again"});
            EXPECT_THROW(t.savepoint([] { FAIL() << "the body must not run"; }), ServerError);
        });
    });
    EXPECT_EQ(fault->sqlstate(), "25P02");
    EXPECT_EQ(count(), 0);
}

TEST_F(Savepoints, give_back_the_row_locks_that_were_taken_in_them) {
    created_.execute("INSERT INTO item VALUES (1, 'a')");
    database_.transact({}, [&](Transaction& t) {
        EXPECT_THROW(t.savepoint([&] {
            t.execute(lock_row, {1});
            throw std::logic_error("no");
        }),
                     std::logic_error);
        std::jthread([&] {
            database_.transact({.lock_wait_max = 1s}, [](Transaction& other) { other.execute(lock_row, {1}); });
        });
    });
}

TEST_F(Savepoints, do_not_turn_a_lost_link_into_a_transaction_that_goes_on) {
    const auto fault = fault_of<Error>([&] {
        database_.transact({.attempts_max = 1}, [&](Transaction& t) {
            insert(t, 1);
            EXPECT_THROW(t.savepoint([&]() -> void {
                terminate_all();
                throw std::logic_error("no");
            }),
                         std::logic_error);
        });
    });
    EXPECT_EQ(fault->recovery(), Recovery::reconnect_and_run_again);
    EXPECT_EQ(count(), 0);
}

using Copying = Savepoints;

TEST_F(Copying, hands_over_all_pieces_and_the_transaction_goes_on) {
    std::size_t bytes = 0;
    database_.transact({}, [&](Transaction& t) {
        t.enqueue(insert_row, {1, "a"});
        t.copy_out({"test.copy", "COPY (SELECT repeat('x', 99) FROM generate_series(1, 100000)) TO STDOUT"},
                   [&](std::span<const std::byte> piece) { bytes += piece.size(); });
        insert(t, 2);
    });
    EXPECT_EQ(bytes, 100U * 100000U);
    EXPECT_EQ(count(), 2);
}

TEST_F(Copying, passes_on_a_fault_half_way) {
    const auto fault = fault_of<ServerError>([&] {
        database_.transact({}, [](Transaction& t) {
            t.copy_out({"test.copy", "COPY (SELECT 1 / (5000 - n) FROM generate_series(1, 9999) AS n) TO STDOUT"},
                       [](auto) {});
        });
    });
    EXPECT_EQ(fault->sqlstate(), "22012");
}

TEST_F(Copying, ends_at_a_throw_and_the_next_transaction_has_another_connection) {
    Database one(options(1));
    const auto endless = [](Transaction& t) {
        insert(t, 1);
        t.copy_out({"test.copy", "COPY (SELECT generate_series(1, 100000000)) TO STDOUT"},
                   [](auto) { throw std::logic_error("enough"); });
    };
    EXPECT_THROW(one.transact({}, endless), std::logic_error);
    const auto fault = fault_of<ServerError>([&] {
        one.transact({.attempts_max = 1}, [&](Transaction& t) { EXPECT_THROW(endless(t), std::logic_error); });
    });
    EXPECT_EQ(fault->sqlstate(), "25P02");
    one.transact({}, [](Transaction& t) { insert(t, 2); });
    EXPECT_EQ(value("SELECT string_agg(id::text, ',') FROM item"), "2");
}

TEST_F(Copying, is_refused_where_nobody_reads_or_feeds) {
    for (const Statement& copy :
         {Statement{"test.copy", "COPY item TO STDOUT"}, {"test.copy", "COPY item FROM STDIN"}}) {
        for (const bool as_script : {true, false}) {
            const auto fault = fault_of<ConnectionError>([&] {
                database_.transact({},
                                   [&](Transaction& t) { as_script ? t.execute_script(copy) : (void)t.execute(copy); });
            });
            EXPECT_EQ(fault->recovery(), Recovery::give_up);
            EXPECT_THAT(fault->what(), HasSubstr("copy_out"));
        }
    }
}

}  // namespace
}  // namespace rowlock
