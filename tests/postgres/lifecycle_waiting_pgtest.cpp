// What happens while somebody waits: the form that people write first breaks here, the library's does not.
#include <algorithm>
#include <atomic>
#include <random>

#include "postgres/lifecycle_fixture.hpp"

namespace rowlock {
namespace {

using testing::Pair;
using testing::UnorderedElementsAre;

class LifecycleUnderConcurrency : public LifecycleTest {
  protected:
    /// A writer adds a claim under document 1 while it holds it open, and `retire_by` waits for it.
    void add_while_waited_for(const std::function<void()>& retire_by) {
        static_cast<void>(documents());
        std::jthread retirer;
        database_.transact({}, [&](Transaction& transaction) {
            under(transaction, 1, [&](const OpenParent& open) {
                documents().add_child(open, {});
                retirer = std::jthread(retire_by);
                expect_a_waiter();
            });
        });
    }
    void run_beside(IsolationLevel isolation, const std::vector<std::string>& statements) {
        beside_.transact({.isolation = isolation, .lock_wait_max = 20s, .attempts_max = 1},
                         [&](Transaction& transaction) {
                             for (const std::string& sql : statements) transaction.execute({"test.naive", sql});
                         });
    }

    static constexpr const char* naive_lock = "SELECT FROM document WHERE id = 1 FOR UPDATE";
    static constexpr const char* naive_cascade =
        "UPDATE claim SET status = 'rejected' WHERE document_id = 1 AND status IN ('confirmed', 'candidate')";
    static constexpr const char* naive_mark = "UPDATE document SET status = 'rejected' WHERE id = 1";
};

TEST_F(LifecycleUnderConcurrency, AChildThatIsAddedWhileRetireWaitsIsRetiredToo) {
    add_while_waited_for([&] {
        const RetireOutcome outcome = retire(1);
        EXPECT_THAT(std::get<Cascade>(outcome).earlier_counts,
                    UnorderedElementsAre(Pair("candidate", 2), Pair("confirmed", 1)));
    });
    EXPECT_EQ(violations(), "0");
}

TEST_F(LifecycleUnderConcurrency, ATwinThatLocksAndCascadesInOneStatementMissesIt) {
    add_while_waited_for([&] {
        run_beside(IsolationLevel::read_committed,
                   {"WITH held AS MATERIALIZED (SELECT id FROM document WHERE id = 1 FOR UPDATE)"
                    " UPDATE claim SET status = 'rejected' FROM held"
                    " WHERE document_id = held.id AND status IN ('confirmed', 'candidate')",
                    naive_mark});
    });
    EXPECT_EQ(violations(), "1");
}

TEST_F(LifecycleUnderConcurrency, ATwinAtRepeatableReadMissesIt) {
    add_while_waited_for([&] { run_beside(IsolationLevel::repeatable_read, {naive_lock, naive_cascade, naive_mark}); });
    EXPECT_EQ(violations(), "1");
}

TEST_F(LifecycleUnderConcurrency, ATwinWithoutAGuardIsSteeredIntoTheBadOrder) {
    // It reads without a lock; then the foreign key's check of its insert waits for the retirement, and goes on.
    std::jthread adder;
    beside_.transact({}, [&](Transaction& retirer) {
        retirer.execute({"test.lock", naive_lock});
        adder = std::jthread([&] {
            database_.transact({.lock_wait_max = 20s}, [](Transaction& transaction) {
                const Rows rows = transaction.execute({"test.read", "SELECT status FROM document WHERE id = 1"});
                if (rows.only().text(0) != "open") return;
                transaction.execute({"test.insert", "INSERT INTO claim (document_id) VALUES (1)"});
            });
        });
        expect_a_waiter();
        retirer.execute({"test.cascade", naive_cascade});
        retirer.execute({"test.mark", naive_mark});
    });
    adder.join();
    EXPECT_EQ(violations(), "1");
}

TEST_F(LifecycleUnderConcurrency, AGuardThatWaitedForARetirementSeesIt) {
    static_cast<void>(documents());
    std::jthread adder;
    bool open = true;
    beside_.transact({}, [&](Transaction& retirer) {
        static_cast<void>(documents().retire(retirer, 1));
        adder = std::jthread([&] {
            open = database_.transact({.lock_wait_max = 20s}, [&](Transaction& transaction) {
                return under(transaction, 1, [](const OpenParent&) {});
            });
        });
        expect_a_waiter();
    });
    adder.join();
    EXPECT_FALSE(open);
}

TEST_F(LifecycleUnderConcurrency, AChildThatChangesItsStatusMeanwhileIsCountedAsItWasLast) {
    static_cast<void>(documents());
    std::jthread retirer;
    RetireOutcome outcome = MissingParent{};
    database_.transact({}, [&](Transaction& outside) {
        outside.execute({"test.confirm", "UPDATE claim SET status = 'confirmed' WHERE id = 101"});
        retirer = std::jthread([&] { outcome = retire(1); });
        expect_a_waiter();
    });
    retirer.join();
    EXPECT_THAT(std::get<Cascade>(outcome).earlier_counts, UnorderedElementsAre(Pair("confirmed", 2)));
}

TEST_F(LifecycleUnderConcurrency, AChildThatIsWithdrawnMeanwhileIsLeftAloneAndByTheTwinWithoutALockIsNot) {
    const auto withdraw_while = [&](const std::function<void()>& retire_by) {
        server_.execute("UPDATE claim SET status = 'candidate' WHERE id = 101; UPDATE document SET status = 'open'");
        std::jthread retirer;
        database_.transact({}, [&](Transaction& outside) {
            outside.execute({"test.withdraw", "UPDATE claim SET status = 'withdrawn' WHERE id = 101"});
            retirer = std::jthread(retire_by);
            expect_a_waiter();
        });
    };
    static_cast<void>(documents());
    withdraw_while([&] { static_cast<void>(retire(1)); });
    EXPECT_EQ(claim_status(101), "withdrawn");
    withdraw_while([&] {
        run_beside(IsolationLevel::read_committed,
                   {naive_lock,
                    "WITH target AS MATERIALIZED (SELECT id FROM claim WHERE document_id = 1"
                    " AND status IN ('confirmed', 'candidate') ORDER BY id)"
                    " UPDATE claim SET status = 'rejected' FROM target WHERE claim.id = target.id",
                    naive_mark});
    });
    EXPECT_EQ(claim_status(101), "rejected") << "the twin wrote over it";
}

TEST_F(LifecycleUnderConcurrency, AChildThatWasMovedAwayMeanwhileIsElsewhereAndTheTwinConfirmsItUnderARetiredParent) {
    static_cast<void>(documents());
    const auto confirm_while_moved = [&](const std::function<void(Transaction&, const OpenParent&)>& confirm) {
        server_.execute(
            "UPDATE document SET status = 'open'; UPDATE claim SET document_id = 1, status = 'candidate' WHERE id = "
            "101");
        std::jthread confirmer;
        database_.transact({}, [&](Transaction& mover) {
            ASSERT_TRUE(std::holds_alternative<Moved>(documents().move(mover, 101, 1, 2)));
            static_cast<void>(mover.execute({"test.retire", "UPDATE document SET status = 'rejected' WHERE id = 2"}));
            mover.execute({"test.cascade", "UPDATE claim SET status = 'rejected' WHERE document_id = 2"});
            confirmer = std::jthread([&] {
                beside_.transact({.lock_wait_max = 20s}, [&](Transaction& transaction) {
                    under(transaction, 1, [&](const OpenParent& open) { confirm(transaction, open); });
                });
            });
            expect_a_waiter();
        });
    };
    confirm_while_moved([&](Transaction&, const OpenParent& open) {
        EXPECT_TRUE(std::holds_alternative<ChildElsewhere>(documents().confirm(open, 101)));
    });
    EXPECT_EQ(violations(), "0");
    confirm_while_moved([](Transaction& transaction, const OpenParent&) {
        transaction.execute({"test.confirm", "UPDATE claim SET status = 'confirmed' WHERE id = 101"});
    });
    EXPECT_EQ(violations(), "1");
}

TEST_F(LifecycleUnderConcurrency, TwoThatHoldTheParentToWriteItQueueAndTwoThatShareItDeadlock) {
    static_cast<void>(documents());
    const auto write_twice = [&](const std::function<HoldOutcome(Transaction&)>& hold) {
        std::atomic<int> deadlocks = 0;
        std::atomic<int> holding = 0;
        const auto write = [&](Database& database) {
            try {
                database.transact({.lock_wait_max = 20s, .attempts_max = 1}, [&](Transaction& transaction) {
                    static_cast<void>(hold(transaction));
                    ++holding;
                    // Both have the lock by then, if both can have it.
                    for (int i = 0; i < 100 && holding < 2; ++i) std::this_thread::sleep_for(5ms);
                    transaction.execute({"test.write", "UPDATE document SET note = 'x' WHERE id = 1"});
                });
            } catch (const ServerError& refused) {
                if (refused.sqlstate() == "40P01") ++deadlocks;
            }
        };
        std::jthread other([&] { write(beside_); });
        write(database_);
        other.join();
        return deadlocks.load();
    };
    EXPECT_EQ(write_twice([&](Transaction& transaction) { return documents().hold_open_to_write(transaction, 1); }), 0);
    EXPECT_EQ(write_twice([&](Transaction& transaction) { return documents().hold_open(transaction, 1); }), 1);
}

TEST_F(LifecycleUnderConcurrency, FiveHoldersThatEndOneAfterTheOtherDoNotStretchTheLimit) {
    static_cast<void>(documents());
    constexpr int holders = 5;
    std::atomic<int> holding = 0;
    std::atomic<bool> waited_for = false;
    std::vector<std::jthread> crowd;
    for (int i = 0; i < holders; ++i) {
        crowd.emplace_back([&, i] {
            database_.transact({}, [&](Transaction& transaction) {
                transaction.execute({"test.share", "SELECT FROM document WHERE id = 1 FOR SHARE"});
                ++holding;
                while (!waited_for) std::this_thread::sleep_for(1ms);
                std::this_thread::sleep_for(400ms * (i + 1));
            });
        });
    }
    while (holding < holders) std::this_thread::sleep_for(1ms);
    waited_for = true;
    const auto start = std::chrono::steady_clock::now();
    EXPECT_THROW(static_cast<void>(retire(1, {.lock_wait_max = 1000ms})), Busy);
    EXPECT_LT(since(start), 1900ms) << "lock_timeout alone would start again with every holder";
}

class RetireUnderAStream : public LifecycleUnderConcurrency {
  protected:
    static constexpr int clients = 16;
    static constexpr auto limit = 5s;

