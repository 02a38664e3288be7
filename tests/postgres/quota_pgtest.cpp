// Quotas: never more reserved than the cap, whoever reserves and however it ends.
#include "rowlock/quota.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <limits>
#include <random>
#include <thread>

#include "rowlock/database.hpp"
#include "rowlock/schema.hpp"
#include "support/environment.hpp"
#include "support/test_database.hpp"

namespace rowlock {
namespace {

using namespace std::chrono_literals;

TransactionPolicy of(const std::string& tenant) {
    return {.tenant = TenantId(tenant), .lock_wait_max = 60s, .deadline = 300s};
}

constexpr Statement insert_seat{"test.insert", "INSERT INTO seat (tenant_id, amount, status) VALUES ($1, $2, $3)"};
constexpr Statement count_seats{"test.count", "SELECT count(*) FROM seat WHERE tenant_id = $1"};

class Quotas : public testing::Test {
  protected:
    void SetUp() override {
        database_.transact({.lock_wait_max = 60s}, install_schema);
        server_.execute(
            "CREATE TABLE seat (id bigserial PRIMARY KEY, tenant_id text, amount bigint, status text);"
            "GRANT SELECT, INSERT, UPDATE, DELETE ON seat TO rowlock_app; GRANT USAGE ON seat_id_seq TO rowlock_app");
    }
    template <class Body>
    auto as(const std::string& tenant, Body&& body) {
        return app_.transact(of(tenant), body);
    }
    void set_cap(std::int64_t cap) {
        as("acme", [&](Transaction& t) { seats_.set_cap(t, cap); });
    }
    bool reserve(std::int64_t amount = 1, const std::string& tenant = "acme") {
        return as(tenant, [&](Transaction& t) { return std::holds_alternative<Reserved>(seats_.reserve(t, amount)); });
    }
    std::int64_t used() {
        return as("acme", [&](Transaction& t) { return seats_.look(t)->used; });
    }
    [[nodiscard]] std::string value(const std::string& sql) const { return server_.value(sql); }

