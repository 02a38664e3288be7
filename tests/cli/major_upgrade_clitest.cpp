// A new major version of PostgreSQL, reached by dump and restore: no false alarm for anything that a log can hold, and
// the work goes on.
#include "cli/command_test.hpp"
#include "support/newer_postgresql.hpp"

namespace rowlock::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class MajorUpgrade : public CommandOnDatabaseTest {
  protected:
    void SetUp() override {
        if (!NewerPostgresql::available()) GTEST_SKIP() << "no newer PostgreSQL is here: scripts/setup tests";
        newer_ = std::make_unique<NewerPostgresql>();
        EXPECT_EQ(run({"keys", "new", "--signing-key", file("signing.key"), "--name", "shop.example/audit"}).exit_code,
                  0);
        pin_ = run({"keys", "public", "--signing-key", file("signing.key")}).output;
        pin_.pop_back();
    }

    [[nodiscard]] std::string file(const std::string& name) const { return (scratch_.path() / name).string(); }
    void expect_fine(const ProcessResult& result) const {
        ASSERT_EQ(result.exit_code, 0) << result.output << result.errors;
    }
    void append(const std::string& connection, const std::string& tenant, int count) const {
        std::string lines;
        for (int i = 0; i < count; ++i) lines += R"({"tenant":")" + tenant + R"(","data":{"ö":[1.0,null]}})" + "\n";
        expect_fine(on(connection, {"append", "--jsonl", "-"}, lines));
    }
    void checkpoint(const std::string& name) const {
        expect_fine(on_database({"checkpoint", "--out", file(name), "--signing-key", file("signing.key")}));
    }
    [[nodiscard]] ProcessResult verify(const std::string& connection, const std::string& note) const {
        return on(connection, {"verify", "--all", "--checkpoint", file(note), "--pin-key", pin_});
    }
    static void stage(const std::string& connection, const std::string& tenant) {
        run_sql(connection, "BEGIN; SELECT set_config('rowlock.tenant', '" + tenant +
                                "', true); SELECT rowlock.stage('" + tenant + "', 'staged'); COMMIT");
    }
    static std::string next_number(const std::string& connection) {
        return run_sql(connection,
                       "SELECT rowlock.next_number('acme', 'invoice') FROM set_config('rowlock.tenant', 'acme', true)");
    }

    void dump(const std::string& name) const {
        const std::string script =
            "pg_dumpall --roles-only --no-role-passwords -d \"$db\" > roles.sql && pg_dump -d \"$db\" > ";
        expect_fine(run_in_shell(script + name, database_.connection()));
    }
    /// Into a database of its own on the newer server. Of the roles, the superuser is there already.
    [[nodiscard]] std::string restored(const std::string& name) const {
        run_sql(newer_->connection("postgres"), "CREATE DATABASE " + name);
        const std::string connection = newer_->connection(name);
        expect_fine(
            run_in_shell("psql -X -q -d \"$db\" -f roles.sql >/dev/null 2>&1; "
                         "psql -X -q -v ON_ERROR_STOP=1 -d \"$db\" -f " +
                             name + " >/dev/null",
                         connection));
        return connection;
    }

    /// Everything that once raised, or could raise, an alarm.
    void fill() const {
        const std::string old = database_.connection();
        append(old, "acme", 20);
        append(old, "globex", 3);
        expect_fine(on_database({"append", "--tenant", "globex", "--data", R"({"street":"1 Main Street"})", "--subject",
                                 "ann", "--subject-keys", file("subjects")}));
        expect_fine(run({"keys", "rotate"}));
        append(old, "acme", 5);
        checkpoint("early.note");
        expect_fine(on_database({"retire-entries", "--tenant", "acme", "--through", "15", "--checkpoint",
                                 file("early.note"), "--pin-key", pin_, "--reason", "ten years are over"}));
        expect_fine(run({"erase", "--subject", "ann", "--subject-keys", file("subjects")}));
        database_.execute(
            "CREATE TABLE public.invoice (tenant_id text, number bigint, total numeric, PRIMARY KEY (tenant_id,"
            " number)); INSERT INTO public.invoice VALUES ('acme', 1, 1.0)");
        expect_fine(on_database({"track", "public.invoice", "--tenant-column", "tenant_id"}));
        database_.execute("UPDATE public.invoice SET total = 1.00");
        expect_fine(on_database({"seal", "--once"}));
        stage(old, "acme");
        stage(old, "initech");
        database_.execute("UPDATE public.invoice SET total = 2");
        EXPECT_EQ(next_number(old), "1");
        EXPECT_EQ(next_number(old), "2");
    }

