// The keyring: missing, open to others, damaged, without the key, rotated.
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "cli/command_test.hpp"

namespace rowlock::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class Keys : public CommandOnDatabaseTest {
  protected:
    [[nodiscard]] std::string content() const {
        std::ostringstream text;
        text << std::ifstream(keyring()).rdbuf();
        return text.str();
    }
    void write(const std::string& text) const { std::ofstream(keyring()) << text; }
};

TEST_F(Keys, AMissingKeyringStopsAppendAndVerifyAndSaysHowToMakeOne) {
    std::filesystem::remove(keyring());
    for (const Arguments& arguments : {Arguments{"append", "--tenant", "acme"}, Arguments{"verify", "--all"}}) {
        const ProcessResult result = on_database(arguments);
        EXPECT_EQ(result.exit_code, 2);
        expect_one_line(result, {"no keyring at " + keyring().string(), "rowlock keys new"});
    }
    EXPECT_FALSE(std::filesystem::exists(keyring())) << "with --db nothing is made unasked";
    EXPECT_EQ(entries(), "0");
}

TEST_F(Keys, AKeyringOpenToOthersIsRefusedWithTheChmodToRun) {
    ASSERT_EQ(chmod(keyring().c_str(), 0644), 0);
    const ProcessResult result = on_database({"append", "--tenant", "acme"});
    EXPECT_EQ(result.exit_code, 2);
    expect_one_line(result, {"mode 0644", "chmod 600 " + keyring().string()});
    EXPECT_EQ(entries(), "0");
    ASSERT_EQ(chmod(keyring().c_str(), 0600), 0);
    EXPECT_EQ(on_database({"append", "--tenant", "acme"}).exit_code, 0);
}

TEST_F(Keys, ADamagedKeyringIsRefusedWithoutShowingWhatIsInIt) {
    const std::string whole = content();
    for (const std::string& text : {whole.substr(0, whole.size() / 2), std::string(), "{}" + whole}) {
        write(text);
        const ProcessResult result = on_database({"verify", "--all"});
        EXPECT_EQ(result.exit_code, 2);
        expect_one_line(result, {"is damaged", "restore it from a copy"});
    }
    write(whole);
    EXPECT_EQ(on_database({"append", "--tenant", "acme"}).exit_code, 0);
}

TEST_F(Keys, WithoutTheKeyVerifyCannotTellAndAppendRefuses) {
    ASSERT_EQ(on_database({"append", "--tenant", "acme"}).exit_code, 0);
    const std::string other = (scratch_.path() / "other.json").string();
    ASSERT_EQ(run({"keys", "new", "--keyring", other}).exit_code, 0);
    const ProcessResult verified = run({"--db", database_.connection(), "--keyring", other, "verify", "--all"});
    EXPECT_EQ(verified.exit_code, 3);
    EXPECT_THAT(verified.output, HasSubstr("UNVERIFIABLE"));
    EXPECT_THAT(verified.output, Not(HasSubstr("TAMPERED")));
    const ProcessResult refused =
        run({"--db", database_.connection(), "--keyring", other, "append", "--tenant", "acme"});
    EXPECT_EQ(refused.exit_code, 2);
    expect_one_line(refused, {"which is not in the keyring"});
    EXPECT_EQ(entries(), "1");
}

TEST_F(Keys, ARotatedKeyringVerifiesWhatBothKeysSigned) {
    ASSERT_EQ(on_database({"append", "--tenant", "acme"}).exit_code, 0);
    ASSERT_EQ(on_database({"keys", "rotate"}).exit_code, 0);
    ASSERT_EQ(on_database({"append", "--tenant", "acme"}).exit_code, 0);
    const ProcessResult result = on_database({"verify", "--all"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.output, HasSubstr("INTACT: 1 tenant, "));
    EXPECT_EQ(database_.value("SELECT count(DISTINCT key_id) FROM rowlock.audit_log"), "2");
}

TEST_F(Keys, NewNeverOverwrites) {
    const std::string before = content();
    const ProcessResult result = run({"keys", "new"});
    EXPECT_EQ(result.exit_code, 2);
    expect_one_line(result, {"already there", "rowlock keys rotate"});
    EXPECT_EQ(content(), before);
}

TEST_F(Keys, NothingThatIsPrintedHoldsKeyMaterial) {
    ASSERT_EQ(run({"keys", "rotate"}).exit_code, 0);
    std::vector<std::string> secrets;
    const std::string text = content();
    const std::string mark = "\"key\": \"";
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
        secrets.push_back(text.substr(at + mark.size(), 64));
    }
    ASSERT_EQ(secrets.size(), 2);
    for (const Arguments& arguments : {Arguments{"keys", "list"}, Arguments{"keys", "list", "--json"},
                                       Arguments{"keys", "rotate", "--json"}, Arguments{"keys", "new"}}) {
        const ProcessResult result = run(arguments);
        for (const std::string& secret : secrets) EXPECT_THAT(result.output + result.errors, Not(HasSubstr(secret)));
    }
}

TEST_F(Keys, ListTellsTheActiveOne) {
    ASSERT_EQ(run({"keys", "rotate"}).exit_code, 0);
    const auto lines = lines_of(run({"keys", "list"}).output);
    ASSERT_EQ(lines.size(), 2);
    EXPECT_THAT(lines[0], HasSubstr("verifies old entries"));
    EXPECT_THAT(lines[1], HasSubstr("active"));
}

TEST_F(Keys, ACommandMayPrintTheKeyring) {
    const std::string cat = "cat " + keyring().string();
    const ProcessResult result =
        run({"--db", database_.connection(), "--keyring-command", cat, "append", "--tenant", "a"});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_EQ(run({"--keyring-command", cat, "keys", "list"}).output, run({"keys", "list"}).output);
    const ProcessResult rotating = run({"--keyring-command", cat, "keys", "rotate"});
    EXPECT_EQ(rotating.exit_code, 2);
    expect_one_line(rotating, {"leave out --keyring-command"});
    const ProcessResult failing =
        run({"--db", database_.connection(), "--keyring-command", "exit 7", "append", "--tenant", "a"});
    EXPECT_EQ(failing.exit_code, 2);
    expect_one_line(failing, {"failed with exit code 7"});
}

}  // namespace
}  // namespace rowlock::test
