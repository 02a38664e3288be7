// Checkpoints by the command: made, kept, compared with, forged, and resumed after; dumps and restores of all ages.
#include <sys/stat.h>

#include <fstream>
#include <optional>
#include <sstream>

#include "cli/command_test.hpp"

namespace rowlock::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class CheckpointCommand : public CommandOnDatabaseTest {
  protected:
    CheckpointCommand() {
        EXPECT_EQ(run({"keys", "new", "--signing-key", file("signing.key"), "--name", "shop.example/audit"}).exit_code,
                  0);
        pin_ = run({"keys", "public", "--signing-key", file("signing.key")}).output;
        pin_.pop_back();
    }
    [[nodiscard]] std::string file(const std::string& name) const { return (scratch_.path() / name).string(); }
    [[nodiscard]] std::string content(const std::string& name) const {
        std::ostringstream text;
        text << std::ifstream(file(name)).rdbuf();
        return text.str();
    }
    void append(const std::string& tenant, int count, const std::string& connection = {}) const {
        std::string lines;
        for (int i = 0; i < count; ++i) lines += "{\"tenant\":\"" + tenant + "\"}\n";
        const std::string& where = connection.empty() ? database_.connection() : connection;
        ASSERT_EQ(on(where, {"append", "--jsonl", "-"}, lines).exit_code, 0);
    }
    void checkpoint(const std::string& name) const {
        const ProcessResult made =
            on_database({"checkpoint", "--out", file(name), "--signing-key", file("signing.key")});
        ASSERT_EQ(made.exit_code, 0) << made.errors;
    }
    [[nodiscard]] ProcessResult verify(const std::string& name, const std::string& connection = {}) const {
        return on(connection.empty() ? database_.connection() : connection,
                  {"verify", "--all", "--checkpoint", file(name), "--pin-key", pin_});
    }

    std::string pin_;
};