    std::unique_ptr<NewerPostgresql> newer_;
    std::string pin_;
};

TEST_F(MajorUpgrade, ByDumpAndRestoreRaisesNoAlarmAndEverythingGoesOn) {
    fill();
    checkpoint("new.note");
    dump("upgraded");
    const std::string before = on_database({"verify", "--all"}).output;

    const std::string connection = restored("upgraded");
    EXPECT_GT(std::stoi(run_sql(connection, "SELECT current_setting('server_version_num')")) / 10000,
              std::stoi(database_.value("SELECT current_setting('server_version_num')")) / 10000);
    expect_fine(on(connection, {"schema", "status"}));
    EXPECT_EQ(on(connection, {"verify", "--all"}).output, before);
    for (const char* const note : {"early.note", "new.note"}) {
        const ProcessResult same = verify(connection, note);
        EXPECT_EQ(same.exit_code, 0) << note << same.output << same.errors;
    }

    EXPECT_THAT(on(connection, {"verify", "--tenant", "acme"}).output, HasSubstr("entries 1 to 15 were retired"));
    // Before anything new is staged, whose transactions have lower numbers on a new server than those from the old one.
    expect_fine(on(connection, {"seal", "--once"}));

    append(connection, "acme", 4);
    append(connection, "umbrella", 1);
    EXPECT_EQ(next_number(connection), "3");
    stage(connection, "acme");
    run_sql(connection, "UPDATE public.invoice SET total = 3");
    expect_fine(on(connection, {"seal", "--once"}));
    EXPECT_EQ(run_sql(connection, "SELECT count(*) FROM rowlock.audit_staged"), "0");
    EXPECT_EQ(run_sql(connection,
                      "SELECT string_agg(data->'new'->>'total', ' ' ORDER BY seq) FROM rowlock.audit_log"
                      " WHERE action = 'row.update'"),
              "1.00 2 3");
    expect_fine(on(connection, {"tracked"}));
    const ProcessResult after = verify(connection, "new.note");
    EXPECT_EQ(after.exit_code, 0) << after.output << after.errors;
    EXPECT_THAT(after.output, HasSubstr("INTACT: 4 tenants"));

    expect_fine(on(connection, {"export", "--all", "--out", file("upgraded.bundle"), "--checkpoint", file("new.note"),
                                "--pin-key", pin_, "--signing-key", file("signing.key")}));
    const ProcessResult bundle = run({"--keyring", keyring().string(), "verify", "--bundle", file("upgraded.bundle"),
                                      "--checkpoint", file("new.note"), "--pin-key", pin_});
    EXPECT_EQ(bundle.exit_code, 0) << bundle.output << bundle.errors;
    EXPECT_THAT(bundle.output, HasSubstr("INTACT, 4 tenants"));
}

TEST_F(MajorUpgrade, FromAnOlderDumpIsRolledBackUntilResumed) {
    fill();
    dump("older");
    append(database_.connection(), "acme", 6);
    checkpoint("new.note");

    const std::string connection = restored("older");
    const ProcessResult older = verify(connection, "new.note");
    EXPECT_EQ(older.exit_code, 1);
    EXPECT_THAT(older.output, HasSubstr("acme: ROLLED BACK"));
    EXPECT_THAT(older.output, Not(HasSubstr("TAMPERED")));
    expect_fine(on(connection, {"resume", "--tenant", "acme", "--checkpoint", file("new.note"), "--pin-key", pin_,
                                "--reason", "the dump of the upgrade was older"}));
    append(connection, "acme", 9);
    const ProcessResult good = verify(connection, "new.note");
    EXPECT_EQ(good.exit_code, 0) << good.output << good.errors;
    EXPECT_THAT(good.output, HasSubstr("the dump of the upgrade was older"));
}

}  // namespace
}  // namespace rowlock::test
