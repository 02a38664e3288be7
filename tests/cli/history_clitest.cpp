// The life of one log by the command: rotation, erasure, retention, dump, restore, an older dump. What is lawful raises
// no alarm, however much of it has happened; what is not is found all the same.
#include "cli/command_test.hpp"

namespace rowlock::test {
namespace {

using testing::HasSubstr;

class History : public CommandOnDatabaseTest {
  protected:
    History() {
        EXPECT_EQ(run({"keys", "new", "--signing-key", file("signing.key")}).exit_code, 0);
        pin_ = lines_of(run({"keys", "public", "--signing-key", file("signing.key")}).output)[0];
    }
    [[nodiscard]] std::string file(const std::string& name) const { return (scratch_.path() / name).string(); }
    void ok(const std::string& connection, const Arguments& arguments, const std::string& input = {}) const {
        const ProcessResult result = on(connection, arguments, input);
        ASSERT_EQ(result.exit_code, 0) << arguments[0] << ": " << result.output << result.errors;
    }
    void append(const std::string& connection, int count) const {
        std::string lines;
        for (int i = 0; i < count; ++i)
            lines += R"({"tenant":"acme","action":"note","data":{"n":1}})"
                     "\n"
                     R"({"tenant":"globex"})"
                     "\n";
        ok(connection, {"append", "--jsonl", "-"}, lines);
    }
    void append_of(const std::string& subject) const {
        ok(database_.connection(), {"append", "--tenant", "acme", "--data", R"({"street":"x"})", "--subject", subject,
                                    "--subject-keys", file("subjects")});
    }
    void checkpoint(const std::string& connection, const std::string& name) {
        ok(connection, {"checkpoint", "--out", file(name), "--signing-key", file("signing.key")});
        notes_.push_back(name);
    }
    [[nodiscard]] ProcessResult verify(const std::string& connection, const std::string& note) const {
        return on(connection, {"verify", "--all", "--checkpoint", file(note), "--pin-key", pin_});
    }
    /// Without a checkpoint, against every checkpoint so far, and as a bundle, by ours and by another language's
    /// program.
    void expect_no_alarm(const std::string& connection, const std::string& when) {
        ok(connection, {"verify", "--all"});
        for (const std::string& note : notes_) {
            const ProcessResult verified = verify(connection, note);
            EXPECT_EQ(verified.exit_code, 0) << when << ", " << note << ": " << verified.output << verified.errors;
        }
        const std::string bundle = file(std::to_string(bundles_++) + ".bundle");
        ok(connection, {"export", "--all", "--out", bundle, "--signing-key", file("signing.key")});
        Arguments arguments{"verify", "--bundle", bundle, "--pin-key", pin_, "--keyring", keyring().string()};
        for (const std::string& note : notes_) {
            Arguments against = arguments;
            against.insert(against.end(), {"--checkpoint", file(note)});
            const ProcessResult verified = run(against);
            EXPECT_EQ(verified.exit_code, 0) << when << ", " << note << ": " << verified.output << verified.errors;
        }
        ProcessOptions options;
        options.arguments = {"node", std::string(ROWLOCK_SOURCES) + "/scripts/check_bundle.mjs", bundle, pin_};
        const ProcessResult theirs = run_process(options);
        EXPECT_EQ(theirs.exit_code, 0) << when << ": " << theirs.output << theirs.errors;
    }
    void dump(const std::string& name) const {
        ASSERT_EQ(
            run_in_shell("pg_dump --role=rowlock_backup -d \"$db\" > " + file(name), database_.connection()).exit_code,
            0);
    }
    void load(const std::string& name, const TestDatabase& into) const {
        const ProcessResult loaded =
            run_in_shell("psql -X -q -v ON_ERROR_STOP=1 -d \"$db\" -f " + file(name), into.connection());
        ASSERT_EQ(loaded.exit_code, 0) << loaded.errors;
    }

    std::string pin_;
    std::vector<std::string> notes_;
    int bundles_ = 0;
};

TEST_F(History, OfRotationErasureRetentionDumpAndRestoreRaisesNoAlarmAndAnOlderDumpIsRolledBackUntilResumed) {
    const std::string here = database_.connection();
    append(here, 10);
    append_of("ann");
    append_of("bob");
    checkpoint(here, "first.note");
    expect_no_alarm(here, "at the beginning");
    ASSERT_EQ(run({"keys", "rotate"}).exit_code, 0);
    append(here, 5);
    checkpoint(here, "rotated.note");
    expect_no_alarm(here, "after a rotation");
    ASSERT_EQ(run({"erase", "--subject", "ann", "--subject-keys", file("subjects")}).exit_code, 0);
    expect_no_alarm(here, "after an erasure");
    dump("before.sql");
    ok(here, {"retire-entries", "--tenant", "acme", "--through", "11", "--checkpoint", file("rotated.note"),
              "--pin-key", pin_, "--reason", "ten years are over"});
    append(here, 2);
    checkpoint(here, "retired.note");
    expect_no_alarm(here, "after a retention");
    ASSERT_EQ(run({"keys", "rotate"}).exit_code, 0);
    append(here, 2);
    dump("all.sql");

    const TestDatabase same;
    load("all.sql", same);
    expect_no_alarm(same.connection(), "after dump and restore");

    const TestDatabase older;
    load("before.sql", older);
    ok(older.connection(), {"verify", "--all"});
    const ProcessResult behind = verify(older.connection(), "retired.note");
    EXPECT_EQ(behind.exit_code, 1);
    EXPECT_THAT(behind.output, HasSubstr("acme: ROLLED BACK"));
    EXPECT_THAT(behind.output, HasSubstr("globex: ROLLED BACK"));
    EXPECT_THAT(behind.output, testing::Not(HasSubstr("TAMPERED")));
    for (const std::string tenant : {"acme", "globex"}) {
        ok(older.connection(), {"resume", "--tenant", tenant, "--checkpoint", file("retired.note"), "--pin-key", pin_,
                                "--reason", "the disk died"});
    }
    append(older.connection(), 1);
    checkpoint(older.connection(), "resumed.note");
    expect_no_alarm(older.connection(), "after the resumption");

    older.execute(
        "ALTER TABLE rowlock.audit_log DISABLE TRIGGER ALL;"
        "UPDATE rowlock.audit_log SET data = '{\"n\":2}' WHERE tenant_id = 'acme' AND seq = 16");
    const ProcessResult found = verify(older.connection(), "first.note");
    EXPECT_EQ(found.exit_code, 1);
    EXPECT_THAT(found.output, HasSubstr("entry 16: changed"));
}

}  // namespace
}  // namespace rowlock::test