TEST_F(CheckpointCommand, AKeyIsMadeOnceForItsOwnerOnlyAndItsPublicHalfIsOneLine) {
    struct stat status{};
    ASSERT_EQ(stat(file("signing.key").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0600U);
    EXPECT_THAT(pin_, testing::MatchesRegex("shop.example/audit\\+[0-9a-f]{8}\\+[A-Za-z0-9+/=]{44}"));
    const std::string before = content("signing.key");
    EXPECT_THAT(before, testing::StartsWith("PRIVATE+KEY+shop.example/audit+"));
    const ProcessResult again = run({"keys", "new", "--signing-key", file("signing.key")});
    EXPECT_EQ(again.exit_code, 2);
    expect_one_line(again, {"already there", "choose another name"});
    EXPECT_EQ(content("signing.key"), before);
    ASSERT_EQ(chmod(file("signing.key").c_str(), 0640), 0);
    const ProcessResult open = run({"keys", "public", "--signing-key", file("signing.key")});
    EXPECT_EQ(open.exit_code, 2);
    expect_one_line(open, {"the signing key", "mode 0640", "chmod 600"});
    expect_one_line(run({"keys", "public", "--signing-key", file("none.key")}),
                    {"no signing key at", "rowlock keys new --signing-key"});
}

TEST_F(CheckpointCommand, WithoutAFileNamedIsSignedWithTheKeyInTheDefaultPlace) {
    expect_one_line(on_database({"checkpoint", "--out", file("a.note")}), {"rowlock/signing.key", "rowlock keys new"});
    EXPECT_FALSE(std::filesystem::exists(file("a.note")));
    std::filesystem::copy_file(file("signing.key"), keyring().parent_path() / "signing.key");
    EXPECT_EQ(on_database({"checkpoint", "--out", file("a.note")}).exit_code, 0);
}

TEST_F(CheckpointCommand, AgreesWithAnUntouchedLogAndFindsWhatWasCutOff) {
    append("acme", 5);
    append("globex", 3);
    checkpoint("a.note");
    append("acme", 1);
    const ProcessResult good = verify("a.note");
    EXPECT_EQ(good.exit_code, 0) << good.output << good.errors;
    EXPECT_THAT(good.output, HasSubstr("INTACT: 2 tenants, 9 entries"));
    database_.execute(
        "ALTER TABLE rowlock.audit_log DISABLE TRIGGER ALL; ALTER TABLE rowlock.tenant_seq DISABLE TRIGGER ALL;"
        "DELETE FROM rowlock.audit_log WHERE tenant_id = 'globex'; DELETE FROM rowlock.tenant_seq WHERE tenant_id = "
        "'globex'");
    EXPECT_EQ(on_database({"verify", "--all"}).exit_code, 0) << "nothing shows without the checkpoint";
    const ProcessResult gone = verify("a.note");
    EXPECT_EQ(gone.exit_code, 1);
    EXPECT_THAT(gone.output, HasSubstr("globex: ROLLED BACK"));
    EXPECT_THAT(gone.output, HasSubstr("entries 1 to 3: chain_missing"));
    database_.execute("UPDATE rowlock.audit_log SET actor = 'x' WHERE seq = 2");
    EXPECT_THAT(verify("a.note").output, HasSubstr("TAMPERED: 2 tenants"));
}

TEST_F(CheckpointCommand, IsABytewiseFunctionOfWhatItSaysAndNeverOverwritten) {
    append("acme", 2);
    checkpoint("a.note");
    const std::string first = content("a.note");
    const ProcessResult again =
        on_database({"checkpoint", "--out", file("a.note"), "--signing-key", file("signing.key")});
    EXPECT_EQ(again.exit_code, 2);
    expect_one_line(again, {"already there", "choose another name"});
    EXPECT_EQ(content("a.note"), first);
    const ProcessResult out = on_database({"checkpoint", "--out", "-", "--signing-key", file("signing.key")});
    EXPECT_EQ(out.exit_code, 0);
    EXPECT_EQ(lines_of(out.output).size(), 7U) << out.output;
    EXPECT_EQ(lines_of(out.output)[4], lines_of(first)[4]);
    for (const auto& entry : std::filesystem::directory_iterator(scratch_.path())) {
        EXPECT_NE(entry.path().extension(), ".tmp");
    }
}

TEST_F(CheckpointCommand, ThatIsForgedIsAFindingAndOneThatIsNoneIsASetUp) {
    append("acme", 2);
    checkpoint("a.note");
    std::string forged = content("a.note");
    forged.replace(forged.find("acme 2 "), 7, "acme 1 ");
    std::ofstream(file("forged.note")) << forged;
    const ProcessResult found = verify("forged.note");
    EXPECT_EQ(found.exit_code, 1);
    expect_one_line(found, {"forged.note is forged", "shop.example/audit"});
    std::ofstream(file("cut.note")) << forged.substr(0, forged.size() / 2);
    expect_one_line(verify("cut.note"), {"is no checkpoint"});
    EXPECT_EQ(verify("cut.note").exit_code, 2);
    EXPECT_EQ(verify("none.note").exit_code, 2);
    expect_one_line(verify("none.note"), {"cannot open checkpoint"});
    ASSERT_EQ(run({"keys", "new", "--signing-key", file("other.key")}).exit_code, 0);
    const std::string other = lines_of(run({"keys", "public", "--signing-key", file("other.key")}).output)[0];
    const ProcessResult stranger = on_database({"verify", "--all", "--checkpoint", file("a.note"), "--pin-key", other});
    EXPECT_EQ(stranger.exit_code, 2);
    expect_one_line(stranger, {"not to be trusted", "none of the pinned keys", "shop.example/audit"});
    const ProcessResult unpinned = on_database({"verify", "--all", "--checkpoint", file("a.note")});
    EXPECT_EQ(unpinned.exit_code, 2);
    expect_one_line(unpinned, {"--pin-key"});
    expect_one_line(on_database({"verify", "--all", "--checkpoint", file("a.note"), "--pin-key", "nonsense"}),
                    {"\"nonsense\" is no public key"});
    std::ofstream(file("pin.txt")) << pin_ << "\n";
    EXPECT_EQ(on_database({"verify", "--all", "--checkpoint", file("a.note"), "--pin-key", file("pin.txt")}).exit_code,
              0);
}

TEST_F(CheckpointCommand, OfAnotherDatabaseIsRefused) {
    append("acme", 2);
    checkpoint("a.note");
    const TestDatabase other;
    ASSERT_EQ(on(other.connection(), {"schema", "install"}).exit_code, 0);
    append("acme", 2, other.connection());
    const ProcessResult refused = verify("a.note", other.connection());
    EXPECT_EQ(refused.exit_code, 2);
    expect_one_line(refused, {"is of ledger", "this database is ledger"});
}

TEST_F(CheckpointCommand, OfADumpAndRestoreRaisesNoAlarmAndOfAnOlderOneIsRolledBackUntilResumed) {
    append("acme", 5);
    append("globex", 2);
    checkpoint("old.note");
    // Row-level security is forced on the owner, too, and pg_dump will not write a part for the whole.
    EXPECT_NE(run_in_shell("pg_dump --role=rowlock_owner -d \"$db\" > dump.sql", database_.connection()).exit_code, 0);
    ASSERT_EQ(run_in_shell("pg_dump --role=rowlock_backup -d \"$db\" > dump.sql", database_.connection()).exit_code, 0);
    append("acme", 4);
    ASSERT_EQ(run({"keys", "rotate"}).exit_code, 0);
    append("acme", 2);
    checkpoint("new.note");

    const TestDatabase restored;
    const ProcessResult loaded =
        run_in_shell("psql -X -q -v ON_ERROR_STOP=1 -d \"$db\" -f dump.sql", restored.connection());
    ASSERT_EQ(loaded.exit_code, 0) << loaded.errors;
    const ProcessResult same = verify("old.note", restored.connection());
    EXPECT_EQ(same.exit_code, 0) << same.output << same.errors;
    EXPECT_THAT(same.output, HasSubstr("INTACT: 2 tenants, 7 entries"));

    const ProcessResult older = verify("new.note", restored.connection());
    EXPECT_EQ(older.exit_code, 1);
    EXPECT_THAT(older.output, HasSubstr("acme: ROLLED BACK, 5 entries"));
    EXPECT_THAT(older.output, HasSubstr("entries 6 to 12: rolled_back"));
    EXPECT_THAT(older.output, HasSubstr("ROLLED BACK: 2 tenants"));
    EXPECT_THAT(older.output, Not(HasSubstr("TAMPERED")));

    const Arguments resume{"resume",   "--tenant",      "acme",    "--checkpoint", file("new.note"), "--pin-key", pin_,
                           "--reason", "the disk died", "--actor", "ann"};
    const ProcessResult resumed = on(restored.connection(), resume);
    EXPECT_EQ(resumed.exit_code, 0) << resumed.errors;
    EXPECT_THAT(resumed.output, HasSubstr("resumed after entry 5"));
    append("acme", 20, restored.connection());
    for (const std::string note : {"old.note", "new.note"}) {
        const ProcessResult good = verify(note, restored.connection());
        EXPECT_EQ(good.exit_code, 0) << good.output;
        EXPECT_THAT(good.output,
                    HasSubstr("resumed after entry 5, where a checkpoint had counted 12 entries: the disk died"));
    }
    const ProcessResult again = on(restored.connection(), resume);
    EXPECT_EQ(again.exit_code, 2);
    expect_one_line(again, {"not behind this checkpoint", "nothing was appended"});
}

TEST_F(CheckpointCommand, LetsAllTenantsGoOnThatWerePutBackAndNoOther) {
    append("acme", 2);
    append("bolt", 2);
    append("globex", 2);
    ASSERT_EQ(run_in_shell("pg_dump --role=rowlock_backup -d \"$db\" > dump.sql", database_.connection()).exit_code, 0);
    append("acme", 1);
    append("globex", 3);
    append("initech", 1);
    checkpoint("new.note");
    const TestDatabase restored;
    ASSERT_EQ(run_in_shell("psql -X -q -v ON_ERROR_STOP=1 -d \"$db\" -f dump.sql", restored.connection()).exit_code, 0);

    const Arguments resume{"resume",    "--all", "--checkpoint", file("new.note"),
                           "--pin-key", pin_,    "--reason",     "the disk died"};
    const ProcessResult resumed = on(restored.connection(), resume);
    EXPECT_EQ(resumed.exit_code, 0) << resumed.errors;
    EXPECT_EQ(resumed.output,
              "acme 3  resumed after entry 2\nglobex 3  resumed after entry 2\ninitech 1  resumed after entry 0\n"
              "3 of 4 tenants resumed\n");
    EXPECT_EQ(verify("new.note", restored.connection()).exit_code, 0);
    EXPECT_EQ(on(restored.connection(), resume).output, "0 of 4 tenants resumed\n");

    run_sql(restored.connection(),
            "ALTER TABLE rowlock.audit_log DISABLE TRIGGER USER;"
            "UPDATE rowlock.audit_log SET actor = 'eve' WHERE tenant_id = 'bolt'");
    const ProcessResult tampered = on(restored.connection(), resume);
    EXPECT_EQ(tampered.exit_code, 1);
    expect_one_line(tampered, {"tenant bolt is tampered with"});
}

TEST_F(CheckpointCommand, SaysAllOfItInJson) {
    append("acme", 3);
    const ProcessResult made =
        on_database({"--json", "checkpoint", "--out", file("a.note"), "--signing-key", file("signing.key")});
    EXPECT_EQ(member(made.output, "entries"), "3");
    EXPECT_EQ(member(made.output, "public_key"), pin_);
    const ProcessResult good =
        on_database({"--json", "verify", "--all", "--checkpoint", file("a.note"), "--pin-key", pin_});
    EXPECT_EQ(member(good.output, "checkpoint"), "agrees");
    EXPECT_EQ(member(good.output, "resumptions"), "[]");
}

}  // namespace
}  // namespace rowlock::test
