// Random scenarios on a real server: the reduction leaves no outcome out, in any order of the sessions.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "race/reduction_comparison.hpp"
#include "race/throwaway_cluster.hpp"

namespace rowlock::race::test {
namespace {

/// So many by default; ROWLOCK_RANDOM_SCENARIOS asks for more.
constexpr int scenarios_default = 12;

constexpr std::string_view setup = R"(
setup {
    CREATE TABLE one(id int PRIMARY KEY, n int NOT NULL, tag text UNIQUE);
    CREATE TABLE two(id int PRIMARY KEY, one int REFERENCES one ON DELETE CASCADE, n int NOT NULL);
    CREATE TABLE log(what text);
    INSERT INTO one VALUES (1, 10, 'a'), (2, 20, 'b');
    INSERT INTO two VALUES (1, 1, 1), (2, 2, 2);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO log SELECT 'two ' || count(*) FROM one; RETURN NULL; END $$;
    CREATE TRIGGER note AFTER INSERT ON two FOR EACH ROW EXECUTE FUNCTION note();
}
)";

class ScenarioWriter {
  public:
    explicit ScenarioWriter(unsigned seed) : dice_(seed) {}

    std::string write() {
        std::string text(setup);
        const int sessions = pick(4) == 0 ? 3 : 2;
        for (int s = 0; s < sessions; ++s) text += session(s, sessions == 3 ? 2 : 3);
        return text;
    }

  private:
    int pick(int below) { return static_cast<int>(dice_() % static_cast<unsigned>(below)); }

    std::string statement(int session) {
        const int id = 1 + pick(3);
        switch (pick(16)) {
            case 0:
                return "SELECT n FROM one ORDER BY id";
            case 1:
                return fmt::format("SELECT n FROM one WHERE id = {} FOR UPDATE", id);
            case 2:
                return fmt::format("SELECT n FROM one WHERE id = {} FOR SHARE", id);
            case 3:
                return fmt::format("UPDATE one SET n = n + {} WHERE id = {}", session + 1, id);
            case 4:
                return fmt::format("UPDATE one SET n = n * 2 WHERE n > {}", 5 * pick(5));
            case 5:
                return fmt::format("INSERT INTO one VALUES ({}, {}, 't{}')", 3 + pick(2), session, pick(2));
            case 6:
                return fmt::format("INSERT INTO two VALUES ({}, {}, {})", 3 + pick(2), 1 + pick(2), session);
            case 7:
                return fmt::format("DELETE FROM one WHERE id = {}", id);
            case 8:
                return fmt::format("UPDATE two SET n = (SELECT count(*) FROM one) WHERE id = {}", id);
            case 9:
                return fmt::format("INSERT INTO log SELECT 's{} ' || sum(n) FROM two", session);
            case 10:
                return fmt::format("INSERT INTO one VALUES ({}, 0, NULL) ON CONFLICT DO NOTHING", id);
            case 11:
                return fmt::format("UPDATE one SET id = {} WHERE id = {}", 5 + session, id);
            case 12:
                return "SELECT count(*) FROM log";
            case 13:
                return fmt::format("SELECT pg_advisory_xact_lock({})", pick(2));
            case 14:
                return "LOCK TABLE two IN SHARE MODE";
            default:
                return fmt::format("SELECT n FROM one WHERE id = {} FOR NO KEY UPDATE NOWAIT", id);
        }
    }

    std::string begin() {
        switch (pick(6)) {
            case 0:
                return "BEGIN ISOLATION LEVEL REPEATABLE READ";
            case 1:
                return "BEGIN ISOLATION LEVEL SERIALIZABLE";
            default:
                return "BEGIN";
        }
    }

    std::string session(int number, int most) {
        std::string text = fmt::format("session s{}\n  on_error {}\n", number, pick(2) == 0 ? "stop" : "ignore");
        int step = 0;
        const auto add = [&](const std::string& sql) { text += fmt::format("  step p{} {{ {} }}\n", step++, sql); };
        if (pick(4) == 0) {
            for (int i = 0; i < most; ++i) add(statement(number));
            return text;
        }
        add(begin());
        const int statements = 1 + pick(most);
        const bool savepoint = pick(5) == 0;
        for (int i = 0; i < statements; ++i) {
            if (savepoint && i == 0) add("SAVEPOINT s");
            add(statement(number));
            if (savepoint && i == 0) add("ROLLBACK TO s");
        }
        add(pick(5) == 0 ? "ROLLBACK" : "COMMIT");
        return text;
    }

    std::mt19937 dice_;
};

TEST(RandomScenarios, LoseNoOutcomeToTheReduction) {
    const char* const wanted = std::getenv("ROWLOCK_RANDOM_SCENARIOS");  // NOLINT(concurrency-mt-unsafe)
    const char* const from = std::getenv("ROWLOCK_RANDOM_FROM");         // NOLINT(concurrency-mt-unsafe)
    const int count = wanted == nullptr ? scenarios_default : std::atoi(wanted);
    const int first = from == nullptr ? 0 : std::atoi(from);
    const ThrowawayCluster cluster;
    std::size_t all = 0;
    std::size_t reduced = 0;
    int whole = 0;
    for (int seed = first; seed < first + count; ++seed) {
        const std::string text = ScenarioWriter(static_cast<unsigned>(seed)).write();
        ComparisonOptions options;
        options.executions_max = 400;
        options.all_orders = seed % 4 == 0;
        const Comparison comparison =
            compare_reduction(parse_scenario(text, fmt::format("seed {}", seed)), cluster.connection(), options);
        EXPECT_EQ(comparison.difference, "") << "seed " << seed << text;
        if (!comparison.whole) continue;
        ++whole;
        all += comparison.all;
        reduced += comparison.reduced;
    }
    fmt::print("{} of {} scenarios compared whole: {} executions, {} with reduction\n", whole, count, all, reduced);
}

}  // namespace
}  // namespace rowlock::race::test