    test::TestDatabase server_;
    Database database_{server_.connection()};
    Database app_{{.connection = server_.connection(), .role = "rowlock_app", .connections_max = 20}};
    const Quota seats_{"seats"};
};

TEST_F(Quotas, AreReservedUpToTheCapAndReleased) {
    set_cap(3);
    EXPECT_TRUE(reserve(2));
    as("acme", [&](Transaction& t) {
        const auto refused = seats_.reserve(t, 2);
        const auto* const full = std::get_if<Full>(&refused);
        ASSERT_NE(full, nullptr);
        EXPECT_EQ(full->now.used, 2);
        EXPECT_EQ(full->now.cap, 3);
        EXPECT_EQ(std::get<Reserved>(seats_.reserve(t)).now.used, 3);
        EXPECT_EQ(std::get<NotThatMuch>(seats_.release(t, 4)).now.used, 3);
        EXPECT_EQ(std::get<Released>(seats_.release(t, 3)).now.used, 0);
    });
}

TEST_F(Quotas, ThatDoNotExistAreAnAnswer) {
    as("acme", [&](Transaction& t) {
        EXPECT_TRUE(std::holds_alternative<NoQuota>(seats_.reserve(t)));
        EXPECT_TRUE(std::holds_alternative<NoQuota>(seats_.release(t)));
        EXPECT_TRUE(
            std::holds_alternative<NoQuota>(seats_.recount(t, {.table = "seat", .tenant_column = "tenant_id"})));
        EXPECT_FALSE(seats_.look(t));
    });
}

TEST_F(Quotas, AreGivenBackByARollbackAndByASavepoint) {
    set_cap(1);
    struct GiveUp {};
    EXPECT_THROW(as("acme",
                    [&](Transaction& t) {
                        static_cast<void>(seats_.reserve(t));
                        throw GiveUp();
                    }),
                 GiveUp);
    as("acme", [&](Transaction& t) {
        EXPECT_THROW(t.savepoint([&] {
            static_cast<void>(seats_.reserve(t));
            throw GiveUp();
        }),
                     GiveUp);
        EXPECT_EQ(seats_.look(t)->used, 0);
    });
    EXPECT_TRUE(reserve());
}

TEST_F(Quotas, MayHaveTheirCapLoweredBelowWhatIsUsed) {
    set_cap(5);
    ASSERT_TRUE(reserve(4));
    set_cap(2);
    EXPECT_EQ(used(), 4);
    EXPECT_FALSE(reserve());
    as("acme", [&](Transaction& t) { static_cast<void>(seats_.release(t, 3)); });
    EXPECT_TRUE(reserve());
    EXPECT_FALSE(reserve());
}

TEST_F(Quotas, OfAnotherTenantAreNeitherSeenNorWaitedFor) {
    set_cap(1);
    as("acme", [&](Transaction& t) {
        ASSERT_TRUE(std::holds_alternative<Reserved>(seats_.reserve(t)));
        Database other({.connection = server_.connection(), .role = "rowlock_app"});
        other.transact(of("globex"), [&](Transaction& another) {
            EXPECT_TRUE(std::holds_alternative<NoQuota>(seats_.reserve(another)));
            seats_.set_cap(another, 1);
            EXPECT_TRUE(std::holds_alternative<Reserved>(seats_.reserve(another)));
            EXPECT_EQ(Quota::list(another).size(), 1U);
        });
    });
}

TEST_F(Quotas, RefuseWhatCantBe) {
    set_cap(3);
    for (const std::int64_t amount : {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}) {
        EXPECT_THROW(reserve(amount), InvalidInput);
    }
    EXPECT_FALSE(reserve(std::numeric_limits<std::int64_t>::max())) << "no overflow";
    EXPECT_THROW(set_cap(-1), InvalidInput);
    EXPECT_THROW(app_.transact({}, [&](Transaction& t) { static_cast<void>(seats_.reserve(t)); }), InvalidInput);
    EXPECT_THROW(Quota(""), InvalidInput);
    EXPECT_THROW(Quota(std::string(201, 'x')), InvalidInput);
    EXPECT_THROW(AdvisoryRule("\xff"), InvalidInput);
}

TEST_F(Quotas, AreRecountedAndDriftIsSaid) {
    set_cap(10);
    server_.execute(
        "INSERT INTO seat (tenant_id, amount, status) VALUES ('acme', 2, 'confirmed'), ('acme', 3, 'candidate'),"
        " ('acme', NULL, 'confirmed'), ('acme', 4, 'rejected'), ('globex', 5, 'confirmed')");
    const auto recount = [&](const CountedTable& table) {
        return as("acme", [&](Transaction& t) { return std::get<Recount>(seats_.recount(t, table)); });
    };
    const CountedTable rows{.table = "seat", .tenant_column = "tenant_id"};
    const Recount counted = recount(rows);
    EXPECT_TRUE(counted.repaired());
    EXPECT_EQ(counted.before.used, 0);
    EXPECT_EQ(counted.now.used, 4);
    EXPECT_EQ(used(), 4);
    EXPECT_FALSE(recount(rows).repaired());
    const Recount summed = recount({.table = "seat",
                                    .tenant_column = "tenant_id",
                                    .amount_column = "amount",
                                    .status_column = "status",
                                    .statuses = {"confirmed", "candidate"}});
    EXPECT_EQ(summed.now.used, 5);
    TransactionPolicy policy = of("acme");
    policy.isolation = IsolationLevel::serializable;
    EXPECT_THROW(app_.transact(policy, [&](Transaction& t) { static_cast<void>(seats_.recount(t, rows)); }),
                 InvalidInput);
}

/// A row is counted or reserved after the count, never both or neither.
TEST_F(Quotas, AreRecountedRightWhileWritersReserve) {
    set_cap(1'000'000);
    std::atomic<bool> stop = false;
    std::vector<std::thread> writers;
    for (int i = 0; i < 4; ++i) {
        writers.emplace_back([&] {
            while (!stop) {
                as("acme", [&](Transaction& t) {
                    static_cast<void>(seats_.reserve(t));
                    t.execute(insert_seat, {"acme", 1, "confirmed"});
                });
            }
        });
    }
    for (int i = 0; i < 30; ++i) {
        const auto outcome = as("acme", [&](Transaction& t) {
            return std::get<Recount>(seats_.recount(t, {.table = "seat", .tenant_column = "tenant_id"}));
        });
        EXPECT_FALSE(outcome.repaired()) << outcome.before.used << " " << outcome.now.used;
    }
    stop = true;
    for (std::thread& writer : writers) writer.join();
    EXPECT_EQ(std::to_string(used()), value("SELECT count(*) FROM seat"));
}

/// The naive form: count, then insert. Both count before either has inserted.
TEST_F(Quotas, OfTheTwinThatCountsAndInsertsAreExceeded) {
    std::barrier both_have_counted(2);
    const auto join = [&] {
        as("acme", [&](Transaction& t) {
            const bool fits = t.execute(count_seats, {"acme"}).only().integer(0) < 1;
            both_have_counted.arrive_and_wait();
            if (fits) t.execute(insert_seat, {"acme", 1, "confirmed"});
        });
    };
    std::thread other(join);
    join();
    other.join();
    EXPECT_EQ(value("SELECT count(*) FROM seat"), "2");
}

/// Sixteen writers, 10,000 operations, and somebody who ends their sessions at random.
class QuotaCrowd : public Quotas {
  protected:
    static constexpr int writers = 16;
    static constexpr int cap = 25;

