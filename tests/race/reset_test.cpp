// What an execution leaves behind must not reach the next one.
#include <gtest/gtest.h>

#include "race/generated_race.hpp"

namespace rowlock::race::test {
namespace {

class Reset : public testing::Test, protected RaceRunner {};

TEST_F(Reset, RollsBackWhatWasPrepared) {
    const CheckResult result = check_text(R"(
        setup { CREATE TABLE t (v int); INSERT INTO t VALUES (0); }
        session x
          step begin { BEGIN }
          step write { UPDATE t SET v = v + 1 }
          step prepare { PREPARE TRANSACTION 'foo' }
        session y
          step write { UPDATE t SET v = v + 10 }
    )");
    EXPECT_TRUE(result.summary.exhausted);
    ASSERT_EQ(result.findings.size(), 1U);
    EXPECT_EQ(result.findings[0].symptom.title, "y waits for ever");
}

TEST_F(Reset, FiresNoTriggerThatIsAlwaysOn) {
    const CheckResult result = check_text(R"(
        setup {
            CREATE TABLE t (v int);
            CREATE TABLE audit (op text);
            CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN INSERT INTO audit VALUES (TG_OP); RETURN NULL; END $$;
            CREATE TRIGGER note AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON t
                FOR EACH STATEMENT EXECUTE FUNCTION note();
            ALTER TABLE t ENABLE ALWAYS TRIGGER note;
            INSERT INTO t VALUES (0);
        }
        session x step a { UPDATE t SET v = v + 1 }
        session y step a { UPDATE t SET v = v + 2 }
        invariant "the setup's and one a step" { SELECT count(*) FROM audit HAVING count(*) <> 3 }
    )");
    EXPECT_EQ(result.exit_code(), 0);
}

TEST_F(Reset, FindsARoleAgainThatTheSetupHasMadeAgain) {
    const CheckResult result = check_text(R"(
        setup {
            CREATE TABLE t (v int);
            INSERT INTO t VALUES (0);
            CREATE ROLE reset_clerk;
            GRANT ALL ON t TO reset_clerk;
        }
        teardown { DROP TABLE t; DROP ROLE reset_clerk; }
        session a * 2
          role reset_clerk
          step read { SELECT v FROM t \gset }
          step write { UPDATE t SET v = :v + 1 }
    )");
    EXPECT_EQ(result.exit_code(), 1) << "the update is lost";
}

}  // namespace
}  // namespace rowlock::race::test
