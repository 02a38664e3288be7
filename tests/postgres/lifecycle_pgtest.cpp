// Parents and children: what retire, revive, the guards, confirm and move promise, one call at a time.
#include "lifecycle/statements.hpp"
#include "postgres/lifecycle_fixture.hpp"

namespace rowlock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

class LifecycleCalls : public LifecycleTest {};

TEST_F(LifecycleCalls, RetireMovesEveryLiveChildAndCountsItByItsEarlierStatus) {
    const RetireOutcome outcome = retire(1);
    const auto* const cascade = std::get_if<Cascade>(&outcome);
    ASSERT_NE(cascade, nullptr);
    EXPECT_THAT(cascade->earlier_counts, UnorderedElementsAre(Pair("candidate", 1), Pair("confirmed", 1)));
    ASSERT_EQ(cascade->children.size(), 2U);
    EXPECT_EQ(value("SELECT string_agg(status, ' ' ORDER BY id) FROM claim"), "rejected rejected withdrawn candidate");
    EXPECT_EQ(value("SELECT string_agg(status, ' ' ORDER BY id) FROM document"), "rejected open open");
}

TEST_F(LifecycleCalls, RetireLeavesHumanTimestampsAlone) {
    const std::string sql = "SELECT string_agg(coalesce(reviewed_at::text, '-'), ' ' ORDER BY id) FROM claim";
    const std::string before = value(sql);
    static_cast<void>(retire(1));
    EXPECT_EQ(value(sql), before);
}

TEST_F(LifecycleCalls, ARetiredParentIsRetiredAlreadyAndNothingOfItIsWritten) {
    static_cast<void>(retire(1));
    const std::string sql = "SELECT string_agg(xmin::text, ' ' ORDER BY id) FROM claim";
    const std::string before = value(sql);
    EXPECT_TRUE(std::holds_alternative<AlreadyRetired>(retire(1)));
    EXPECT_EQ(value(sql), before);
    EXPECT_TRUE(std::holds_alternative<MissingParent>(retire(77)));
}

TEST_F(LifecycleCalls, ReviveOpensTheParentAloneAndOnlyARetiredOne) {
    const auto revive = [&](int id) {
        return database_.transact({}, [&](Transaction& transaction) { return documents().revive(transaction, id); });
    };
    EXPECT_TRUE(std::holds_alternative<AlreadyOpen>(revive(1)));
    static_cast<void>(retire(1));
    EXPECT_TRUE(std::holds_alternative<Revived>(revive(1)));
    EXPECT_TRUE(std::holds_alternative<MissingParent>(revive(77)));
    EXPECT_EQ(value("SELECT status FROM document WHERE id = 1"), "open");
    EXPECT_EQ(claim_status(101), "rejected");
}

TEST_F(LifecycleCalls, AChildIsAddedUnderAnOpenParentAlone) {
    RowKey added("");
    database_.transact({}, [&](Transaction& transaction) {
        EXPECT_TRUE(under(transaction, 1, [&](const OpenParent& open) {
            added = documents().add_child(open, {{"status", "confirmed"}});
        }));
    });
    EXPECT_EQ(added, RowKey(1000));
    EXPECT_EQ(claim_status(1000), "confirmed");
    static_cast<void>(retire(1));
    database_.transact({}, [&](Transaction& transaction) {
        EXPECT_TRUE(std::holds_alternative<RetiredParent>(documents().hold_open_to_write(transaction, 1)));
        EXPECT_TRUE(std::holds_alternative<RetiredParent>(documents().hold_open(transaction, 1)));
        EXPECT_TRUE(std::holds_alternative<MissingParent>(documents().hold_open(transaction, 77)));
    });
}

TEST_F(LifecycleCalls, AChildIsConfirmedUnderItsOwnParentAlone) {
    database_.transact({}, [&](Transaction& transaction) {
        under(transaction, 1, [&](const OpenParent& open) {
            EXPECT_TRUE(std::holds_alternative<Confirmed>(documents().confirm(open, 101)));
            EXPECT_TRUE(std::holds_alternative<ChildElsewhere>(documents().confirm(open, 201)));
            EXPECT_TRUE(std::holds_alternative<ChildElsewhere>(documents().confirm(open, 777)));
        });
    });
    EXPECT_EQ(claim_status(101), "confirmed");
    EXPECT_EQ(claim_status(201), "candidate");
}

