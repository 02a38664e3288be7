#include "race/invented_values.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "race/generated_race.hpp"
#include "race/report_text.hpp"

namespace rowlock::race::test {
namespace {

/// line.order_no refers to orders.no, and both numbers are made up.
const TableShapes& order_shapes() {
    static const TableShapes shapes{
        {"public.line", {{true, true, false}, {{{1}, "public.orders", {0}}}, {}}},
        {"public.orders", {{true, false}, {}, {}}},
    };
    return shapes;
}

std::string told(const std::string& lines, const std::string& orders) {
    return without_invented_values("public.line:\n" + lines + "\npublic.orders:\n" + orders + "\n", order_shapes());
}

TEST(InventedValues, AreLeftOutAndWhatRefersToThemGoesWithItsRow) {
    const std::string state = told("(1,1,nut)\n(2,2,bolt)", "(1,ann)\n(2,bob)");
    EXPECT_EQ(told("(8,7,nut)\n(9,6,bolt)", "(6,bob)\n(7,ann)"), state);
    EXPECT_NE(told("(8,6,nut)\n(9,7,bolt)", "(6,bob)\n(7,ann)"), state) << "each has the other's line";
    EXPECT_NE(told("(8,7,nut)\n(9,7,bolt)", "(6,bob)\n(7,ann)"), state);
    EXPECT_NE(told("(8,7,nut)", "(6,bob)\n(7,ann)"), state);
    EXPECT_NE(told("(8,7,nut)\n(9,,bolt)", "(6,bob)\n(7,ann)"), state) << "no order at all is no made-up value";
}

TEST(InventedValues, TellRowsThatAreAlikeApartByWhatRefersToThem) {
    const std::string both_on_one = told("(1,1,nut)\n(2,1,bolt)", "(1,ann)\n(2,ann)");
    EXPECT_EQ(told("(1,2,nut)\n(2,2,bolt)", "(1,ann)\n(2,ann)"), both_on_one);
    EXPECT_NE(told("(1,1,nut)\n(2,2,bolt)", "(1,ann)\n(2,ann)"), both_on_one);
}

TEST(InventedValues, AreFoundBehindCommasQuotesAndLineEnds) {
    const std::string state = told(R"((1,1,"a, ""b"")
\\(c"))",
                                   "(1,ann)");
    EXPECT_EQ(told(R"((5,4,"a, ""b"")
\\(c"))",
                   "(4,ann)"),
              state);
    EXPECT_NE(told(R"((5,4,"a, ""b"")
\\(d"))",
                   "(4,ann)"),
              state);
}

class OracleWithInventedValues : public testing::Test, protected RaceRunner {
  protected:
    static constexpr const char* setup = R"(
        setup {
            CREATE TABLE stock (id int PRIMARY KEY, n int NOT NULL);
            INSERT INTO stock VALUES (1, 10);
            CREATE TABLE sale (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int,
                               at timestamptz NOT NULL DEFAULT now(), tag uuid DEFAULT gen_random_uuid());
            CREATE TABLE part (sale_id bigint REFERENCES sale, what text);
            CREATE TABLE note (text text);
        }
    )";
};

TEST_F(OracleWithInventedValues, TakesNoSerialOrderForAnother) {
    const CheckResult result = check_text(std::string(setup) + R"(
        session seller * 2
          step begin { BEGIN }
          step sell { INSERT INTO sale (n) VALUES (1) RETURNING id \gset }
          step part { INSERT INTO part VALUES (:id, 'whole') }
          step take { UPDATE stock SET n = n - 1 WHERE id = 1 }
          step commit { COMMIT }
    )");
    EXPECT_EQ(result.oracle, "session");
    EXPECT_EQ(result.broken, 0U);
    EXPECT_EQ(result.exit_code(), 0);
}

TEST_F(OracleWithInventedValues, StillSeesALostUpdate) {
    const CheckResult result = check_text(std::string(setup) + R"(
        session seller * 2
          step begin { BEGIN }
          step sell { INSERT INTO sale (n) VALUES (1) }
          step read { SELECT n - 1 AS n FROM stock WHERE id = 1 \gset }
          step take { UPDATE stock SET n = :n WHERE id = 1 }
          step commit { COMMIT }
    )");
    EXPECT_EQ(result.oracle, "session");
    EXPECT_GT(result.broken, 0U);
    EXPECT_EQ(result.exit_code(), 1);
}

TEST_F(OracleWithInventedValues, IsOffWhereTheyReachOtherColumns) {
    const CheckResult result = check_text(std::string(setup) + R"(
        session seller * 2
          step sell { INSERT INTO sale (n) VALUES (1) RETURNING id \gset }
          step write { INSERT INTO note VALUES ('sale ' || :id) }
    )");
    EXPECT_EQ(result.oracle, "off: what the server makes up by a default ends up in other columns, too");
}

TEST_F(OracleWithInventedValues, IsOffWhereOnlyAnotherSerialOrderTakesThemThere) {
    const CheckResult result = check_text(std::string(setup) + R"(
        session a
          step sell { INSERT INTO sale (n) VALUES (1) }
          step copy { INSERT INTO note SELECT id::text FROM sale WHERE n = 2 }
        session b
          step sell { INSERT INTO sale (n) VALUES (2) }
    )");
    EXPECT_EQ(result.oracle, "off: what the server makes up by a default ends up in other columns, too");
}

TEST_F(OracleWithInventedValues, IsOffWhereStepsWriteThatColumnThemselves) {
    const std::string off = "off: values for at come from its default and from the steps, too";
    for (const char* const write :
         {"UPDATE sale SET at = at + interval '1 day'", "INSERT INTO sale (n, at) SELECT 1, '2026-01-01'"}) {
        const std::string text = std::string(setup) + "session s * 2 step a { " + write + " }";
        const CheckResult result = check_text(text);
        EXPECT_EQ(result.oracle, off);
        EXPECT_EQ(verdict_word(parse_scenario(text, "f.race"), result),
                  "no deadlock, nobody stuck; nothing else was checked");
    }
}

TEST_F(OracleWithInventedValues, ComparesWhatTheSetupMadeByItsRealKeys) {
    const CheckResult result = check_text(std::string(setup) + R"(
        setup { INSERT INTO sale (n) VALUES (7), (7); INSERT INTO part VALUES (1, 'cursor'); }
        session toggler * 2
          step read { SELECT 3 - sale_id AS other FROM part \gset }
          step write { UPDATE part SET sale_id = :other }
    )");
    EXPECT_EQ(result.oracle, "session");
    EXPECT_EQ(result.exit_code(), 1) << "two toggles in turn come back to the first sale";
}

TEST_F(OracleWithInventedValues, IsOffWhereAStepDrawsThemItself) {
    const CheckResult result = check_text(std::string(setup) + R"(
        session seller * 2
          step sell { INSERT INTO sale (n, at) VALUES (1, clock_timestamp()) }
    )");
    EXPECT_EQ(result.oracle, "off: a step reads the clock or an id of the server's");
}

}  // namespace
}  // namespace rowlock::race::test
