// Acknowledging a break by the command, and what verify, export and a program of another language say of it.
#include "cli/command_test.hpp"

namespace rowlock::test {
namespace {

using testing::HasSubstr;

class Acknowledge : public CommandOnDatabaseTest {
  protected:
    Acknowledge() {
        EXPECT_EQ(run({"keys", "new", "--signing-key", file("signing.key")}).exit_code, 0);
        pin_ = lines_of(run({"keys", "public", "--signing-key", file("signing.key")}).output)[0];
        std::string lines;
        for (int i = 0; i < 10; ++i) lines += "{\"tenant\":\"acme\"}\n{\"tenant\":\"globex\"}\n";
        EXPECT_EQ(on_database({"append", "--jsonl", "-"}, lines).exit_code, 0);
        database_.execute(
            "ALTER TABLE rowlock.audit_log DISABLE TRIGGER ALL;"
            "UPDATE rowlock.audit_log SET actor = 'mallory' WHERE tenant_id = 'acme' AND seq = 5;"
            "DELETE FROM rowlock.audit_log WHERE tenant_id = 'acme' AND seq IN (7, 8)");
    }
    [[nodiscard]] std::string file(const std::string& name) const { return (scratch_.path() / name).string(); }
    [[nodiscard]] ProcessResult acknowledge(const std::string& seq, const Arguments& more = {}) const {
        Arguments arguments{"acknowledge", "--tenant", "acme", "--seq", seq, "--reason", "bad disk", "--actor", "ann"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return on_database(arguments);
    }

    std::string pin_;
};

TEST_F(Acknowledge, TellsTheBreakApartAndFindsTheNext) {
    EXPECT_EQ(on_database({"verify", "--all"}).exit_code, 1);
    const ProcessResult first = acknowledge("5");
    EXPECT_EQ(first.exit_code, 0) << first.errors;
    EXPECT_THAT(first.output, HasSubstr("acme 11  acknowledged: entry 5: changed"));
    EXPECT_EQ(on_database({"verify", "--all"}).exit_code, 1) << "there is another";
    const ProcessResult second = acknowledge("8", {"--json"});
    EXPECT_EQ(member(second.output, "seq"), "12") << second.errors;
    const ProcessResult good = on_database({"verify", "--all"});
    EXPECT_EQ(good.exit_code, 0) << good.output;
    EXPECT_THAT(good.output, HasSubstr("acme: INTACT BUT FOR 2 ACKNOWLEDGED BREAKS, 10 entries"));
    EXPECT_THAT(good.output, HasSubstr("entry 5: changed, and acknowledged by entry 11: bad disk"));
    EXPECT_THAT(good.output, HasSubstr("entries 7 to 8: missing, and acknowledged by entry 12: bad disk"));
    EXPECT_THAT(good.output, HasSubstr("\nINTACT BUT FOR 2 ACKNOWLEDGED BREAKS: 2 tenants"));
    const std::string json = on_database({"verify", "--tenant", "acme", "--json"}).output;
    EXPECT_EQ(member(json, "verdict"), "ACKNOWLEDGED");
    EXPECT_THAT(member(json, "acknowledgements"),
                HasSubstr(R"("kind":"changed","first_seq":5,"last_seq":5,"found":true)"));
    database_.execute("DELETE FROM rowlock.audit_log WHERE tenant_id = 'acme' AND seq = 6");
    const ProcessResult next = on_database({"verify", "--all"});
    EXPECT_EQ(next.exit_code, 1);
    EXPECT_THAT(next.output, HasSubstr("acme: TAMPERED"));
    EXPECT_THAT(next.output, HasSubstr("entry 6: missing: not there"));
}

TEST_F(Acknowledge, GoesWithABundle) {
    ASSERT_EQ(acknowledge("5").exit_code, 0);
    ASSERT_EQ(acknowledge("7").exit_code, 0);
    const ProcessResult made =
        on_database({"export", "--all", "--out", file("a.bundle"), "--signing-key", file("signing.key")});
    ASSERT_EQ(made.exit_code, 0) << made.errors;
    for (const Arguments& more : {Arguments{}, Arguments{"--keyring", keyring().string()}}) {
        Arguments arguments{"verify", "--bundle", file("a.bundle"), "--pin-key", pin_};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const ProcessResult verified = run(arguments);
        EXPECT_EQ(verified.exit_code, 0) << verified.output;
        EXPECT_THAT(verified.output, HasSubstr("INTACT BUT FOR 2 ACKNOWLEDGED BREAKS, 2 tenants"));
        EXPECT_THAT(verified.output, HasSubstr("acme: entry 5: changed, and acknowledged by entry 11: bad disk"));
    }
    ProcessOptions options;
    options.arguments = {"node", std::string(ROWLOCK_SOURCES) + "/scripts/check_bundle.mjs", file("a.bundle"), pin_};
    const ProcessResult theirs = run_process(options);
    EXPECT_EQ(theirs.exit_code, 0) << theirs.output << theirs.errors;
    EXPECT_THAT(theirs.output, HasSubstr("INTACT BUT FOR 2 ACKNOWLEDGED: 2 tenants"));
}

TEST_F(Acknowledge, RefusesInOneLineWhatIsNotFound) {
    const ProcessResult nothing = acknowledge("3");
    EXPECT_EQ(nothing.exit_code, 1) << "there is something else";
    expect_one_line(nothing, {"nothing was acknowledged", "nothing is found at entry 3"});
    EXPECT_THAT(nothing.output, HasSubstr("entry 5: changed")) << "what is found is told";
    expect_one_line(acknowledge("5", {"--kind", "altered"}), {"\"altered\" is no kind of finding"});
    expect_one_line(acknowledge("5", {"--kind", "missing"}), {"nothing of kind missing is found at entry 5"});
    EXPECT_EQ(entries("acme"), "8");
}

}  // namespace
}  // namespace rowlock::test