    /// Runs `operation` until all operations are done, one that was killed among them: where they are few and the
    /// machine is fast, the kills meet idle sessions alone. Bounded all the same.
    void run(const std::function<void(Transaction&, std::minstd_rand&)>& operation, const TransactionPolicy& policy) {
        const int operations = test::full_or(10'000, 1'000);
        std::atomic<int> begun = 0;
        std::atomic<int> killed = 0;
        const auto goes_on = [&](int number) {
            return number < operations || (killed == 0 && number < 100 * operations);
        };
        std::vector<std::thread> crowd;
        for (unsigned i = 0; i < writers; ++i) {
            crowd.emplace_back([&, i] {
                std::minstd_rand dice(i + 1);
                while (goes_on(begun++)) {
                    try {
                        app_.transact(policy, [&](Transaction& t) { operation(t, dice); });
                    } catch (const ConnectionError&) {
                        ++killed;
                    } catch (const CommitOutcomeUnknown&) {
                        ++killed;
                    } catch (const ServerError& error) {
                        if (error.sqlstate() != "40001") ADD_FAILURE() << error.what();
                    }
                }
            });
        }
        while (goes_on(begun)) {
            server_.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                " AND pid <> pg_backend_pid() AND application_name = 'rowlock' ORDER BY random() LIMIT 1");
            std::this_thread::sleep_for(20ms);
        }
        for (std::thread& writer : crowd) writer.join();
        EXPECT_GT(killed, 0);
    }
    static TransactionPolicy once() {
        TransactionPolicy policy = of("acme");
        policy.attempts_max = 1;
        return policy;
    }
    [[nodiscard]] std::string too_many() const {
        return value("SELECT count(*) FROM (SELECT FROM seat GROUP BY tenant_id HAVING count(*) > " +
                     std::to_string(cap) + ") AS over");
    }
};

constexpr Statement delete_seat{
    "test.delete",
    "DELETE FROM seat WHERE id = (SELECT id FROM seat WHERE tenant_id = $1 ORDER BY random()"
    " LIMIT 1 FOR UPDATE SKIP LOCKED)"};

TEST_F(QuotaCrowd, NeverHasMoreRowsThanTheRowSaysNorMoreThanTheCap) {
    set_cap(cap);
    run(
        [&](Transaction& t, std::minstd_rand& dice) {
            if (dice() % 2 == 0) {
                if (!std::holds_alternative<Reserved>(seats_.reserve(t))) return;
                t.execute(insert_seat, {"acme", 1, "confirmed"});
            } else if (t.execute(delete_seat, {"acme"}).affected() == 1) {
                EXPECT_TRUE(std::holds_alternative<Released>(seats_.release(t)));
            }
        },
        once());
    EXPECT_EQ(too_many(), "0");
    EXPECT_EQ(value("SELECT count(*) FROM rowlock.quota WHERE used <> (SELECT count(*) FROM seat) OR used > cap"), "0");
}

TEST_F(QuotaCrowd, NeverHasMoreRowsThanTheCapUnderAnAdvisoryRule) {
    const AdvisoryRule rule("seats per tenant");
    run(
        [&](Transaction& t, std::minstd_rand& dice) {
            if (dice() % 2 == 0) {
                t.execute(delete_seat, {"acme"});
                return;
            }
            rule.hold(t, "seats");
            if (t.execute(count_seats, {"acme"}).only().integer(0) < cap)
                t.execute(insert_seat, {"acme", 1, "confirmed"});
        },
        once());
    EXPECT_EQ(too_many(), "0");
}

TEST_F(QuotaCrowd, NeverHasMoreRowsThanTheCapAtSerializable) {
    TransactionPolicy policy = of("acme");
    policy.isolation = IsolationLevel::serializable;
    run(
        [&](Transaction& t, std::minstd_rand& dice) {
            if (dice() % 2 == 0) {
                t.execute(delete_seat, {"acme"});
            } else if (t.execute(count_seats, {"acme"}).only().integer(0) < cap) {
                t.execute(insert_seat, {"acme", 1, "confirmed"});
            }
        },
        policy);
    EXPECT_EQ(too_many(), "0");
}

TEST_F(Quotas, UnderAnAdvisoryRuleWaitForTheSameKeyAndNoOther) {
    const AdvisoryRule rule("seats per organization");
    Database other({.connection = server_.connection(), .role = "rowlock_app"});
    const auto is_busy = [&](const AdvisoryRule& another, const std::string& key) {
        TransactionPolicy policy = of("acme");
        policy.lock_wait_max = 50ms;
        return std::holds_alternative<Busy>(other.try_transact(policy, [&](Transaction& t) { another.hold(t, key); }));
    };
    as("acme", [&](Transaction& t) {
        rule.hold(t, "7");
        EXPECT_TRUE(is_busy(rule, "7"));
        EXPECT_FALSE(is_busy(rule, "8"));
        EXPECT_FALSE(is_busy(AdvisoryRule("another rule"), "7"));
        EXPECT_EQ(t.execute({"test.key",
                             "SELECT classid::int8 || ' ' || (objid::int8 = (rowlock.advisory_key(concat_ws(chr(31),"
                             " 'acme', 'seats per organization', '7'))::bit(32)::int8)) || ' ' || objsubid"
                             " FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"})
                      .only()
                      .text(0),
                  "1919709557 true 2")
            << "a two-part key, and the documented hash";
    });
    EXPECT_FALSE(is_busy(rule, "7"));
    EXPECT_THROW(
        app_.transact({.isolation = IsolationLevel::repeatable_read}, [&](Transaction& t) { rule.hold(t, "7"); }),
        InvalidInput);
}

TEST_F(Quotas, FromSqlAreTheSame) {
    set_cap(2);
    const auto call = [&](const std::string& sql) {
        return as("acme", [&](Transaction& t) {
            return t.execute({"test.call", sql}).only().optional_text(0).value_or("NULL");
        });
    };
    EXPECT_EQ(call("SELECT rowlock.reserve('acme', 'seats', 2)"), "t");
    EXPECT_FALSE(reserve());
    EXPECT_EQ(call("SELECT rowlock.reserve('acme', 'seats')"), "f");
    EXPECT_EQ(call("SELECT rowlock.release('acme', 'seats', 3)"), "f");
    EXPECT_EQ(call("SELECT rowlock.release('acme', 'seats')"), "t");
    EXPECT_EQ(used(), 1);
    for (const auto& [sql, sqlstate] :
         std::vector<std::pair<std::string, std::string>>{{"SELECT rowlock.reserve('acme', 'desks')", "RL005"},
                                                          {"SELECT rowlock.reserve('acme', 'seats', 0)", "22023"},
                                                          {"SELECT rowlock.reserve('acme', 'seats', NULL)", "22023"},
                                                          {"SELECT rowlock.reserve('globex', 'seats')", "42501"}}) {
        try {
            call(sql);
            ADD_FAILURE() << sql;
        } catch (const ServerError& error) {
            EXPECT_EQ(error.sqlstate(), sqlstate) << sql;
        }
    }
}

}  // namespace
}  // namespace rowlock
