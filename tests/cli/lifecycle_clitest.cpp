// rowlock lifecycle: batches that survive a busy row, and the rule in the database.
#include "cli/command_test.hpp"
#include "rowlock/database.hpp"

namespace rowlock::test {
namespace {

using testing::HasSubstr;

class LifecycleCommand : public CommandTest {
  protected:
    LifecycleCommand() {
        database_.execute(
            "CREATE SCHEMA shop; CREATE TABLE shop.\"Document\" (id int PRIMARY KEY, status text DEFAULT 'open');"
            "CREATE TABLE shop.claim (id int PRIMARY KEY, document_id int REFERENCES shop.\"Document\", status text);"
            "CREATE INDEX ON shop.claim (document_id);"
            "INSERT INTO shop.\"Document\" SELECT n FROM generate_series(1, 20) AS n;"
            "INSERT INTO shop.claim SELECT n, n, 'candidate' FROM generate_series(1, 20) AS n");
    }
    [[nodiscard]] ProcessResult lifecycle(const std::string& action, Arguments more = {}) const {
        Arguments arguments{
            "--db",    database_.connection(), "lifecycle", action,     "--parent", "shop.\"Document\"",
            "--child", "shop.claim",           "--retired", "rejected", "--live",   "candidate,confirmed"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run(std::move(arguments));
    }
    TestDatabase database_;
};

TEST_F(LifecycleCommand, RetiresByKeyAndByConditionAndIsDoneTheSecondTime) {
    ProcessResult result = lifecycle("retire", {"1", "2"});
    EXPECT_EQ(result.output, "retired 2 parents with 2 children (2 candidate)\n") << result.errors;
    EXPECT_EQ(result.exit_code, 0);
    result = lifecycle("retire", {"--where", "id <= 5", "--together", "3"});
    EXPECT_EQ(result.output, "retired 3 parents with 3 children (3 candidate)\n") << result.errors;
    result = lifecycle("retire", {"1"});
    EXPECT_EQ(result.output, "retired 0 parents with 0 children, 1 already retired\n");
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(database_.value("SELECT count(*) FROM shop.claim WHERE status = 'rejected'"), "5");
}

TEST_F(LifecycleCommand, SkipsABusyParentAndTellsWhoHoldsIt) {
    Database holder(DatabaseOptions{.connection = database_.connection(), .application_name = "a long report"});
    const auto while_held = [&](const Arguments& more) {
        ProcessResult result;
        holder.transact({}, [&](Transaction& transaction) {
            transaction.execute({"test.hold", "SELECT FROM shop.\"Document\" WHERE id = 7 FOR SHARE"});
            Arguments arguments{"--where", "id IN (6, 7, 8)"};
            arguments.insert(arguments.end(), more.begin(), more.end());
            result = lifecycle("retire", arguments);
            EXPECT_THAT(result.output + result.errors, HasSubstr(std::to_string(transaction.backend_pid())));
        });
        return result;
    };
    ProcessResult result = while_held({"--wait-ms", "100"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.output, "retired 2 parents with 2 children (2 candidate), 1 busy\n");
    expect_one_line(result, {"7: busy, held by pid", "a long report, idle in transaction", "run this again"});
    result = while_held({"--no-wait", "--json"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.output, HasSubstr(R"("application_name":"a long report")"));
    EXPECT_EQ(lifecycle("retire", {"7"}).exit_code, 0);
}

TEST_F(LifecycleCommand, TellsWhatIsMissingAndWhatFails) {
    ProcessResult result = lifecycle("retire", {"77", "1"});
    EXPECT_EQ(result.exit_code, 1);
    expect_one_line(result, {"77: there is none"});
    result = lifecycle("retire", {"seven"});
    EXPECT_EQ(result.exit_code, 2);
    expect_one_line(result, {"seven: ", "22P02"});
    for (const Arguments& wrong : {Arguments{}, Arguments{"1", "--where", "true"}}) {
        result = lifecycle("retire", wrong);
        EXPECT_EQ(result.exit_code, 2);
        expect_one_line(result, {"one of the two"});
    }
}

TEST_F(LifecycleCommand, RefusesADescriptionThatDoesNotFit) {
    const auto with = [&](const std::string& parent, const std::string& child) {
        return run({"--db", database_.connection(), "lifecycle", "status", "--parent", parent, "--child", child,
                    "--retired", "rejected", "--live", "candidate"});
    };
    expect_one_line(with("shop.document", "shop.claim"), {"there is no table shop.document"});
    expect_one_line(with("shop.claim", "shop.\"Document\""), {"no foreign key"});
    EXPECT_EQ(with("shop.document", "shop.claim").exit_code, 2);
}

TEST_F(LifecycleCommand, InstallsTheRuleInEitherFormAndTakesItAway) {
    for (const std::string form : {"trigger", "declarative"}) {
        EXPECT_EQ(lifecycle("install", {"--form", form}).exit_code, 0);
        EXPECT_THAT(lifecycle("status").output, HasSubstr("rule in the database: " + form + "\n"));
        EXPECT_EQ(lifecycle("retire", {"9"}).exit_code, 0);
        EXPECT_THROW(database_.execute("INSERT INTO shop.claim VALUES (100, 9, 'candidate')"), std::runtime_error);
        EXPECT_EQ(lifecycle("revive", {"9"}).output, "9 revived; its children stay as they are\n");
        EXPECT_EQ(lifecycle("uninstall", {"--form", form}).exit_code, 0);
        EXPECT_THAT(lifecycle("status").output, HasSubstr("rule in the database: none"));
    }
    database_.execute(lifecycle("sql").output);
    EXPECT_THAT(lifecycle("status", {"--json"}).output, HasSubstr(R"("trigger":true)"));
}

TEST_F(LifecycleCommand, StatusIsAFindingWhereTheRuleIsBroken) {
    EXPECT_EQ(lifecycle("status").exit_code, 0);
    database_.execute("UPDATE shop.\"Document\" SET status = 'rejected' WHERE id = 1");
    const ProcessResult result = lifecycle("status");
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.output, HasSubstr("BROKEN: 1 live child under a retired parent"));
}

}  // namespace
}  // namespace rowlock::test