TEST_F(LifecycleCalls, AChildMovesToAnOpenParentAlone) {
    const auto move = [&](int child, int from, int to) {
        return database_.transact(
            {}, [&](Transaction& transaction) { return documents().move(transaction, child, from, to); });
    };
    EXPECT_TRUE(std::holds_alternative<Moved>(move(101, 1, 2)));
    EXPECT_EQ(value("SELECT document_id FROM claim WHERE id = 101"), "2");
    EXPECT_TRUE(std::holds_alternative<ChildElsewhere>(move(101, 1, 3)));
    EXPECT_TRUE(std::holds_alternative<MissingParent>(move(101, 2, 77)));
    static_cast<void>(retire(3));
    EXPECT_TRUE(std::holds_alternative<RetiredParent>(move(101, 2, 3)));
    EXPECT_EQ(value("SELECT document_id FROM claim WHERE id = 101"), "2");
}

TEST_F(LifecycleCalls, AreRefusedAtAnIsolationLevelThatTheDescriptionDoesNotName) {
    for (const IsolationLevel level : {IsolationLevel::repeatable_read, IsolationLevel::serializable}) {
        const TransactionPolicy policy{.isolation = level};
        EXPECT_THROW(static_cast<void>(retire(1, policy)), InvalidInput);
        EXPECT_THROW(
            database_.transact(
                policy, [&](Transaction& transaction) { static_cast<void>(documents().hold_open(transaction, 1)); }),
            InvalidInput);
    }
    LifecycleDescription repeatable = description();
    repeatable.isolation = IsolationLevel::repeatable_read;
    EXPECT_THROW(Lifecycle(database_, repeatable), InvalidInput);
}

TEST_F(LifecycleCalls, RefuseAKeyOfTheWrongWidth) {
    EXPECT_THROW(static_cast<void>(retire({1, 2})), InvalidInput);
}

TEST_F(LifecycleCalls, TellBusyAtTheLimitAtOnceOrGoOn) {
    static_cast<void>(documents());
    database_.transact({}, [&](Transaction& holder) {
        holder.execute({"test.hold", "SELECT FROM document WHERE id = 1 FOR UPDATE"});
        EXPECT_EQ(fault_of<Busy>([&] { static_cast<void>(retire(1, {.lock_wait_max = 100ms})); })->limit(), 100ms);
        const auto at_once =
            fault_of<Busy>([&] { static_cast<void>(retire(1, {.lock_wait_max = LockWait::no_wait()})); });
        EXPECT_EQ(at_once->limit(), 0ms);
        beside_.transact({.lock_wait_max = LockWait::skip_locked()}, [&](Transaction& transaction) {
            EXPECT_THROW(static_cast<void>(documents().retire(transaction, 1)), Busy);
            EXPECT_TRUE(std::holds_alternative<MissingParent>(documents().retire(transaction, 77)));
            EXPECT_TRUE(std::holds_alternative<Cascade>(documents().retire(transaction, 2)))
                << "the transaction goes on after a row that was skipped";
        });
    });
    EXPECT_EQ(value("SELECT string_agg(status, ' ' ORDER BY id) FROM document"), "open rejected open");
}

TEST_F(LifecycleCalls, TellBusyAtOnceAlsoWhereAGuardIsInTheWay) {
    database_.transact({}, [&](Transaction& transaction) {
        under(transaction, 1, [&](const OpenParent&) {
            for (const LockWait wait : {LockWait::no_wait(), LockWait::skip_locked()}) {
                EXPECT_THROW(static_cast<void>(retire(1, {.lock_wait_max = wait})), Busy);
            }
            beside_.transact({.lock_wait_max = LockWait::no_wait()}, [&](Transaction& other) {
                EXPECT_TRUE(under(other, 1, [](const OpenParent&) {})) << "guards do not mind each other";
            });
        });
    });
}

TEST_F(LifecycleCalls, NameWhoIsInTheWayIfAsked) {
    static_cast<void>(documents());
    database_.transact({}, [&](Transaction& transaction) {
        under(transaction, 1, [&](const OpenParent&) {
            const auto busy =
                fault_of<Busy>([&] { static_cast<void>(retire(1, {.lock_wait_max = 50ms, .name_blockers = true})); });
            ASSERT_EQ(busy->blockers().size(), 1U);
            EXPECT_EQ(busy->blockers()[0].pid, transaction.backend_pid());
            EXPECT_EQ(busy->blockers()[0].application_name, "rowlock");
            EXPECT_EQ(busy->blockers()[0].state, "idle in transaction");
            EXPECT_GE(busy->blockers()[0].transaction_age, 50ms);
        });
    });
    EXPECT_EQ(value("SELECT status FROM document WHERE id = 1"), "open") << "the question retires nothing";
}

