// A link that is lost around COMMIT: before it, in it, behind it. Never two effects, and none that is believed lost.
#include <csignal>
#include <filesystem>
#include <fstream>

#include "postgres/one_table.hpp"
#include "server/private_server.hpp"
#include "support/pgbouncer.hpp"

namespace rowlock {
namespace {

using test::Cut;
using testing::HasSubstr;

class CommitInDoubt : public OneTable {
  protected:
    [[nodiscard]] DatabaseOptions wired() const {
        return {.connection = proxy_.through(created_.connection()), .connections_max = 4};
    }
    /// Looks for the row with the number of the transaction.
    static std::function<bool(Transaction&)> by_row(int id) {
        return
            [id](Transaction& t) { return !t.execute({"test.look", "SELECT FROM item WHERE id = $1"}, {id}).empty(); };
    }
    /// Inserts on every run; a second effect would be another row with the same note.
    void insert_next(Transaction& t, bool enqueues) {
        ++runs_;
        const Statement statement{"test.next", "INSERT INTO item VALUES (nextval('item_id'), 'once')"};
        enqueues ? t.enqueue(statement) : static_cast<void>(t.execute(statement));
    }
    static bool any_row(Transaction& t) {
        return !t.execute({"test.look", "SELECT FROM item WHERE note = 'once'"}).empty();
    }

    CommitInDoubt() { created_.execute("CREATE SEQUENCE item_id"); }
    test::CuttingProxy proxy_{test::test_server().directory};
    Database database_{wired()};
    int runs_ = 0;
};

TEST_F(CommitInDoubt, is_told_as_that_and_never_run_again_blindly) {
    for (const Cut cut : {Cut::before_commit, Cut::after_commit, Cut::after_commit_unanswered}) {
        for (const bool enqueues : {true, false}) {
            runs_ = 0;
            proxy_.cut_next(cut);
            const auto fault = fault_of<CommitOutcomeUnknown>(
                [&] { database_.transact({.attempts_max = 9}, [&](Transaction& t) { insert_next(t, enqueues); }); });
            EXPECT_EQ(fault->recovery(), Recovery::ask_server_first);
            EXPECT_EQ(runs_, 1);
        }
    }
    EXPECT_EQ(proxy_.cuts(), 6);
    EXPECT_TRUE(comes_true("SELECT count(*) = 4 FROM item")) << count();
}

TEST_F(CommitInDoubt, is_settled_by_the_row_that_was_committed) {
    for (const bool enqueues : {true, false}) {
        created_.execute("TRUNCATE item");
        runs_ = 0;
        proxy_.cut_next(Cut::after_commit);
        const int result = database_.transact({.was_committed = any_row}, [&](Transaction& t) {
            insert_next(t, enqueues);
            return runs_ * 10;
        });
        EXPECT_EQ(result, 10);
        EXPECT_EQ(runs_, 1);
        EXPECT_EQ(count(), 1);
    }
}

TEST_F(CommitInDoubt, is_settled_by_the_row_that_is_not_there_and_run_again) {
    for (const bool enqueues : {true, false}) {
        created_.execute("TRUNCATE item");
        runs_ = 0;
        proxy_.cut_next(Cut::before_commit);
        database_.transact({.was_committed = any_row}, [&](Transaction& t) { insert_next(t, enqueues); });
        EXPECT_EQ(runs_, 2);
        EXPECT_EQ(count(), 1);
    }
}

TEST_F(CommitInDoubt, is_not_settled_beyond_the_attempts_of_the_policy) {
    proxy_.cut_next(Cut::before_commit);
    const auto fault = fault_of<CommitOutcomeUnknown>([&] {
        database_.transact({.attempts_max = 1, .was_committed = any_row},
                           [&](Transaction& t) { insert_next(t, false); });
    });
    EXPECT_TRUE(fault);
    EXPECT_EQ(runs_, 1);
}

/// The old backend waits for a lock in front of its COMMIT. Its row is not there yet, but will be.
class CommitUnderWay : public CommitInDoubt {
  protected:
    CommitUnderWay() { created_.execute("CREATE TABLE gate (); GRANT ALL ON item, item_id TO PUBLIC"); }