    /// How `retire_by` ended while 16 clients hold document 1 open again and again; each waits for a further holder
    /// before it lets go, so that without a gate there is no moment without one.
    template <class Hold>
    bool ends(Hold hold, const std::function<void(Transaction&)>& retire_by) {
        Database crowd_database(DatabaseOptions{.connection = server_.connection(), .connections_max = clients});
        std::atomic<bool> over = false;
        std::atomic<int> held = 0;
        std::vector<std::jthread> crowd;
        for (int i = 0; i < clients; ++i) {
            crowd.emplace_back([&] {
                while (!over) {
                    crowd_database.transact({.lock_wait_max = 20s}, [&](Transaction& transaction) {
                        hold(transaction);
                        const int mine = ++held;
                        for (int wait = 0; wait < 100 && held < mine + 2 && !over; ++wait) {
                            std::this_thread::sleep_for(1ms);
                        }
                    });
                }
            });
        }
        while (held < 2 * clients) std::this_thread::sleep_for(1ms);
        const auto outcome = beside_.try_transact({.lock_wait_max = limit}, retire_by);
        over = true;
        return std::holds_alternative<std::monostate>(outcome);
    }
};

TEST_F(RetireUnderAStream, OfGuardsEndsWithinItsLimit) {
    static_cast<void>(documents());
    EXPECT_TRUE(ends([&](Transaction& transaction) { static_cast<void>(documents().hold_open(transaction, 1)); },
                     [&](Transaction& transaction) { static_cast<void>(documents().retire(transaction, 1)); }));
    EXPECT_EQ(violations(), "0");
}

TEST_F(RetireUnderAStream, OfGuardsWithoutTheGateStarves) {
    EXPECT_FALSE(ends(
        [](Transaction& transaction) {
            transaction.execute({"test.share", "SELECT FROM document WHERE id = 1 FOR SHARE", true});
        },
        [](Transaction& transaction) {
            transaction.execute({"test.lock", "SELECT FROM document WHERE id = 1 FOR UPDATE", true});
        }));
}

class RetireEach : public LifecycleTest {
  protected:
    RetireEach() {
        server_.execute(
            "INSERT INTO document SELECT n FROM generate_series(10, 509) AS n;"
            "INSERT INTO claim (document_id) SELECT n FROM generate_series(10, 509) AS n, generate_series(1, 2)");
        for (int i = 10; i < 510; ++i) parents_.emplace_back(i);
    }
    std::vector<RowKey> parents_;
};

TEST_F(RetireEach, GoesOnPastAParentThatIsHeldAndSucceedsOnItTheNextTime) {
    static_cast<void>(documents());
    RetireBatchOptions options;
    options.policy.lock_wait_max = 100ms;
    std::size_t told = 0;
    options.progress = [&](std::size_t tried, const RetireReport&) { told = tried; };
    RetireReport report;
    int holder_pid = 0;
    database_.transact({}, [&](Transaction& holder) {
        holder.execute({"test.hold", "SELECT FROM document WHERE id = 250 FOR SHARE"});
        holder_pid = holder.backend_pid();
        report = retire_each(beside_, documents(), parents_, options);
    });
    EXPECT_EQ(told, 500U);
    EXPECT_EQ(report.done.size(), 499U);
    EXPECT_EQ(report.done.front().earlier_counts.at("candidate"), 2);
    ASSERT_EQ(report.busy.size(), 1U);
    EXPECT_EQ(report.busy[0].parent, RowKey(250));
    ASSERT_EQ(report.busy[0].blockers.size(), 1U);
    EXPECT_EQ(report.busy[0].blockers[0].pid, holder_pid);
    EXPECT_EQ(report.busy[0].blockers[0].application_name, "rowlock");
    EXPECT_EQ(value("SELECT count(*) FROM document WHERE status = 'rejected'"), "499");

    const RetireReport again = retire_each(beside_, documents(), parents_, options);
    EXPECT_EQ(again.already_retired.size(), 499U);
    ASSERT_EQ(again.done.size(), 1U);
    EXPECT_EQ(again.done[0].parent, RowKey(250));
    EXPECT_EQ(violations(), "0");
}

TEST_F(RetireEach, SharesTransactionsAndLeavesWhatIsHeldOrFailsToOneOfItsOwn) {
    static_cast<void>(documents());
    std::vector<RowKey> parents = parents_;
    parents[3] = RowKey("not a number");
    RetireBatchOptions options;
    options.policy.lock_wait_max = 100ms;
    options.parents_per_transaction = 100;
    std::size_t told = 0;
    options.progress = [&](std::size_t, const RetireReport&) { ++told; };
    RetireReport report;
    server_.execute(
        "CREATE TABLE seen (xact xid8);"
        "CREATE FUNCTION note_xact() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN INSERT INTO seen VALUES (pg_current_xact_id()); RETURN NULL; END';"
        "CREATE TRIGGER note_xact AFTER UPDATE ON document EXECUTE FUNCTION note_xact()");
    database_.transact({}, [&](Transaction& holder) {
        holder.execute({"test.hold", "SELECT FROM document WHERE id = 250 FOR SHARE"});
        report = retire_each(beside_, documents(), parents, options);
    });
    EXPECT_EQ(told, 5U);
    EXPECT_EQ(report.done.size(), 498U);
    ASSERT_EQ(report.busy.size(), 1U);
    EXPECT_EQ(report.busy[0].parent, RowKey(250));
    EXPECT_EQ(report.busy[0].blockers.size(), 1U);
    ASSERT_EQ(report.failed.size(), 1U);
    EXPECT_THAT(report.failed[0].reason, testing::HasSubstr("22P02"));
    EXPECT_EQ(value("SELECT count(*) FROM document WHERE status = 'rejected'"), "498");
    EXPECT_EQ(value("SELECT count(DISTINCT xact) FROM seen"), "5");
    EXPECT_EQ(violations(), "0");
}

TEST_F(RetireEach, ReportsWhatIsMissingWhatFailsAndWhatWasNotTried) {
    RetireBatchOptions options;
    int asked = 0;
    options.is_interrupted = [&] { return ++asked > 3; };
    const std::vector<RowKey> parents{9999, "not a number", 10, 11, 12};
    const RetireReport report = retire_each(beside_, documents(), parents, options);
    EXPECT_EQ(report.missing, std::vector<RowKey>{9999});
    ASSERT_EQ(report.failed.size(), 1U);
    EXPECT_THAT(report.failed[0].reason, testing::HasSubstr("22P02"));
    EXPECT_EQ(report.done.size(), 1U);
    EXPECT_EQ(report.not_tried, (std::vector<RowKey>{11, 12}));
}

}  // namespace
}  // namespace rowlock