TEST_F(LifecycleCalls, AtSerializableAreRunAgainUntilOneOrderHolds) {
    LifecycleDescription serializable = description();
    serializable.isolation = IsolationLevel::serializable;
    documents_.emplace(database_, serializable);
    const TransactionPolicy policy{.isolation = IsolationLevel::serializable, .lock_wait_max = 20s, .attempts_max = 50};
    std::jthread retirer;
    database_.transact(policy, [&](Transaction& transaction) {
        under(transaction, 1, [&](const OpenParent& open) {
            retirer = std::jthread([&] { static_cast<void>(retire(1, policy)); });
            expect_a_waiter();
            documents().add_child(open, {});
        });
    });
    retirer.join();
    EXPECT_EQ(violations(), "0");
    EXPECT_EQ(claim_status(1000), "rejected");
}

TEST_F(LifecycleCalls, CostOneRoundTripMoreThanTheWriteAlone) {
    static_cast<void>(documents());
    test::CuttingProxy proxy(test::test_server().directory);
    Database through(DatabaseOptions{.connection = proxy.through(server_.connection()), .connections_max = 1});
    const auto round_trips = [&](const std::function<void(Transaction&)>& body) {
        const int before = proxy.round_trips();
        through.transact({}, body);
        return proxy.round_trips() - before;
    };
    const int bare = round_trips([](Transaction& transaction) {
        transaction.execute({"test.insert", "INSERT INTO claim (document_id) VALUES (1)"});
    });
    EXPECT_EQ(bare, 2) << "the insert, and the COMMIT";
    EXPECT_EQ(round_trips([&](Transaction& transaction) {
                  under(transaction, 1, [&](const OpenParent& open) { documents().add_child(open, {}); });
              }),
              bare + 1);
    EXPECT_EQ(round_trips([&](Transaction& transaction) { static_cast<void>(documents().retire(transaction, 1)); }),
              bare + 1);
}

/// How the server would retire the children of parent 9.
std::string plan_of_retire(Database& database, const Lifecycle& lifecycle, const RowIdentity& parent) {
    const LifecycleStatements statements(lifecycle.description());
    const Query retire = statements.retire_children(parent);
    const std::string sql = "EXPLAIN " + std::string(retire.statement.sql);
    std::string plan;
    database.transact({.tenant = TenantId("new")}, [&](Transaction& transaction) {
        for (const Row row : transaction.execute({"test.plan", sql}, retire.parameters)) {
            plan += std::string(row.text(0)) + '\n';
        }
    });
    return plan;
}

/// Where the planner takes a parent's children for one, a loop over both sides with a filter looks cheap to it, and
/// takes the square of their number.
TEST_F(LifecycleCalls, RetireMeetsAChildOnceAlsoWhereThePlannerKnowsNoneOfThem) {
    static_cast<void>(documents());
    server_.execute(
        "INSERT INTO claim (document_id) SELECT 2 FROM generate_series(1, 5000);"
        "ANALYZE document, claim; INSERT INTO document VALUES (9);"
        "INSERT INTO claim (document_id) SELECT 9 FROM generate_series(1, 500)");
    EXPECT_THAT(plan_of_retire(database_, documents(), {9}), Not(HasSubstr("Join Filter")));

    server_.execute(
        "CREATE TABLE folder (tenant text, id int, status text DEFAULT 'open', PRIMARY KEY (tenant, id));"
        "CREATE TABLE page (tenant text, id int, folder int, status text DEFAULT 'candidate', PRIMARY KEY (tenant, id),"
        "                   FOREIGN KEY (tenant, folder) REFERENCES folder);"
        "CREATE INDEX ON page (tenant, folder);"
        "INSERT INTO folder VALUES ('old', 1), ('new', 9);"
        "INSERT INTO page SELECT 'old', n, 1 FROM generate_series(1, 5000) AS n; ANALYZE folder, page;"
        "INSERT INTO page SELECT 'new', n, 9 FROM generate_series(1, 500) AS n");
    const Lifecycle pages(maker_, {.parent = {.table = "folder"},
                                   .child = {.table = "page"},
                                   .retired = "rejected",
                                   .live_children = {"candidate"},
                                   .tenant_column = "tenant"});
    EXPECT_THAT(plan_of_retire(database_, pages, {"new", 9}), Not(HasSubstr("Join Filter")));
}

