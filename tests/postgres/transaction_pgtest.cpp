// What an open transaction promises: its round trips, its settings, its end.
#include <algorithm>
#include <array>
#include <numeric>
#include <stdexcept>

#include "postgres/binary_array.hpp"
#include "postgres/one_table.hpp"
#include "postgres/session.hpp"
#include "postgres/transaction_state.hpp"

namespace rowlock {
namespace {

using testing::HasSubstr;

class TransactionTest : public OneTable {
  protected:
    [[nodiscard]] static std::string setting(Transaction& transaction, const std::string& name) {
        return transaction.execute({"test.setting", "SELECT current_setting($1, true)"}, {name})
            .only()
            .optional_text(0)
            .value_or("(none)");
    }

    Database database_{options(4)};
};

class RoundTrips : public OneTable {
  protected:
    template <class Body>
    int of(Body&& body, const TransactionPolicy& policy = {}) {
        database_.transact(policy, body);  // prepares
        const int before = proxy_.round_trips();
        database_.transact(policy, body);
        return proxy_.round_trips() - before;
    }
    test::CuttingProxy proxy_{test::test_server().directory};
    Database database_{proxy_.through(created_.connection())};
};

TEST_F(RoundTrips, of_begin_and_set_up_are_none) {
    EXPECT_EQ(of([](Transaction&) {}), 0);
    EXPECT_EQ(of([](Transaction& t) { t.execute({"test.one", "SELECT 1"}); }), 2) << "the statement, the COMMIT";
}

TEST_F(RoundTrips, of_statements_that_are_only_enqueued_is_one_with_the_commit) {
    int id = 0;
    const auto body = [&](Transaction& t) {
        t.enqueue(insert_row, {++id, "a"});
        t.enqueue(insert_row, {++id, "b"});
    };
    EXPECT_EQ(of(body), 1);
    EXPECT_EQ(count(), 4);
}

TEST_F(RoundTrips, of_a_read_under_a_lock_and_a_write_by_it_are_two) {
    created_.execute("INSERT INTO public.item VALUES (1, 'a')");
    const auto body = [](Transaction& t) {
        const auto rows = t.execute_all({{lock_row, {1}}, {{"test.count", "SELECT count(*) FROM public.item"}, {}}});
        t.enqueue({"test.update", "UPDATE public.item SET note = $1 WHERE id = 1"}, {rows[0].only().text(0)});
    };
    EXPECT_EQ(of(body, {.tenant = TenantId("A")}), 2);
}

TEST_F(RoundTrips, of_a_rollback_that_has_sent_nothing_is_none) {
    const int before = proxy_.round_trips();
    EXPECT_THROW(database_.transact({}, [](Transaction&) { throw std::logic_error("no"); }), std::logic_error);
    EXPECT_EQ(proxy_.round_trips(), before);
}

TEST_F(TransactionTest, sets_the_tenant_for_itself_alone_and_nothing_is_like_none) {
    Database one(options(1));
    one.transact({.tenant = TenantId("A")}, [](Transaction& t) { EXPECT_EQ(setting(t, "rowlock.tenant"), "A"); });
    one.transact({}, [](Transaction& t) {
        EXPECT_EQ(setting(t, "rowlock.tenant"), "");
        EXPECT_FALSE(t.tenant());
        EXPECT_THROW(static_cast<void>(t.required_tenant()), InvalidInput);
    });
    EXPECT_THROW(TenantId(""), InvalidInput);
}

TEST_F(TransactionTest, leaves_no_setting_behind) {
    Session session(options(), std::source_location::current());
    const DatabaseOptions no_options;
    const TransactionPolicy policy{.tenant = TenantId("A"), .lock_wait_max = 77ms, .idle_max = 88ms};
    for (const bool commits : {true, false}) {
        Transaction::State state(session, policy, no_options);
        Transaction(state).execute(lock_row, {1});
        commits ? state.commit(std::source_location::current()) : state.rollback();
        session.queue({"test.settings",
                       "SELECT current_setting('rowlock.tenant'), current_setting('lock_timeout'),"
                       " current_setting('idle_in_transaction_session_timeout'), current_setting('statement_timeout')"},
                      {});
        const Session::Outcome outcome = session.flush();
        ASSERT_FALSE(outcome.failed);
        const Row row = outcome.rows[0].only();
        EXPECT_EQ(row.text(0), "");
        for (const std::size_t column : {1U, 2U, 3U}) EXPECT_EQ(row.text(column), "0");
    }
}

TEST_F(TransactionTest, has_the_isolation_level_of_its_policy) {
    using enum IsolationLevel;
    const std::vector<std::pair<IsolationLevel, std::string>> levels{
        {read_committed, "read committed"}, {repeatable_read, "repeatable read"}, {serializable, "serializable"}};
    for (const auto& [level, name] : levels) {
        database_.transact({.isolation = level}, [&](Transaction& t) {
            EXPECT_EQ(setting(t, "transaction_isolation"), name);
            EXPECT_EQ(t.isolation(), level);
        });
    }
}

TEST_F(TransactionTest, refuses_limits_that_would_mean_no_limit) {
    for (const auto limit : {0ms, -1ms, std::chrono::milliseconds(1LL << 31)}) {
        EXPECT_THROW(database_.transact({.lock_wait_max = limit}, [](Transaction&) {}), InvalidInput);
        EXPECT_THROW(database_.transact({.idle_max = limit}, [](Transaction&) {}), InvalidInput);
    }
    EXPECT_NO_THROW(
        database_.transact({.lock_wait_max = 1ms}, [](Transaction& t) { t.execute({"test.one", "SELECT 1"}); }));
}

TEST_F(TransactionTest, takes_on_the_role_of_the_options_and_lays_it_down) {
    const std::string role = created_.add_login("other").role;
    DatabaseOptions with_role = options(1);
    with_role.role = role;
    Database database(with_role);
    for (int i = 0; i < 2; ++i) {
        database.transact({}, [&](Transaction& t) { EXPECT_EQ(setting(t, "role"), role); });
    }
    with_role.role = "nobody_at_all";
    Database wrong(with_role);
    const auto fault =
        fault_of<ServerError>([&] { wrong.transact({}, [](Transaction& t) { t.execute({"test.one", "SELECT 1"}); }); });
    EXPECT_EQ(fault->sqlstate(), "22023");
}

TEST_F(TransactionTest, is_rolled_back_by_a_throw_which_is_passed_on_unchanged) {
    struct Own {
        int number;
    };
    try {
        database_.transact({}, [](Transaction& t) {
            insert(t, 1);
            t.enqueue(insert_row, {2, "a"});
            throw Own{42};
        });
        FAIL();
    } catch (const Own& own) {
        EXPECT_EQ(own.number, 42);
    }
    EXPECT_EQ(count(), 0);
    EXPECT_EQ(
        database_.transact({}, [](Transaction& t) { return t.execute({"test.n", "SELECT 7"}).only().integer(0); }), 7);
}

TEST_F(TransactionTest, refuses_to_commit_after_an_error_that_its_body_kept_to_itself) {
    const auto fault = fault_of<ServerError>([&] {
        database_.transact({}, [](Transaction& t) {
            insert(t, 1);
            EXPECT_THROW(insert(t, 1), ServerError);
        });
    });
    EXPECT_EQ(fault->sqlstate(), "25P02");
    EXPECT_EQ(fault->recovery(), Recovery::give_up);
    EXPECT_EQ(count(), 0);
}

TEST_F(TransactionTest, names_all_that_the_server_said_of_a_fault) {
    const auto fault = fault_of<ServerError>([&] {
        database_.transact({}, [](Transaction& t) {
            insert(t, 1);
            insert(t, 1);
        });
    });
    const ServerReport& report = fault->report();
    EXPECT_EQ(report.sqlstate, "23505");
    EXPECT_EQ(report.constraint, "item_pkey");
    EXPECT_EQ(report.table, "item");
    EXPECT_EQ(report.statement, "test.insert");
    EXPECT_THAT(report.detail, HasSubstr("(1)"));
    EXPECT_THAT(fault->what(), HasSubstr("SQLSTATE 23505"));
    EXPECT_THAT(fault->where().file_name(), HasSubstr("one_table.hpp"));
}

TEST_F(TransactionTest, throws_what_an_enqueued_statement_did_wrong_at_the_next_round_trip) {
    const auto twice = [](Transaction& t) {
        t.enqueue(insert_row, {1, "a"});
        t.enqueue(insert_row, {1, "b"});
    };
    const auto at_commit = fault_of<ServerError>([&] { database_.transact({}, twice); });
    EXPECT_EQ(at_commit->sqlstate(), "23505");
    const auto at_execute = fault_of<ServerError>([&] {
        database_.transact({}, [&](Transaction& t) {
            twice(t);
            t.execute({"test.one", "SELECT 1"});
        });
    });
    EXPECT_EQ(at_execute->report().statement, "test.insert");
    EXPECT_EQ(count(), 0);
}

TEST_F(TransactionTest, passes_on_what_the_server_finds_only_at_commit) {
    created_.execute(
        "CREATE TABLE child (item int REFERENCES item DEFERRABLE INITIALLY DEFERRED);"
        "INSERT INTO item VALUES (1, '')");
    const auto fault = fault_of<ServerError>([&] {
        database_.transact({}, [](Transaction& t) { t.execute({"test.child", "INSERT INTO child VALUES (9)"}); });
    });
    EXPECT_EQ(fault->sqlstate(), "23503");
    EXPECT_EQ(fault->report().statement, "transaction.commit");
    EXPECT_EQ(value("SELECT count(*) FROM child"), "0");
}

TEST_F(TransactionTest, sends_nothing_of_what_can_not_be_sent_and_goes_on) {
    database_.transact({}, [](Transaction& t) {
        const std::string with_nul("a\0b", 3);
        EXPECT_THROW(t.execute(insert_row, {1, with_nul}), InvalidInput);
        EXPECT_THROW(t.enqueue(insert_row, {1, with_nul}), InvalidInput);
        EXPECT_THROW(t.execute_all({{insert_row, {1, "a"}}, {insert_row, {2, with_nul}}}), InvalidInput);
        EXPECT_THROW(t.execute({"test.many", "SELECT 1"}, std::vector<Parameter>(65536, Parameter(1))), InvalidInput);
        EXPECT_EQ(t.execute_all({{insert_row, {3, "a"}}}).size(), 1U);
    });
    EXPECT_EQ(value("SELECT string_agg(id::text, ',') FROM item"), "3");
}

TEST_F(TransactionTest, sends_and_reads_more_than_the_sockets_hold) {
    constexpr std::size_t bytes = 12'000'000;
    const std::string big(bytes, 'x');
    const Statement echo{"test.echo", "SELECT $1::text, $1::text"};
    database_.transact({}, [&](Transaction& t) {
        const auto rows = t.execute_all({{echo, {big}}, {echo, {big}}, {echo, {big}}});
        ASSERT_EQ(rows.size(), 3U);
        for (const Rows& answer : rows) EXPECT_EQ(answer.only().text(1), big);
        EXPECT_EQ(t.execute({"test.rows", "SELECT n, repeat('y', 100) FROM generate_series(1, 200000) AS n"}).size(),
                  200000U);
    });
}

TEST_F(TransactionTest, gives_back_every_kind_of_value) {
    database_.transact({}, [](Transaction& t) {
        const std::vector<std::byte> bytes{std::byte{0}, std::byte{255}, std::byte{92}};
        const std::vector<std::optional<std::string>> elements{"a", std::nullopt, "", R"(q"\,{})", "NULL"};
        const Rows rows =
            t.execute({"test.kinds", "SELECT $1::bytea, $2::text[], ($2::text[])[4], $3::bool, $4::bigint, $5::text"},
                      {bytes, Parameter::array(elements), true, INT64_MIN, std::nullopt});
        EXPECT_EQ(rows.only().bytes(0), bytes);
        EXPECT_EQ(rows.only().text(1), R"({a,NULL,"","q\"\\,{}","NULL"})");
        EXPECT_EQ(rows.only().text(2), R"(q"\,{})");
        EXPECT_TRUE(rows.only().boolean(3));
        EXPECT_EQ(rows.only().integer(4), INT64_MIN);
        EXPECT_TRUE(rows.only().is_null(5));
        EXPECT_THROW(static_cast<void>(rows.only().integer(1)), InvalidInput);
    });
}

TEST_F(TransactionTest, sends_arrays_of_every_element_in_the_binary_format) {
    using enum BinaryArray::Element;
    BinaryArray numbers(bigint);
    for (const std::int64_t number : {INT64_MIN, std::int64_t{-1}, INT64_MAX}) numbers.add(number);
    BinaryArray texts(text);
    BinaryArray documents(json);
    for (const std::optional<std::string>& element : {std::optional<std::string>(R"({"q\"": 1})"), {}}) {
        texts.add(element);
        documents.add(element);
    }
    texts.add(std::optional<std::string>(""));
    const std::array<std::byte, 16> sixteen{std::byte{0}, std::byte{255}};
    BinaryArray ids(uuid);
    ids.add(sixteen);
    BinaryArray blobs(bytea);
    blobs.add(sixteen);
    blobs.add(std::span<const std::byte>());
    database_.transact({}, [&](Transaction& t) {
        const Rows rows = t.execute({"test.arrays",
                                     "SELECT $1::bigint[], $2::text[], $3::json[], $4::uuid[], $5::bytea[],"
                                     "       $6::text[], array_dims($2::text[])"},
                                    {numbers.parameter(), texts.parameter(), documents.parameter(), ids.parameter(),
                                     blobs.parameter(), BinaryArray(text).parameter()});
        const Row row = rows.only();
        EXPECT_EQ(row.text(0), "{-9223372036854775808,-1,9223372036854775807}");
        EXPECT_EQ(row.text(1), R"({"{\"q\\\"\": 1}",NULL,""})");
        EXPECT_EQ(row.text(2), R"({"{\"q\\\"\": 1}",NULL})");
        EXPECT_EQ(row.text(3), "{00ff0000-0000-0000-0000-000000000000}");
        EXPECT_EQ(row.text(4), R"({"\\x00ff0000000000000000000000000000","\\x"})");
        EXPECT_EQ(row.text(5), "{}");
        EXPECT_EQ(row.text(6), "[1:3]");
    });
    EXPECT_THROW(texts.add(std::string("a\0b", 3)), InvalidInput);
}

TEST_F(TransactionTest, runs_a_script_and_stops_at_its_first_fault) {
    database_.transact({}, [](Transaction& t) {
        t.execute_script(
            {"test.script", "INSERT INTO item VALUES (1, 'a'); SELECT 1; INSERT INTO item VALUES (2, 'b')"});
        insert(t, 3);
    });
    EXPECT_EQ(count(), 3);
    const auto fault = fault_of<ServerError>([&] {
        database_.transact({}, [](Transaction& t) {
            t.execute_script({"test.script", "DELETE FROM item; INSERT INTO item VALUES (1, 1 / 0)"});
        });
    });
    EXPECT_EQ(fault->sqlstate(), "22012");
    EXPECT_EQ(count(), 3);
}

using TransactionDeathTest = TransactionTest;

TEST_F(TransactionDeathTest, inside_of_another_of_the_same_database_is_a_bug) {
    const auto nested = [&] {
        Database one(options(1));
        Database other(options(1));
        one.transact({}, [&](Transaction&) {
            other.transact({}, [&](Transaction&) { one.transact({}, [](Transaction&) {}); });
        });
    };
    EXPECT_DEATH(nested(), "transact is not called inside of a transaction of the same database");
}

TEST_F(TransactionDeathTest, used_after_its_end_is_a_bug) {
    const auto late = [&](bool commits) {
        Session session(options(), std::source_location::current());
        const TransactionPolicy policy;
        const DatabaseOptions no_options;
        Transaction::State state(session, policy, no_options);
        Transaction transaction(state);
        transaction.execute({"test.one", "SELECT 1"});
        commits ? state.commit(std::source_location::current()) : state.rollback();
        insert(transaction, 2);
    };
    EXPECT_DEATH(late(true), "a transaction is not used after its end");
    EXPECT_DEATH(late(false), "a transaction is not used after its end");
}

TEST_F(TransactionDeathTest, ended_by_its_own_body_is_a_bug) {
    const auto ends_itself = [&](const std::string& end) {
        Database database(options(1));  // in the child: a connection is not for two processes
        database.transact({}, [&](Transaction& t) { t.execute_script({"test.end", end}); });
    };
    for (const std::string end : {"COMMIT", "ROLLBACK"}) {
        EXPECT_DEATH(ends_itself(end), "a body does not end its transaction itself");
    }
}

}  // namespace
}  // namespace rowlock
