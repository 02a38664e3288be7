// An entry is part of the caller's transaction: both happen or neither does, and nothing happens twice.
#include <gmock/gmock.h>

#include "postgres/audit_fixture.hpp"

namespace rowlock {
namespace {

using namespace std::chrono_literals;

struct GiveUp {};

constexpr Statement insert_order{"test.insert_order", "INSERT INTO public.orders (number) VALUES ($1)"};

class AuditLogInATransaction : public AuditTest {
  protected:
    void SetUp() override {
        AuditTest::SetUp();
        server_.execute(
            "CREATE TABLE public.orders (number bigint NOT NULL,"
            "  CONSTRAINT orders_once UNIQUE (number) DEFERRABLE INITIALLY DEFERRED);"
            "GRANT SELECT, INSERT ON public.orders TO rowlock_app");
    }
    [[nodiscard]] std::string orders() const {
        return server_.value("SELECT coalesce(string_agg(number::text, ' ' ORDER BY number), '') FROM public.orders");
    }
};

TEST_F(AuditLogInATransaction, IsKeptWithTheBusinessRow) {
    app_->transact(of("acme"), [&](Transaction& transaction) {
        transaction.execute(insert_order, {7});
        EXPECT_EQ(said(log_.append(transaction, {.action = "order", .object = "7"})), "appended 1");
    });
    EXPECT_EQ(orders(), "7");
    expect_gapless("acme", 1);
}

TEST_F(AuditLogInATransaction, IsUndoneWithTheBusinessRowWhenTheBodyThrows) {
    append("acme");
    EXPECT_THROW(app_->transact(of("acme"),
                                [&](Transaction& transaction) {
                                    transaction.execute(insert_order, {7});
                                    EXPECT_EQ(said(log_.append(transaction, {})), "appended 2");
                                    throw GiveUp{};
                                }),
                 GiveUp);
    EXPECT_EQ(orders(), "");
    expect_gapless("acme", 1);
    EXPECT_EQ(said(append("acme")), "appended 2") << "the number is given again";
}

TEST_F(AuditLogInATransaction, IsUndoneWithTheTenantsStateRowAtFirstUse) {
    EXPECT_THROW(app_->transact(of("acme"),
                                [&](Transaction& transaction) {
                                    EXPECT_EQ(said(log_.append(transaction, {})), "appended 1");
                                    throw GiveUp{};
                                }),
                 GiveUp);
    EXPECT_EQ(everything(), "");
    EXPECT_EQ(said(append("acme")), "appended 1");
    expect_gapless("acme", 1);
}

TEST_F(AuditLogInATransaction, IsUndoneWhenTheBusinessRowIsRefusedAtCommit) {
    server_.execute("INSERT INTO public.orders VALUES (7)");
    try {
        app_->transact(of("acme"), [&](Transaction& transaction) {
            transaction.execute(insert_order, {7});
            static_cast<void>(log_.append(transaction, {}));
        });
        FAIL() << "the second order 7 was taken";
    } catch (const ServerError& error) {
        EXPECT_EQ(error.sqlstate(), "23505");
        EXPECT_EQ(error.report().constraint, "orders_once");
    }
    EXPECT_EQ(everything(), "");
}

TEST_F(AuditLogInATransaction, TakesTheBusinessRowWithItWhenTheEntryIsRefused) {
    EXPECT_THROW(app_->transact(of("acme"),
                                [&](Transaction& transaction) {
                                    transaction.execute(insert_order, {7});
                                    static_cast<void>(log_.append(transaction, {.data = "{"}));
                                }),
                 ServerError);
    EXPECT_EQ(orders(), "");
    EXPECT_EQ(everything(), "");
}

TEST_F(AuditLogInATransaction, GivesTheNumberAgainAfterASavepointIsRolledBack) {
    app_->transact(of("acme"), [&](Transaction& transaction) {
        EXPECT_EQ(said(log_.append(transaction, {.action = "kept"})), "appended 1");
        const auto tried = [&](bool read_first) {
            transaction.savepoint([&] {
                EXPECT_EQ(said(log_.append(transaction, {.action = "undone"})), "appended 2");
                if (read_first) transaction.execute(insert_order, {7});
                throw GiveUp{};
            });
        };
        EXPECT_THROW(tried(true), GiveUp);
        EXPECT_THROW(tried(false), GiveUp) << "the entry is still on its way then";
        EXPECT_EQ(said(log_.append(transaction, {.action = "kept"})), "appended 2");
    });
    expect_gapless("acme", 2);
    for (const StoredEntry& entry : list("acme")) EXPECT_EQ(entry.action, "kept");
    EXPECT_EQ(orders(), "");
}

TEST_F(AuditLogInATransaction, GivesTheHeadBackWithASavepoint) {
    app_->transact(of("acme"), [&](Transaction& transaction) {
        transaction.execute(insert_order, {7});
        EXPECT_THROW(transaction.savepoint([&] {
            static_cast<void>(log_.append(transaction, {}));
            throw GiveUp{};
        }),
                     GiveUp);
        // Would wait for ever if the savepoint had left a lock behind, in the queue or on the row.
        EXPECT_EQ(said(append_on(*beside_, of("acme", 10s), {})), "appended 1");
        EXPECT_EQ(said(log_.append(transaction, {})), "appended 2");
    });
    expect_gapless("acme", 2);
}

TEST_F(AuditLogInATransaction, GoesOnAfterAnEntryThatASavepointCaught) {
    app_->transact(of("acme"), [&](Transaction& transaction) {
        EXPECT_THROW(transaction.savepoint([&] { static_cast<void>(log_.append(transaction, {.data = "not json"})); }),
                     ServerError);
        EXPECT_EQ(said(log_.append(transaction, {.data = "1"})), "appended 1");
    });
    expect_gapless("acme", 1);
}

TEST_F(AuditLogInATransaction, TellsARetryFromAnotherEntryWithItsId) {
    AuditEntry entry{.actor = "a", .action = "b", .object = "c", .data = R"({"d": 1})"};
    append("acme");
    EXPECT_EQ(said(append("acme", entry)), "appended 2");
    append("acme");
    EXPECT_EQ(said(append("acme", entry)), "already 2");
    for (std::optional<std::string> AuditEntry::* const column :
         {&AuditEntry::actor, &AuditEntry::action, &AuditEntry::object, &AuditEntry::data}) {
        AuditEntry other = entry;
        (other.*column).reset();
        EXPECT_EQ(said(append("acme", other)), "taken 2");
        (other.*column) = column == &AuditEntry::data ? R"({"d":1})" : "";
        EXPECT_EQ(said(append("acme", other)), "taken 2") << "equal as jsonb is not equal, and '' is not NULL";
    }
    EXPECT_EQ(said(append("globex", entry)), "appended 1") << "an id is a tenant's own";
    expect_gapless("acme", 3);
}

TEST_F(AuditLogInATransaction, TellsARetryWithinOneCallAndWithinOneTransaction) {
    const TenantId acme("acme");
    const AuditEntry entry{.actor = "a"};
    AuditEntry other = entry;
    other.actor = "b";
    const AuditEntry last{.actor = "last"};
    const std::vector<TenantEntry> entries{{acme, entry}, {acme, entry}, {acme, other}, {acme, last}};
    app_->transact(of("acme"), [&](Transaction& transaction) {
        EXPECT_EQ(said(log_.append_all(transaction, entries)), "appended 1, already 1, taken 1, appended 2");
        EXPECT_EQ(said(log_.append(transaction, last)), "already 2");
        EXPECT_EQ(said(log_.append(transaction, other)), "taken 1");
    });
    app_->transact(of("acme"), [&](Transaction& transaction) {
        EXPECT_EQ(said(log_.append_all(transaction, entries)), "already 1, already 1, taken 1, already 2");
    });
    expect_gapless("acme", 2);
}

TEST_F(AuditLogInATransaction, AppendsForSeveralTenantsInTheOrderGiven) {
    const std::vector<TenantEntry> entries{{TenantId("b"), {}}, {TenantId("a"), {}}, {TenantId("b"), {}}};
    app_->transact({}, [&](Transaction& transaction) {
        EXPECT_EQ(said(log_.append_all(transaction, entries)), "appended 1, appended 1, appended 2");
        EXPECT_EQ(log_.append_all(transaction, {}).size(), 0U);
        EXPECT_EQ(transaction.execute({"test.left", "SELECT count(*) FROM rowlock.audit_log"}).only().integer(0), 0)
            << "no tenant is left set";
    });
    expect_gapless("a", 1);
    expect_gapless("b", 2);
    EXPECT_THROW(
        app_->transact(of("a"),
                       [&](Transaction& transaction) { static_cast<void>(log_.append_all(transaction, entries)); }),
        InvalidInput);
    expect_gapless("a", 1);
}

TEST_F(AuditLogInATransaction, StopsTheProgramThatAddsATenantLater) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto add_later = [&] {
        app_->transact({}, [&](Transaction& transaction) {
            for (const std::string tenant : {"a", "b"}) {
                const TenantEntry entry{TenantId(tenant), {}};
                static_cast<void>(log_.append_all(transaction, std::span(&entry, 1)));
            }
        });
    };
    EXPECT_DEATH(add_later(), "contract broken.*one call of append_all");
}

TEST_F(AuditLogInATransaction, RunsAgainAboveReadCommittedWhenTheHeadHasMoved) {
    for (const auto isolation : {IsolationLevel::repeatable_read, IsolationLevel::serializable}) {
        const std::string tenant = isolation == IsolationLevel::serializable ? "serializable" : "repeatable";
        TransactionPolicy policy = of(tenant);
        policy.isolation = isolation;
        int runs = 0;
        const auto body = [&](Transaction& transaction) {
            transaction.execute({"test.snapshot", "SELECT count(*) FROM public.orders"});
            if (++runs == 1) append_on(*beside_, of(tenant), {});
            return log_.append(transaction, {});
        };
        // First the other one is the tenant's first user, then it moves the head.
        for (const std::string_view expected : {"appended 2", "appended 4"}) {
            runs = 0;
            EXPECT_EQ(said(app_->transact(policy, body)), expected);
            EXPECT_EQ(runs, 2);
        }
        runs = 0;
        policy.attempts_max = 1;
        try {
            static_cast<void>(app_->transact(policy, body));
            ADD_FAILURE() << "the head had moved";
        } catch (const ServerError& error) {
            EXPECT_EQ(error.sqlstate(), "40001");
            EXPECT_EQ(error.recovery(), Recovery::run_again);
        }
        expect_gapless(tenant, 5);
    }
}

TEST_F(AuditLogInATransaction, IsAdvisedToBeTheLastThing) {
#ifdef NDEBUG
    GTEST_SKIP() << "advice is given in debug builds";
#endif
    std::vector<std::string> advice;
    Database advised(DatabaseOptions{.connection = server_.connection_as(login_),
                                     .advice = [&](std::string_view words) { advice.emplace_back(words); }});
    append_on(advised, of("acme"), {});
    advised.transact(of("acme"), [&](Transaction& transaction) {
        transaction.execute(insert_order, {1});
        static_cast<void>(log_.append(transaction, {}));
        static_cast<void>(log_.append(transaction, {}));
    });
    EXPECT_THAT(advice, testing::IsEmpty());
    advised.transact(of("acme"), [&](Transaction& transaction) {
        static_cast<void>(log_.append(transaction, {}));
        transaction.execute(insert_order, {2});
    });
    EXPECT_THAT(advice, testing::ElementsAre(testing::HasSubstr("test.insert_order follows an audit append")));
}

TEST_F(AuditLogInATransaction, RefusesWhatItCanNotKeepApart) {
    const auto refused = [&](const TransactionPolicy& policy, const AuditEntry& entry) {
        return [&, policy, entry] { static_cast<void>(append_on(*app_, policy, entry)); };
    };
    EXPECT_THROW(refused({}, {})(), InvalidInput) << "no tenant";
    for (const std::string action : {"rowlock.", "rowlock.key_rotation", "rowlock.anything"}) {
        EXPECT_THROW(refused(of("acme"), {.action = action})(), InvalidInput) << action;
    }
    for (const std::string action : {"rowlock", "Rowlock.x", " rowlock.x"}) {
        EXPECT_NO_THROW(refused(of("globex"), {.action = action})()) << action;
    }
    expect_gapless("globex", 3);
    EXPECT_EQ(verified("acme"), "empty 0");
}

TEST_F(AuditLogInATransaction, RefusesARoleThatPassesRowLevelSecurity) {
    const test::TestLogin bypassing = server_.add_login("bypass", "BYPASSRLS");
    server_.execute("GRANT rowlock_app TO " + bypassing.role);
    Database bypass(server_.connection_as(bypassing));
    const TenantEntry entry{TenantId("acme"), {}};
    for (Database* const database : {&superuser_, &bypass}) {
        EXPECT_THROW(append_on(*database, of("acme"), {}), SetupError);
        EXPECT_THROW(
            static_cast<void>(database->transact(
                {}, [&](Transaction& transaction) { return log_.append_all(transaction, std::span(&entry, 1)); })),
            SetupError);
    }
    EXPECT_EQ(everything(), "");
    append("acme");
    EXPECT_THROW(append_on(superuser_, of("acme"), {}), SetupError);
    Database with_role(DatabaseOptions{.connection = server_.connection(), .role = "rowlock_app"});
    EXPECT_EQ(said(append_on(with_role, of("acme"), {})), "appended 2");
    expect_gapless("acme", 2);
}

}  // namespace
}  // namespace rowlock