class LifecycleGuards : public LifecycleTest {
  protected:
    std::vector<std::string> told_;
    Database telling_{
        DatabaseOptions{.connection = server_.connection(),
                        .lock_order_broken = [this](std::string_view what) { told_.emplace_back(what); }}};
};

TEST_F(LifecycleGuards, AreOfNoUseAfterTheirTransaction) {
    static_cast<void>(documents());
    std::optional<OpenParent> kept;
    database_.transact({}, [&](Transaction& transaction) {
        HoldOutcome outcome = documents().hold_open(transaction, 1);
        kept.emplace(std::move(std::get<OpenParent>(outcome)));
    });
    EXPECT_DEATH(documents().add_child(*kept, {}), "not used after its transaction");
}

TEST_F(LifecycleGuards, AreOfNoUseAfterTheSavepointThatTheyWereTakenIn) {
    database_.transact({}, [&](Transaction& transaction) {
        std::optional<OpenParent> kept;
        EXPECT_THROW(transaction.savepoint([&] {
            HoldOutcome outcome = documents().hold_open(transaction, 1);
            kept.emplace(std::move(std::get<OpenParent>(outcome)));
            throw std::runtime_error("think better of it");
        }),
                     std::runtime_error);
        EXPECT_DEATH(documents().add_child(*kept, {}), "savepoint");
        under(transaction, 1, [&](const OpenParent& open) {
            transaction.savepoint([] {});
            documents().add_child(open, {});
        });
    });
}

TEST_F(LifecycleGuards, AreOfNoUseToAnotherLifecycle) {
    Lifecycle other(database_, description());
    database_.transact({}, [&](Transaction& transaction) {
        under(transaction, 1, [&](const OpenParent& open) {
            EXPECT_DEATH(other.add_child(open, {}), "with the lifecycle that gave it");
        });
    });
}

TEST_F(LifecycleGuards, TakenAfterAChildAreReportedWithBothPlaces) {
    static_cast<void>(documents());
    telling_.transact({}, [&](Transaction& transaction) {
        under(transaction, 1, [&](const OpenParent& open) {
            EXPECT_TRUE(std::holds_alternative<Confirmed>(documents().confirm(open, 101)));
            EXPECT_THAT(told_, ElementsAre());
            static_cast<void>(documents().hold_open(transaction, 1));
            EXPECT_THAT(told_, ElementsAre()) << "what is held already is no new lock";
            static_cast<void>(documents().hold_open(transaction, 2));
        });
    });
    const std::string here = "lifecycle_pgtest.cpp:" + std::to_string(__LINE__ - 3);
    const std::string confirmed = "lifecycle_pgtest.cpp:" + std::to_string(__LINE__ - 8);
    ASSERT_EQ(told_.size(), 1U);
    EXPECT_THAT(told_[0], HasSubstr(here));
    EXPECT_THAT(told_[0], HasSubstr(confirmed));
}

TEST_F(LifecycleGuards, TakenAfterAChildWithNobodyToTellStopADebugBuild) {
    static_cast<void>(documents());
    const auto take = [&] {
        database_.transact({}, [&](Transaction& transaction) {
            under(transaction, 1, [&](const OpenParent& open) {
                documents().add_child(open, {});
                static_cast<void>(documents().hold_open(transaction, 2));
            });
        });
    };
    EXPECT_DEBUG_DEATH(take(), "hold all parents before the first child");
}

TEST_F(LifecycleGuards, MadeStrongerAreReported) {
    static_cast<void>(documents());
    telling_.transact({}, [&](Transaction& transaction) {
        under(transaction, 1, [](const OpenParent&) {});
        static_cast<void>(documents().hold_open_to_write(transaction, 1));
    });
    ASSERT_EQ(told_.size(), 1U);
    EXPECT_THAT(told_[0], HasSubstr("hold_open_to_write"));
}

}  // namespace
}  // namespace rowlock
