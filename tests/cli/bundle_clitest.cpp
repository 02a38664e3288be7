// Bundles by the command: exported from a database, verified without one, by ours and by a program of another language.
#include <fstream>
#include <sstream>

#include "cli/command_test.hpp"

namespace rowlock::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class BundleCommand : public CommandOnDatabaseTest {
  protected:
    BundleCommand() {
        EXPECT_EQ(run({"keys", "new", "--signing-key", file("signing.key"), "--name", "shop.example/audit"}).exit_code,
                  0);
        pin_ = run({"keys", "public", "--signing-key", file("signing.key")}).output;
        pin_.pop_back();
        append("acme", 12);
        EXPECT_EQ(run({"keys", "rotate"}).exit_code, 0);
        append("acme", 3);
        append("café/1 %", 2);
    }
    [[nodiscard]] std::string file(const std::string& name) const { return (scratch_.path() / name).string(); }
    [[nodiscard]] std::string content(const std::string& name) const {
        std::ostringstream text;
        text << std::ifstream(file(name), std::ios::binary).rdbuf();
        return text.str();
    }
    void write(const std::string& name, const std::string& text) const {
        std::ofstream(file(name), std::ios::binary) << text;
    }
    void append(const std::string& tenant, int count) const {
        std::string lines;
        for (int i = 0; i < count; ++i) {
            lines += R"({"tenant":")" + tenant + R"(","actor":"ann","action":"note","data":{"n":)" + std::to_string(i) +
                     "}}\n";
        }
        ASSERT_EQ(on_database({"append", "--jsonl", "-"}, lines).exit_code, 0);
    }
    [[nodiscard]] ProcessResult exported(const std::string& name, Arguments whose = {"--all"}) const {
        Arguments arguments{"export", "--out", file(name), "--signing-key", file("signing.key")};
        arguments.insert(arguments.end(), whose.begin(), whose.end());
        return on_database(arguments);
    }
    /// Without a database: --db would not be reached.
    [[nodiscard]] ProcessResult verify(const std::string& name, const Arguments& more = {}) const {
        Arguments arguments{"verify", "--bundle", file(name), "--pin-key", pin_};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return run(arguments);
    }
    [[nodiscard]] ProcessResult verify_in_another_language(const std::string& name) const {
        ProcessOptions options;
        options.arguments = {"node", std::string(ROWLOCK_SOURCES) + "/scripts/check_bundle.mjs", file(name), pin_};
        return run_process(options);
    }

    std::string pin_;
};

TEST_F(BundleCommand, IsVerifiedWithoutADatabaseAndWithoutTheHmacKeys) {
    const ProcessResult made = exported("a.bundle");
    ASSERT_EQ(made.exit_code, 0) << made.errors;
    EXPECT_THAT(made.output, HasSubstr("2 tenants, 18 entries, signed by shop.example/audit"));
    std::filesystem::remove_all(scratch_.path() / "config");
    const ProcessResult good = verify("a.bundle");
    EXPECT_EQ(good.exit_code, 0) << good.output << good.errors;
    EXPECT_THAT(good.output, HasSubstr("INTACT, 2 tenants, 18 entries"));
    EXPECT_EQ(good.errors, "");
    EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "state")) << "no server was started for it";
    EXPECT_THAT(verify("a.bundle", {"--json"}).output, HasSubstr(R"("verdict":"INTACT")"));
}

