// The lifecycle's own statements in every distinct interleaving: clean as they are, broken without any one of their
// locks.
#include <gtest/gtest.h>

#include <algorithm>

#include "race/checker.hpp"
#include "race/conductor.hpp"
#include "race/lifecycle_races.hpp"
#include "race/scenario.hpp"
#include "race/serial_oracle.hpp"
#include "race/throwaway_cluster.hpp"

namespace rowlock::race::test {
namespace {

class OfTheLifecycle : public testing::Test {
  protected:
    CheckResult check_race(const LifecycleRace& race, bool stop_at_first = false) {
        const Scenario scenario = parse_scenario(race.text, race.name);
        const OwnDatabase database(cluster_.connection(), "rowlock_lifecycle");
        ConductorOptions options;
        options.connection = database.connection();
        if (!scenario.isolations.empty()) options.isolation = scenario.isolations.front();
        Conductor conductor(scenario, options);
        CheckOptions check_options;
        check_options.time_max = std::chrono::minutes(5);
        check_options.stop_at_first = stop_at_first;
        // What a retirement reports of a child is not in every serial order: the invariants say what must hold.
        return check(scenario, conductor, "the invariants say all", check_options);
    }

    ThrowawayCluster cluster_;
    LifecycleRaces races_;
};

TEST_F(OfTheLifecycle, NoInterleavingBreaksAPromise) {
    std::size_t executions = 0;
    for (const bool with_gate : {false, true}) {
        for (const LifecycleRace& race : races_.all(with_gate)) {
            const CheckResult result = check_race(race);
            EXPECT_EQ(result.exit_code(), 0) << race.name << "\n" << race.text;
            EXPECT_TRUE(result.summary.exhausted) << race.name;
            for (const Finding& finding : result.findings) ADD_FAILURE() << race.name << ": " << finding.title;
            executions += result.summary.executions;
        }
    }
    std::printf("%zu executions\n", executions);
}

TEST_F(OfTheLifecycle, TheNaiveFormsAreCaught) {
    for (const LifecycleRace& twin : races_.twins()) {
        EXPECT_EQ(check_race(twin, true).exit_code(), 1) << twin.name << "\n" << twin.text;
    }
}

TEST_F(OfTheLifecycle, TheRuleInTheDatabaseHoldsForClientsThatKnowNothingOfIt) {
    for (const LifecycleRule rule : {LifecycleRule::trigger, LifecycleRule::declarative}) {
        for (const LifecycleRace& race : races_.before_rule(lifecycle_rule_sql(races_.description(), rule))) {
            const CheckResult result = check_race(race);
            EXPECT_EQ(result.exit_code(), 0) << race.name << "\n" << race.text;
            EXPECT_TRUE(result.summary.exhausted) << race.name;
            for (const Finding& finding : result.findings) ADD_FAILURE() << race.name << ": " << finding.title;
        }
    }
    for (const LifecycleRace& race : races_.before_rule("")) {
        EXPECT_EQ(check_race(race, true).exit_code(), 1) << race.name << " needs the rule";
    }
}

TEST_F(OfTheLifecycle, NoLockOfTheTriggersCanBeTakenOutUnnoticed) {
    const std::string rule = lifecycle_rule_sql(races_.description(), LifecycleRule::trigger);
    for (const std::string lock : {"FOR SHARE;", "FOR SHARE NOWAIT;"}) {
        std::string mutated = rule;
        mutated.replace(mutated.find(lock), lock.size(), ";");
        const auto breaks = [&](const LifecycleRace& race) { return check_race(race, true).exit_code() == 1; };
        EXPECT_TRUE(std::ranges::any_of(races_.before_rule(mutated), breaks)) << "without " << lock;
    }
}

TEST_F(OfTheLifecycle, NoLockCanBeTakenOutUnnoticed) {
    const std::vector<LockClause> clauses = races_.clauses();
    EXPECT_EQ(clauses.size(), 7U) << "a lock is new, or gone";
    for (const LockClause& clause : clauses) {
        bool used = false;
        bool caught = false;
        for (LifecycleRace race : races_.all(false)) {
            bool changed = false;
            for (auto at = race.text.find(clause.statement); at != std::string::npos;
                 at = race.text.find(clause.statement, at + 1)) {
                race.text.replace(at, clause.statement.size(), clause.without());
                changed = true;
            }
            used = used || changed;
            if (!changed || caught) continue;
            caught = check_race(race, true).exit_code() == 1;
        }
        EXPECT_TRUE(used) << "no race has " << clause.statement;
        EXPECT_TRUE(caught) << "nothing breaks without \"" << clause.clause << "\" in\n" << clause.statement;
    }
}

}  // namespace
}  // namespace rowlock::race::test