    void run_behind_gate(Database& database, std::chrono::milliseconds gate_closed, const TransactionPolicy& policy) {
        const Database gate_keeper(options());
        std::jthread keeper([&] {
            const std::string hold = std::to_string(static_cast<double>(gate_closed.count()) / 1000.0);
            created_.execute("LOCK TABLE gate; SELECT pg_sleep(" + hold + ")");
        });
        ASSERT_TRUE(comes_true("SELECT count(*) > 0 FROM pg_locks WHERE relation = 'gate'::regclass AND granted"));
        proxy_.cut_next(Cut::after_commit_unanswered);
        database.transact(policy, [&](Transaction& t) {
            insert_next(t, false);
            t.enqueue({"test.gate", "DO $$ BEGIN PERFORM FROM public.gate; END $$", true});
        });
    }
};

TEST_F(CommitUnderWay, is_waited_for) {
    run_behind_gate(database_, 1s, {.lock_wait_max = 20s, .was_committed = any_row});
    EXPECT_EQ(runs_, 1);
    EXPECT_EQ(count(), 1);
}

TEST_F(CommitUnderWay, is_waited_for_also_where_the_role_may_not_see_that_backend) {
    DatabaseOptions options = wired();
    options.role = created_.add_login("blind").role;
    created_.execute("GRANT SELECT ON gate TO PUBLIC");
    Database database(options);
    run_behind_gate(database, 1s, {.lock_wait_max = 20s, .was_committed = any_row});
    EXPECT_EQ(runs_, 1);
    EXPECT_EQ(count(), 1);
}

TEST_F(CommitUnderWay, stays_in_doubt_past_the_deadline) {
    const auto fault = fault_of<CommitOutcomeUnknown>(
        [&] { run_behind_gate(database_, 2s, {.lock_wait_max = 20s, .deadline = 300ms, .was_committed = any_row}); });
    EXPECT_THAT(fault->what(), HasSubstr("still runs it"));
    EXPECT_EQ(runs_, 1);
}

/// Whatever goes wrong while asking, it is no word on the transaction.
TEST_F(CommitInDoubt, stays_in_doubt_where_the_question_fails) {
    const std::vector<std::function<bool(Transaction&)>> questions{
        [](Transaction& t) { return t.execute({"test.wrong", "SELECT nothing"}).empty(); },
        [](Transaction& t) { return t.execute(terminate, {t.backend_pid()}).empty(); },
    };
    for (const auto& question : questions) {
        runs_ = 0;
        proxy_.cut_next(Cut::after_commit);
        const auto fault = fault_of<CommitOutcomeUnknown>([&] {
            database_.transact({.deadline = 300ms, .was_committed = question},
                               [&](Transaction& t) { insert_next(t, false); });
        });
        EXPECT_EQ(fault->recovery(), Recovery::ask_server_first);
        EXPECT_EQ(runs_, 1);
    }
}

TEST_F(CommitInDoubt, is_not_what_a_link_is_that_was_lost_before_the_commit) {
    int runs = 0;
    database_.transact({}, [&](Transaction& t) {
        insert(t, 1);
        if (++runs == 1) proxy_.cut_all();
        insert(t, 2);
    });
    EXPECT_EQ(runs, 2);
    EXPECT_EQ(count(), 2);
    runs = 0;
    database_.transact({}, [&](Transaction& t) {  // noticed only as the COMMIT is about to go out
        insert(t, 3);
        if (++runs > 1) return;
        proxy_.cut_all();
        std::this_thread::sleep_for(200ms);
    });
    EXPECT_EQ(runs, 2);
    EXPECT_EQ(count(), 3);
}

TEST_F(CommitInDoubt, is_not_what_the_servers_last_word_on_an_earlier_statement_is) {
    const Statement end{"test.end", "SELECT pg_terminate_backend(pg_backend_pid())"};
    const auto fault = fault_of<ConnectionError>([&] {
        database_.transact({.attempts_max = 1}, [&](Transaction& t) {
            insert_next(t, true);
            t.enqueue(end);
        });
    });
    EXPECT_EQ(fault->sqlstate(), "57P01");
    EXPECT_EQ(count(), 0);
}

TEST_F(CommitInDoubt, is_what_the_servers_last_word_on_the_commit_is) {
    created_.execute(
        "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(9); RETURN NULL; END';"
        "CREATE CONSTRAINT TRIGGER die AFTER INSERT ON item DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION die()");
    EXPECT_TRUE(fault_of<CommitOutcomeUnknown>(
        [&] { database_.transact({}, [&](Transaction& t) { insert_next(t, false); }); }));
    EXPECT_EQ(runs_, 1);
}

class CommitInDoubtBehindPooler : public OneTable {};

/// The pooler is between the proxy and the server: nobody can tell which backend it was.
TEST_F(CommitInDoubtBehindPooler, is_settled_both_ways) {
    if (!test::Pgbouncer::available()) GTEST_SKIP() << "pgbouncer is not installed";
    const test::Pgbouncer pooler({.pool_size = 2});
    const std::string behind = pooler.connection(created_.name());
    const std::string folder = behind.substr(5, behind.find(' ') - 5);
    // The proxy speaks to one name of socket; the pooler has another.
    std::filesystem::create_symlink(folder + "/.s.PGSQL.6432", folder + "/.s.PGSQL.5432");
    test::CuttingProxy proxy(folder);
    Database database(proxy.through(created_.connection()));
    for (const Cut cut : {Cut::before_commit, Cut::after_commit, Cut::after_commit_unanswered}) {
        const int id = static_cast<int>(cut);
        int runs = 0;
        proxy.cut_next(cut);
        const auto question = [&](Transaction& t) {
            return !t.execute({"test.look", "SELECT FROM item WHERE id = $1"}, {id}).empty();
        };
        database.transact({.was_committed = question}, [&](Transaction& t) {
            ++runs;
            EXPECT_EQ(t.backend_pid(), 0);
            insert(t, id);
        });
        EXPECT_TRUE(cut == Cut::after_commit_unanswered || runs == (cut == Cut::before_commit ? 2 : 1)) << runs;
        EXPECT_EQ(value("SELECT count(*) FROM item WHERE id = " + std::to_string(id)), "1");
    }
    EXPECT_EQ(proxy.cuts(), 3);
    EXPECT_EQ(proxy.named_statements(), 0);
}

/// On a server of its own, which is killed (-9) as the COMMIT arrives.
class ServerKilledAtCommit : public testing::Test {
  protected:
    /// Not a throwaway: what was committed has to survive the kill.
    [[nodiscard]] ServerOptions options() const { return {.place = {scratch_.path() / "server"}, .settings = {}}; }
    ~ServerKilledAtCommit() override { PrivateServer(options()).destroy(); }
    const test::ScratchFolder scratch_;
};

TEST_F(ServerKilledAtCommit, is_settled_when_it_is_up_again) {
    PrivateServer server(options());
    const ServerStatus status = server.ensure_running();
    test::run_sql(status.connection, "CREATE TABLE item (id int PRIMARY KEY)");
    test::CuttingProxy proxy(status.directory);
    Database database(proxy.through(status.connection));
    for (const Cut cut : {Cut::before_commit, Cut::after_commit}) {
        const int id = static_cast<int>(cut);
        proxy.cut_next(cut);
        std::jthread restarter([&] {
            for (int i = 0; i < 2000 && proxy.cuts() < id; ++i) std::this_thread::sleep_for(5ms);
            server.kill_immediately();
            std::this_thread::sleep_for(300ms);
            server.ensure_running();
        });
        int runs = 0;
        const auto question = [&](Transaction& t) {
            return !t.execute({"test.look", "SELECT FROM item WHERE id = $1"}, {id}).empty();
        };
        // The answer may come just before the kill: then it is the next attempt that has to wait for the server.
        const TransactionPolicy policy{
            .attempts_max = 1000, .backoff_max = 100ms, .deadline = 60s, .was_committed = question};
        database.transact(policy, [&](Transaction& t) {
            ++runs;
            t.execute({"test.insert", "INSERT INTO item VALUES ($1)"}, {id});
        });
        restarter.join();
        EXPECT_GE(runs, 1);
        EXPECT_EQ(test::run_sql(status.connection, "SELECT count(*) FROM item WHERE id = " + std::to_string(id)), "1");
    }
    EXPECT_EQ(proxy.cuts(), 2);
}

TEST_F(ServerKilledAtCommit, and_restarted_between_transactions_costs_no_attempt) {
    PrivateServer server(options());
    const ServerStatus status = server.ensure_running();
    DatabaseOptions wanted;
    wanted.connection = status.connection;
    wanted.connections_max = 3;
    Database database(wanted);
    const auto one = [&] {
        return database.transact({.attempts_max = 1}, [](Transaction& t) {
            t.enqueue({"test.one", "SELECT 1"});
            return t.backend_pid();
        });
    };
    for (const bool kill : {false, true}) {
        const int before = one();
        kill ? server.kill_immediately() : server.stop();
        std::this_thread::sleep_for(300ms);
        server.ensure_running();
        EXPECT_NE(one(), before);
        EXPECT_NE(one(), 0);
    }
}

}  // namespace
}  // namespace rowlock