TEST_F(BundleCommand, IsVerifiedByAProgramThatKnowsTheFormatOnly) {
    ASSERT_EQ(exported("a.bundle").exit_code, 0);
    const ProcessResult good = verify_in_another_language("a.bundle");
    EXPECT_EQ(good.exit_code, 0) << good.output << good.errors;
    EXPECT_THAT(good.output, HasSubstr("INTACT: 2 tenants, 18 entries"));
    const std::string whole = content("a.bundle");
    std::vector<std::string> damaged{whole.substr(0, whole.size() / 2), whole + "x", whole.substr(0, whole.size() - 1)};
    for (std::size_t at = 150; at < whole.size(); at += 401) {
        damaged.push_back(whole);
        damaged.back()[at] ^= 1;
    }
    for (const std::string& text : damaged) {
        write("damaged.bundle", text);
        const ProcessResult theirs = verify_in_another_language("damaged.bundle");
        const ProcessResult ours = verify("damaged.bundle");
        EXPECT_EQ(theirs.exit_code, 1) << theirs.output;
        EXPECT_EQ(ours.exit_code, 1) << ours.output;
        EXPECT_THAT(ours.output, HasSubstr("TAMPERED"));
    }
}

TEST_F(BundleCommand, HasItsHmacsCheckedWhereAKeyringIsNamed) {
    ASSERT_EQ(exported("a.bundle", {"--tenant", "acme"}).exit_code, 0);
    EXPECT_EQ(verify("a.bundle", {"--keyring", keyring().string()}).exit_code, 0);
    ASSERT_EQ(run({"keys", "new", "--keyring", file("other.json")}).exit_code, 0);
    const ProcessResult lacking = verify("a.bundle", {"--keyring", file("other.json")});
    EXPECT_EQ(lacking.exit_code, 3);
    EXPECT_THAT(lacking.output, HasSubstr("UNVERIFIABLE"));
    EXPECT_THAT(lacking.output, HasSubstr("HMACs of 16 entries could not be checked"));
}

TEST_F(BundleCommand, IsNotBelievedWithoutAPinnedKeyOrWithAnother) {
    ASSERT_EQ(exported("a.bundle").exit_code, 0);
    const ProcessResult unpinned = run({"verify", "--bundle", file("a.bundle")});
    EXPECT_EQ(unpinned.exit_code, 3);
    EXPECT_THAT(unpinned.errors, HasSubstr("--pin-key"));
    EXPECT_THAT(unpinned.errors, HasSubstr(pin_));
    ASSERT_EQ(run({"keys", "new", "--signing-key", file("other.key")}).exit_code, 0);
    const std::string other = lines_of(run({"keys", "public", "--signing-key", file("other.key")}).output)[0];
    const ProcessResult stranger = run({"verify", "--bundle", file("a.bundle"), "--pin-key", other});
    EXPECT_EQ(stranger.exit_code, 1);
    EXPECT_THAT(stranger.output, HasSubstr("none of the pinned keys has signed it"));
}

TEST_F(BundleCommand, IsNotMadeOfALogThatIsNotIntact) {
    database_.execute(
        "ALTER TABLE rowlock.audit_log DISABLE TRIGGER ALL;"
        "UPDATE rowlock.audit_log SET actor = 'mallory' WHERE tenant_id = 'acme' AND seq = 3");
    const ProcessResult refused = exported("a.bundle");
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.output, HasSubstr("entry 3: changed"));
    EXPECT_THAT(refused.errors, HasSubstr("only an intact log is signed"));
    EXPECT_FALSE(std::filesystem::exists(file("a.bundle")));
    EXPECT_EQ(exported("b.bundle", {"--tenant", "nobody"}).exit_code, 3);
    EXPECT_FALSE(std::filesystem::exists(file("b.bundle")));
    for (const auto& entry : std::filesystem::directory_iterator(scratch_.path())) {
        EXPECT_NE(entry.path().extension(), ".tmp");
    }
}

