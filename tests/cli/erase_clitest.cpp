// Erasure by the command: the data is gone, the log as intact as before.
#include "cli/command_test.hpp"

namespace rowlock::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class Erase : public CommandOnDatabaseTest {
  protected:
    [[nodiscard]] std::string folder() const { return (scratch_.path() / "subjects").string(); }
    void append(const std::string& subject, const std::string& data) const {
        const ProcessResult appended = on_database({"append", "--tenant", "acme", "--action", "address.changed",
                                                    "--data", data, "--subject", subject, "--subject-keys", folder()});
        ASSERT_EQ(appended.exit_code, 0) << appended.errors;
    }
    [[nodiscard]] std::string list() const {
        return on_database({"list", "--tenant", "acme", "--subject-keys", folder()}).output;
    }
};

TEST_F(Erase, TakesTheDataOfOneSubjectAndLeavesTheLogIntact) {
    append("ann@example.com", R"({"street":"1 Main Street"})");
    append("bob@example.com", R"({"street":"2 High Street"})");
    EXPECT_THAT(database_.value("SELECT string_agg(l::text, '') FROM rowlock.audit_log AS l"),
                testing::AllOf(Not(HasSubstr("Street")), Not(HasSubstr("example"))));
    EXPECT_THAT(on_database({"list", "--tenant", "acme"}).output, Not(HasSubstr("Street")));
    EXPECT_THAT(list(), testing::AllOf(HasSubstr("Main Street"), HasSubstr("High Street")));
    const ProcessResult erased = run({"erase", "--subject", "ann@example.com", "--subject-keys", folder()});
    EXPECT_EQ(erased.exit_code, 0) << erased.errors;
    EXPECT_THAT(list(), testing::AllOf(Not(HasSubstr("Main Street")), HasSubstr("High Street")));
    const ProcessResult verified = on_database({"verify", "--all"});
    EXPECT_EQ(verified.exit_code, 0);
    EXPECT_THAT(verified.output, HasSubstr("INTACT: 1 tenant, 2 entries"));
    const ProcessResult again = run({"erase", "--subject", "ann@example.com", "--subject-keys", folder()});
    EXPECT_EQ(again.exit_code, 2);
    expect_one_line(again, {"no key for subject ann@example.com"});
}

TEST_F(Erase, ARetryOfAnEncryptedEntryIsKnownForOne) {
    const Arguments arguments{"append",
                              "--tenant",
                              "acme",
                              "--data",
                              "{}",
                              "--subject",
                              "ann",
                              "--subject-keys",
                              folder(),
                              "--entry-id",
                              "018c2f5e-0000-7000-8000-000000000001"};
    EXPECT_EQ(on_database(arguments).exit_code, 0);
    EXPECT_THAT(on_database(arguments).output, HasSubstr("was there already"));
    EXPECT_EQ(entries(), "1");
}

TEST_F(Erase, TakesTheDataOfLinesThatNameASubject) {
    const std::string lines =
        R"({"tenant":"acme","data":{"street":"Main Street"},"subject":"ann","entry_id":"018c2f5e-0000-7000-8000-000000000001"})"
        "\n"
        R"({"tenant":"acme","data":{"street":"High Street"},"subject":"bob"})"
        "\n"
        R"({"tenant":"acme","data":{"plain":"Low Street"}})"
        "\n";
    const Arguments arguments{"append", "--jsonl", "-", "--subject-keys", folder()};
    ASSERT_EQ(on_database(arguments, lines).exit_code, 0);
    EXPECT_THAT(database_.value("SELECT string_agg(l::text, '') FROM rowlock.audit_log AS l"),
                testing::AllOf(Not(HasSubstr("Main Street")), Not(HasSubstr("High Street")), HasSubstr("Low Street")));
    EXPECT_THAT(list(), testing::AllOf(HasSubstr("Main Street"), HasSubstr("High Street"), HasSubstr("Low Street")));
    EXPECT_THAT(on_database(arguments, lines.substr(0, lines.find('\n') + 1)).output,
                HasSubstr("1 were there already"));
    ASSERT_EQ(run({"erase", "--subject", "ann", "--subject-keys", folder()}).exit_code, 0);
    EXPECT_THAT(list(), testing::AllOf(Not(HasSubstr("Main Street")), HasSubstr("High Street")));
    const ProcessResult bad = on_database(arguments, R"({"tenant":"acme","subject":"ann"})");
    EXPECT_EQ(bad.exit_code, 2);
    expect_one_line(bad, {"line 1", "there is no \"data\""});
}

TEST_F(Erase, EncryptsNothingWithoutData) {
    const ProcessResult refused =
        on_database({"append", "--tenant", "acme", "--subject", "ann", "--subject-keys", folder()});
    EXPECT_EQ(refused.exit_code, 2);
    expect_one_line(refused, {"has no data"});
    EXPECT_EQ(entries(), "0");
}

}  // namespace
}  // namespace rowlock::test
