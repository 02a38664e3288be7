// A crowd that does everything at once while sessions are killed: the invariant, and every count that was told.
#include <atomic>
#include <mutex>
#include <random>
#include <set>

#include "postgres/lifecycle_fixture.hpp"

namespace rowlock {
namespace {

class LifecycleInACrowd : public LifecycleTest {
  protected:
    static constexpr int writers = 16;
    static constexpr int operations = 10000;
    static constexpr int parents = 12;
    static constexpr int kills_min = 10;

    LifecycleInACrowd() {
        // The audit of rows: every change, with the transaction that made it.
        server_.execute(R"sql(
            DELETE FROM claim; DELETE FROM document;
            INSERT INTO document SELECT n FROM generate_series(1, 12) AS n;
            INSERT INTO claim (document_id) SELECT n % 12 + 1 FROM generate_series(1, 100) AS n;
            CREATE TABLE history (claim_id int, was text, became text, transaction_id xid8);
            CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN
                    INSERT INTO history VALUES (OLD.id, OLD.status, NEW.status, pg_current_xact_id());
                    RETURN NULL;
                END $$;
            CREATE TRIGGER keep AFTER UPDATE ON claim FOR EACH ROW EXECUTE FUNCTION keep();
            CREATE TABLE told (transaction_id xid8, earlier text, count int))sql");
        claims_max_ = std::stoi(value("SELECT max(id) FROM claim"));
    }

    void retire_and_tell(Transaction& transaction, int parent) {
        const RetireOutcome outcome = documents().retire(transaction, parent);
        const auto* const cascade = std::get_if<Cascade>(&outcome);
        if (cascade == nullptr) return;
        for (const auto& [earlier, count] : cascade->earlier_counts) {
            transaction.execute({"test.tell", "INSERT INTO told VALUES (pg_current_xact_id(), $1, $2)"},
                                {earlier, count});
        }
    }
    void operate(Transaction& transaction, std::minstd_rand& dice) {
        const int parent = static_cast<int>(dice() % parents) + 1;
        const int claim = static_cast<int>(dice() % static_cast<unsigned>(claims_max_)) + 1;
        switch (dice() % 8) {
            case 0:
                return retire_and_tell(transaction, parent);
            case 1:
                static_cast<void>(documents().revive(transaction, parent));
                return;
            case 2:
                static_cast<void>(documents().move(transaction, claim, parent, static_cast<int>(dice() % parents) + 1));
                return;
            case 3:
                transaction.execute({"test.withdraw",
                                     "UPDATE claim SET status = 'withdrawn' WHERE id = $1"
                                     " AND status IN ('candidate', 'confirmed')",
                                     true},
                                    {claim});
                return;
            case 4:
                under(transaction, parent, [&](const OpenParent& open) { documents().add_child(open, {}); });
                return;
            default:
                under(transaction, parent,
                      [&](const OpenParent& open) { static_cast<void>(documents().confirm(open, claim)); });
        }
    }
    /// On a busy machine few were killed by then; it ends all the same.
    bool goes_on() const { return begun_ < operations || (kills_ <= kills_min && begun_ < 10 * operations); }
    void write(Database& database, unsigned seed) {
        std::minstd_rand dice(seed);
        while (goes_on()) {
            ++begun_;
            try {
                database.transact({.lock_wait_max = 20s, .attempts_max = 20},
                                  [&](Transaction& transaction) { operate(transaction, dice); });
                ++done_;
            } catch (const CommitOutcomeUnknown&) {
                ++in_doubt_;
            } catch (const Error& fault) {
                const std::lock_guard guard(mutex_);
                faults_.insert(fault.what());
            }
        }
    }

    int claims_max_ = 0;
    std::atomic<int> begun_ = 0;
    std::atomic<int> kills_ = 0;
    std::atomic<int> done_ = 0;
    std::atomic<int> in_doubt_ = 0;
    std::mutex mutex_;
    std::set<std::string> faults_;
};

TEST_F(LifecycleInACrowd, KeepsTheInvariantAndEveryCountThatWasToldThroughTenThousandOperationsAndKills) {
    static_cast<void>(documents());
    Database crowd_database(
        DatabaseOptions{.connection = server_.connection(), .application_name = "crowd", .connections_max = writers});
    {
        std::vector<std::jthread> crowd;
        for (unsigned i = 0; i < writers; ++i) crowd.emplace_back([&, i] { write(crowd_database, i + 1); });
        while (goes_on()) {
            std::this_thread::sleep_for(5ms);
            kills_ +=
                std::stoi("0" + value("SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity"
                                      " WHERE datname = current_database() AND application_name = 'crowd'"
                                      " ORDER BY random() LIMIT 1) AS one"));
            EXPECT_EQ(violations(), "0");
        }
    }
    std::printf("%d operations committed, %d kills, %d commits in doubt\n", done_.load(), kills_.load(),
                in_doubt_.load());
    EXPECT_THAT(faults_, testing::IsEmpty());
    EXPECT_GT(kills_, kills_min);
    EXPECT_GT(done_, operations * 9 / 10);
    EXPECT_EQ(violations(), "0");
    EXPECT_EQ(
        value(
            "SELECT count(*) FROM (SELECT transaction_id, was, count(*) FROM history WHERE became = 'rejected'"
            "  AND was <> became GROUP BY 1, 2 EXCEPT ALL SELECT transaction_id, earlier, count FROM told) AS missing"),
        "0");
    EXPECT_EQ(
        value("SELECT count(*) FROM (SELECT transaction_id, earlier, count FROM told EXCEPT ALL"
              "  SELECT transaction_id, was, count(*)::int FROM history WHERE became = 'rejected' AND was <> became"
              "  GROUP BY 1, 2)"
              " AS made_up"),
        "0");
    EXPECT_GT(std::stoi(value("SELECT count(*) FROM told")), 100);
}

}  // namespace
}  // namespace rowlock