TEST_F(BundleCommand, AgainstACheckpointFindsThatTheLogWasPutBackBeforeTheExport) {
    ASSERT_EQ(on_database({"checkpoint", "--out", file("a.note"), "--signing-key", file("signing.key")}).exit_code, 0);
    ASSERT_EQ(exported("a.bundle", {"--all", "--checkpoint", file("a.note"), "--pin-key", pin_}).exit_code, 0);
    EXPECT_EQ(verify("a.bundle", {"--checkpoint", file("a.note")}).exit_code, 0);
    database_.execute(
        "ALTER TABLE rowlock.audit_log DISABLE TRIGGER ALL;"
        "DELETE FROM rowlock.audit_log WHERE tenant_id = 'acme' AND seq > 14;"
        "UPDATE rowlock.tenant_seq SET last_seq = 14, head_mac = (SELECT mac FROM rowlock.audit_log"
        " WHERE tenant_id = 'acme' AND seq = 14) WHERE tenant_id = 'acme'");
    ASSERT_EQ(exported("b.bundle").exit_code, 0) << "nothing shows without the checkpoint";
    EXPECT_EQ(verify("b.bundle").exit_code, 0);
    const ProcessResult refused = exported("c.bundle", {"--all", "--checkpoint", file("a.note"), "--pin-key", pin_});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.output, HasSubstr("ROLLED BACK"));
    EXPECT_FALSE(std::filesystem::exists(file("c.bundle"))) << "an older state is not signed if a checkpoint tells";
    const ProcessResult older = verify("b.bundle", {"--checkpoint", file("a.note")});
    EXPECT_EQ(older.exit_code, 1);
    EXPECT_THAT(older.output, HasSubstr("ROLLED BACK"));
    EXPECT_THAT(older.output, HasSubstr("acme: entries 15 to 16: rolled_back"));
}

TEST_F(BundleCommand, AgainstACheckpointNamesTheTenantsThatItLacks) {
    ASSERT_EQ(on_database({"checkpoint", "--out", file("a.note"), "--signing-key", file("signing.key")}).exit_code, 0);
    ASSERT_EQ(exported("acme.bundle", {"--tenant", "acme"}).exit_code, 0);
    const ProcessResult one = verify("acme.bundle", {"--checkpoint", file("a.note")});
    EXPECT_EQ(one.exit_code, 0) << "it is of the tenant that it was asked for";
    EXPECT_THAT(one.output, HasSubstr("café/1 %: named by the checkpoint, and not in this bundle"));
    EXPECT_EQ(member(verify("acme.bundle", {"--checkpoint", file("a.note"), "--json"}).output, "not_in_bundle"),
              R"([{"tenant":"café/1 %"}])");
    EXPECT_THAT(verify("acme.bundle").output, testing::Not(HasSubstr("café/1 %")));
    database_.execute(
        "ALTER TABLE rowlock.audit_log DISABLE TRIGGER ALL; ALTER TABLE rowlock.tenant_seq DISABLE TRIGGER ALL;"
        "DELETE FROM rowlock.audit_log WHERE tenant_id = 'café/1 %';"
        "DELETE FROM rowlock.tenant_seq WHERE tenant_id = 'café/1 %'");
    ASSERT_EQ(exported("all.bundle", {"--all"}).exit_code, 0) << "nothing shows without the checkpoint";
    EXPECT_THAT(verify("all.bundle", {"--checkpoint", file("a.note")}).output, HasSubstr("café/1 %: named by"));
    const ProcessResult refused = exported("c.bundle", {"--all", "--checkpoint", file("a.note"), "--pin-key", pin_});
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_THAT(refused.output, HasSubstr("chain_missing"));
}

TEST_F(BundleCommand, RefusesWhatMakesNoSenseInOneLine) {
    ASSERT_EQ(exported("a.bundle").exit_code, 0);
    expect_one_line(exported("a.bundle"), {"already there"});
    expect_one_line(verify("a.bundle", {"--all"}), {"leave out --tenant and --all"});
    expect_one_line(verify("none.bundle"), {"cannot open bundle", "No such file"});
    expect_one_line(exported("b.bundle", {}), {"--tenant", "--all"});
    write("empty.bundle", "");
    EXPECT_EQ(verify("empty.bundle").exit_code, 1);
    EXPECT_THAT(verify("empty.bundle").output, HasSubstr("this is no bundle"));
}

}  // namespace
}  // namespace rowlock::test
