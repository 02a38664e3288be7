// What a body asks to be done after the commit: once, and only if there was one.
#include <vector>

#include "postgres/one_table.hpp"

namespace rowlock {
namespace {

using testing::ElementsAre;

constexpr Statement raise{"test.raise", "DO $$ BEGIN RAISE EXCEPTION 'as asked' USING ERRCODE = '40001'; END $$"};

class AfterCommit : public OneTable {
  protected:
    Database database_{options(1)};
    std::vector<int> effects_;
    [[nodiscard]] std::function<void()> effect(int number) {
        return [this, number] { effects_.push_back(number); };
    }
};

TEST_F(AfterCommit, EffectsRunOnceInTheOrderTheyWereAskedForWithTheRowThere) {
    database_.transact({}, [&](Transaction& transaction) {
        transaction.after_commit([&] { effects_.push_back(count()); });
        insert(transaction, 1);
        transaction.after_commit(effect(2));
        EXPECT_THAT(effects_, ElementsAre());
    });
    EXPECT_THAT(effects_, ElementsAre(1, 2));
}

TEST_F(AfterCommit, EffectsOfARunThatIsRunAgainAreDroppedWithIt) {
    for (const Statement& failure :
         {raise, Statement{"test.raise", "DO $$ BEGIN RAISE 'as asked' USING ERRCODE = '40P01'; END $$"}}) {
        effects_.clear();
        int runs = 0;
        database_.transact({.attempts_max = 5}, [&](Transaction& transaction) {
            transaction.after_commit(effect(++runs));
            if (runs < 3) transaction.execute(failure);
        });
        EXPECT_THAT(effects_, ElementsAre(3));
    }
}

TEST_F(AfterCommit, EffectsDoNotRunWhereNothingIsCommitted) {
    EXPECT_THROW(database_.transact({},
                                    [&](Transaction& transaction) {
                                        transaction.after_commit(effect(1));
                                        throw std::runtime_error("no");
                                    }),
                 std::runtime_error);
    EXPECT_THROW(database_.transact({},
                                    [&](Transaction& transaction) {
                                        transaction.execute_script({"test.deferred",
                                                                    "CREATE TABLE late (id int UNIQUE DEFERRABLE "
                                                                    "INITIALLY DEFERRED);"
                                                                    "INSERT INTO late VALUES (1), (1)"});
                                        transaction.after_commit(effect(2));
                                    }),
                 ServerError)
        << "the COMMIT itself fails";
    database_.transact({}, [&](Transaction& transaction) {
        EXPECT_THROW(transaction.savepoint([&] {
            transaction.after_commit(effect(3));
            throw std::runtime_error("no");
        }),
                     std::runtime_error);
        transaction.savepoint([&] { transaction.after_commit(effect(4)); });
    });
    EXPECT_THAT(effects_, ElementsAre(4));
}

TEST_F(AfterCommit, EffectsMayUseTheDatabaseAndTheirThrowLosesNothing) {
    EXPECT_THROW(database_.transact({},
                                    [&](Transaction& transaction) {
                                        insert(transaction, 1);
                                        transaction.after_commit([] { throw std::runtime_error("the mail is down"); });
                                        transaction.after_commit([&] {
                                            database_.transact({}, [&](Transaction& other) { insert(other, 2); });
                                        });
                                    }),
                 std::runtime_error);
    EXPECT_EQ(count(), 2);
}

TEST_F(AfterCommit, EffectsRunOnceWhereACommitInDoubtTurnsOutToHaveHappened) {
    test::CuttingProxy proxy(test::test_server().directory);
    Database through(DatabaseOptions{.connection = proxy.through(created_.connection())});
    for (const test::Cut cut : {test::Cut::after_commit, test::Cut::before_commit}) {
        effects_.clear();
        int runs = 0;
        const int id = cut == test::Cut::after_commit ? 1 : 2;
        TransactionPolicy policy{.attempts_max = 5};
        policy.was_committed = [id](Transaction& transaction) {
            return transaction.execute({"test.find", "SELECT count(*) FROM public.item WHERE id = $1"}, {id})
                       .only()
                       .integer(0) == 1;
        };
        through.transact(policy, [&](Transaction& transaction) {
            insert(transaction, id);
            transaction.after_commit(effect(++runs));
            if (runs == 1) proxy.cut_next(cut);
        });
        EXPECT_THAT(effects_, ElementsAre(runs));
        EXPECT_EQ(value("SELECT count(*) FROM public.item WHERE id = " + std::to_string(id)), "1");
    }
    EXPECT_EQ(proxy.cuts(), 2);
}

}  // namespace
}  // namespace rowlock
