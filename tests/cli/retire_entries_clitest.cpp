// Retention by the command, and what is still good and still found afterwards.
#include "cli/command_test.hpp"

namespace rowlock::test {
namespace {

using testing::HasSubstr;

class RetireEntries : public CommandOnDatabaseTest {
  protected:
    RetireEntries() {
        EXPECT_EQ(run({"keys", "new", "--signing-key", file("signing.key")}).exit_code, 0);
        pin_ = lines_of(run({"keys", "public", "--signing-key", file("signing.key")}).output)[0];
        append(20);
        EXPECT_EQ(on_database({"checkpoint", "--out", file("a.note"), "--signing-key", file("signing.key")}).exit_code,
                  0);
        EXPECT_EQ(run({"keys", "rotate"}).exit_code, 0);
        append(5);
    }
    [[nodiscard]] std::string file(const std::string& name) const { return (scratch_.path() / name).string(); }
    void append(int count) const {
        std::string lines;
        for (int i = 0; i < count; ++i) lines += "{\"tenant\":\"acme\"}\n";
        ASSERT_EQ(on_database({"append", "--jsonl", "-"}, lines).exit_code, 0);
    }
    [[nodiscard]] ProcessResult retire(const std::string& through) const {
        return on_database({"retire-entries", "--tenant", "acme", "--through", through, "--checkpoint", file("a.note"),
                            "--pin-key", pin_, "--reason", "ten years are over", "--actor", "ann"});
    }

    std::string pin_;
};

TEST_F(RetireEntries, DropsThemAndVerifyStaysIntactAndSaysSo) {
    const ProcessResult retired = retire("15");
    EXPECT_EQ(retired.exit_code, 0) << retired.errors;
    EXPECT_THAT(retired.output, HasSubstr("acme 27  entries 1 to 15 retired, 15 dropped"));
    EXPECT_EQ(entries(), "12");
    for (const Arguments& more : {Arguments{}, Arguments{"--checkpoint", file("a.note"), "--pin-key", pin_}}) {
        Arguments arguments{"verify", "--tenant", "acme"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const ProcessResult verified = on_database(arguments);
        EXPECT_EQ(verified.exit_code, 0) << verified.output;
        EXPECT_THAT(verified.output, HasSubstr("acme: INTACT, 12 entries"));
        EXPECT_THAT(verified.output, HasSubstr("entries 1 to 15 were retired: entry 27 says so"));
    }
    ASSERT_EQ(
        on_database({"export", "--all", "--out", file("a.bundle"), "--signing-key", file("signing.key")}).exit_code, 0);
    const ProcessResult bundle = run({"verify", "--bundle", file("a.bundle"), "--pin-key", pin_, "--keyring",
                                      keyring().string(), "--checkpoint", file("a.note")});
    EXPECT_EQ(bundle.exit_code, 0) << bundle.output;
    EXPECT_THAT(bundle.output, HasSubstr("acme: entries 1 to 15 were retired before: entry 27 says so"));
    const TestDatabase restored;
    ASSERT_EQ(run_in_shell("pg_dump --role=rowlock_backup -d \"$db\" > dump.sql", database_.connection()).exit_code, 0);
    ASSERT_EQ(run_in_shell("psql -X -q -v ON_ERROR_STOP=1 -d \"$db\" -f dump.sql", restored.connection()).exit_code, 0);
    EXPECT_EQ(on(restored.connection(), {"verify", "--all"}).exit_code, 0);
}

TEST_F(RetireEntries, RefusesInOneLineWhatTheCheckpointDoesNotCover) {
    const ProcessResult beyond = retire("21");
    EXPECT_EQ(beyond.exit_code, 2);
    expect_one_line(beyond, {"nothing was retired", "covers entries up to 20 only"});
    EXPECT_EQ(entries(), "26");
    EXPECT_EQ(retire("5").exit_code, 0);
    EXPECT_EQ(retire("4").exit_code, 2);
    expect_one_line(retire("4"), {"retired already"});
    EXPECT_EQ(retire("5").exit_code, 0) << "a run that was ended half-way may be run again";
}

TEST_F(RetireEntries, RefusesALogThatIsTamperedWith) {
    database_.execute(
        "ALTER TABLE rowlock.audit_log DISABLE TRIGGER ALL; UPDATE rowlock.audit_log SET actor = 'x' WHERE seq = 15");
    const ProcessResult refused = retire("5");
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.output, HasSubstr("entry 15: changed"));
    EXPECT_EQ(entries(), "26");
}

}  // namespace
}  // namespace rowlock::test
