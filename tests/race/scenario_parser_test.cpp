#include <gtest/gtest.h>

#include "race/scenario.hpp"
#include "race/step_program.hpp"
#include "race/timeouts.hpp"

namespace rowlock::race::test {
namespace {

/// The message of the error that the text gives; empty where it can be read.
std::string complaint(std::string_view text) {
    try {
        (void)parse_scenario(text, "f.race");
        return {};
    } catch (const ScenarioError& wrong) {
        return wrong.what();
    }
}

constexpr std::string_view small = R"(
setup { CREATE TABLE t(id int); }
teardown { DROP TABLE t; }
session a
setup { SET search_path = public; }
step a1 { SELECT 1; }
step a2 { COMMIT; }
teardown { SELECT 2; }
session "b"
step "b 1" { SELECT '}' || $$}$$ || $x$ } $$ $x$ /* } /* } */ } */ -- }
}
permutation a1 "b 1" a2
permutation a1(*) "b 1"(a1, a2 notices 3) a2
)";

TEST(ScenarioParser, ReadsIsolationtestersGrammar) {
    const Scenario scenario = parse_scenario(small, "dir/f.race");
    EXPECT_EQ(scenario.name, "f.race");
    ASSERT_EQ(scenario.sessions.size(), 2U);
    EXPECT_EQ(scenario.sessions[0].setup, "SET search_path = public;");
    EXPECT_EQ(scenario.sessions[0].teardown, "SELECT 2;");
    EXPECT_EQ(scenario.teardown, "DROP TABLE t;");
    ASSERT_EQ(scenario.permutations.size(), 2U);
    const PermutationElement& marked = scenario.permutations[1].elements[1];
    ASSERT_EQ(marked.markers.size(), 2U);
    EXPECT_EQ(marked.markers[0].kind, Marker::Kind::step_done);
    EXPECT_EQ(marked.markers[1].notices, 3);
}

TEST(ScenarioParser, KeepsBracesInStringsNamesAndComments) {
    const Scenario scenario = parse_scenario(small, "f.race");
    EXPECT_NE(scenario.sessions[1].steps[0].sql.find("} */ -- }"), std::string::npos);
    EXPECT_EQ(complaint("session a step x { SELECT E'\\'}', \"a}\" }"), "");
}

TEST(ScenarioParser, ReadsWhatRowlockAdds) {
    const Scenario scenario = parse_scenario(R"(
        isolation "repeatable read" "serializable"
        oracle transaction
        session w * 3
          on_error retry 4
          role clerk
          step read { SELECT n FROM t \gset old_ }
          step end { \disconnect }
        invariant always "none" { SELECT 1 WHERE false }
        permutation w_1.read check w_2.read
    )",
                                             "f.race");
    EXPECT_EQ(scenario.isolations.size(), 2U);
    EXPECT_EQ(scenario.oracle, OracleUnit::transaction);
    ASSERT_EQ(scenario.sessions.size(), 3U);
    EXPECT_EQ(scenario.sessions[2].name, "w_3");
    EXPECT_EQ(scenario.sessions[2].group, scenario.sessions[0].group);
    EXPECT_EQ(scenario.sessions[0].on_error.retries, 4);
    EXPECT_EQ(scenario.sessions[0].steps[1].program[0].kind, Instruction::Kind::disconnect);
    EXPECT_TRUE(scenario.invariants[0].always);
    EXPECT_FALSE(scenario.permutations[0].elements[1].session.has_value());
}

TEST(ScenarioParser, TakesCheckInAPermutationForAStepWhereOneIsCalledSo) {
    const Scenario scenario = parse_scenario("session a step check { SELECT 1 } permutation check", "f.race");
    EXPECT_TRUE(scenario.permutations[0].elements[0].session.has_value());
}

TEST(ScenarioParser, NamesLineAndColumnAndShowsTheLine) {
    const std::string said = complaint("session a\n  step x { SELECT 1 }\npermutation x y\n");
    EXPECT_EQ(said, "f.race:3:15: there is no step y\n    permutation x y\n                  ^");
}

TEST(ScenarioParser, RefusesWhatCannotBeMeant) {
    EXPECT_NE(complaint("session a step x { SELECT 1 } step x { SELECT 2 }").find("has a step x already"),
              std::string::npos);
    EXPECT_NE(complaint("session a step x { SELECT 1 } session a step y { SELECT 2 }").find("a session a already"),
              std::string::npos);
    EXPECT_NE(complaint("session a step x { SELECT 1").find("has no '}'"), std::string::npos);
    EXPECT_NE(complaint("session a step x { SELECT 'x }").find("never closed"), std::string::npos);
    EXPECT_NE(complaint("session a").find("has no step"), std::string::npos);
    EXPECT_NE(complaint("setup { }").find("no session"), std::string::npos);
    EXPECT_NE(complaint("session a step x { SELECT :n }").find("variable n is never set"), std::string::npos);
    EXPECT_NE(complaint("session a step x { \\if :a SELECT 1 }").find("\\if has no \\endif"), std::string::npos);
    EXPECT_NE(complaint("session a step x { \\watch }").find("\\watch is unknown"), std::string::npos);
    EXPECT_NE(
        complaint("session a step s { SELECT 1 } session b step s { SELECT 1 } permutation s").find("session.step"),
        std::string::npos);
}

TEST(StepProgram, PutsVariablesInAsPsqlDoes) {
    const Variables variables{{"n", "5"}, {"who", "O'Neil"}, {"t", "my\"table"}, {"none", std::nullopt}};
    std::string unset;
    EXPECT_EQ(substitute("SELECT :n::int, :'who', :\"t\", ':n', a[1:2], :none", variables, unset),
              "SELECT 5::int, 'O''Neil', \"my\"\"table\", ':n', a[1:2], NULL");
    EXPECT_TRUE(unset.empty());
    EXPECT_EQ(substitute(":m", variables, unset), ":m");
    EXPECT_EQ(unset, "m");
}

TEST(StepProgram, BranchesAsPsqlDoes) {
    const auto program =
        parse_step_program("SELECT true AS a \\gset\n\\if :a\nSELECT 1\n\\else\nSELECT 2\n\\endif",
                           [](std::size_t, const std::string& said) { throw std::runtime_error(said); });
    ASSERT_EQ(program.size(), 6U);
    EXPECT_EQ(program[2].kind, Instruction::Kind::jump_unless);
    EXPECT_EQ(program[2].target, 5U);
    EXPECT_EQ(program[4].target, 6U);
}

TEST(Timeouts, AreKeptFromFiringByTheClock) {
    EXPECT_EQ(without_timeouts("SET LOCAL lock_timeout = '2s'"), "SET LOCAL rowlock.lock_timeout = '2s'");
    EXPECT_EQ(without_timeouts("SELECT set_config('deadlock_timeout', '1s', true)"),
              "SELECT set_config('rowlock.deadlock_timeout', '1s', true)");
}

}  // namespace
}  // namespace rowlock::race::test
