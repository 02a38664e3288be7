// One entry at a time: append, list, verify.
#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <thread>

#include "cli/command_test.hpp"
#include "rowlock/database.hpp"

namespace rowlock::test {
namespace {

using testing::HasSubstr;

using Append = CommandOnDatabaseTest;

constexpr const char* some_id = "01890a5d-ac96-774b-bcce-b302099a8057";

TEST_F(Append, PrintsTheTenantTheNumberAndTheId) {
    const ProcessResult first = on_database({"append", "--tenant", "acme", "--entry-id", some_id});
    EXPECT_EQ(first.exit_code, 0) << first.errors;
    EXPECT_EQ(first.output, std::string("acme 1  ") + some_id + "\n");
    const ProcessResult second = on_database({"append", "--tenant", "acme", "--json"});
    EXPECT_EQ(member(second.output, "seq"), "2");
    EXPECT_EQ(member(second.output, "outcome"), "appended");
}

TEST_F(Append, WithTheSameIdASecondTimeSaysItWasThereAlready) {
    const Arguments same{"append", "--tenant", "acme", "--actor", "ann", "--data", "{\"a\":1}", "--entry-id", some_id};
    ASSERT_EQ(on_database(same).exit_code, 0);
    const ProcessResult again = on_database(same);
    EXPECT_EQ(again.exit_code, 0);
    EXPECT_THAT(again.output, HasSubstr("acme 1 "));
    EXPECT_THAT(again.output, HasSubstr("was there already"));
    EXPECT_EQ(entries(), "1");
    Arguments json = same;
    json.emplace_back("--json");
    EXPECT_EQ(member(on_database(json).output, "outcome"), "already_appended");
}

TEST_F(Append, WithTheSameIdAndOtherContentIsRefused) {
    ASSERT_EQ(on_database({"append", "--tenant", "acme", "--actor", "ann", "--entry-id", some_id}).exit_code, 0);
    const ProcessResult other = on_database({"append", "--tenant", "acme", "--actor", "bob", "--entry-id", some_id});
    EXPECT_EQ(other.exit_code, 2);
    expect_one_line(other, {some_id, "other content", "nothing was appended"});
    EXPECT_EQ(entries(), "1");
}

TEST_F(Append, RefusesDataThatIsNoJsonAndDataThatTheServerCannotStore) {
    const ProcessResult no_json = on_database({"append", "--tenant", "acme", "--data", "{"});
    EXPECT_EQ(no_json.exit_code, 2);
    expect_one_line(no_json, {"(SQLSTATE 22P02)", "correct the input"});
    const ProcessResult zero = on_database({"append", "--tenant", "acme", "--data", "\"\\u0000\""});
    EXPECT_EQ(zero.exit_code, 2);
    expect_one_line(zero, {"(SQLSTATE 22P05)", "\\u0000"});
    EXPECT_EQ(entries(), "0");
}

TEST_F(Append, RefusesTheActionsOfTheLogItself) {
    const ProcessResult result = on_database({"append", "--tenant", "acme", "--action", "rowlock.rotated"});
    EXPECT_EQ(result.exit_code, 2);
    expect_one_line(result, {"rowlock.rotated"});
}

TEST_F(Append, ByAnOrdinaryLoginNeedsOnlyTheRole) {
    const TestLogin login = database_.add_login("app");
    database_.execute("GRANT rowlock_app TO " + login.role);
    const std::string connection = database_.connection_as(login);
    EXPECT_EQ(on(connection, {"append", "--tenant", "acme"}).exit_code, 0);
    EXPECT_EQ(on(connection, {"list", "--tenant", "acme"}).exit_code, 0);
    EXPECT_EQ(on(connection, {"verify", "--tenant", "acme"}).exit_code, 0);
    const ProcessResult all = on(connection, {"verify", "--all"});
    EXPECT_EQ(all.exit_code, 3) << "it sees no tenant of its own accord";
    expect_one_line(all, {"GRANT rowlock_auditor"});
}

class List : public CommandOnDatabaseTest {
  protected:
    void append_many(int count) const {
        std::string lines;
        for (int i = 1; i <= count; ++i) {
            lines += fmt::format("{{\"tenant\":\"acme\",\"actor\":\"ann\",\"data\":{{\"n\":{}}}}}\n", i);
        }
        ASSERT_EQ(on_database({"append", "--jsonl", "-"}, lines).exit_code, 0);
    }
};

TEST_F(List, PagesByFromAndLimit) {
    append_many(25);
    const ProcessResult first = on_database({"list", "--tenant", "acme"});
    EXPECT_EQ(lines_of(first.output).size(), 21) << "a head and 20 entries";
    EXPECT_THAT(first.errors, HasSubstr("--from 21"));
    const ProcessResult rest = on_database({"list", "--tenant", "acme", "--from", "21"});
    EXPECT_EQ(lines_of(rest.output).size(), 6);
    EXPECT_EQ(rest.errors, "");
    const ProcessResult none = on_database({"list", "--tenant", "acme", "--from", "26"});
    EXPECT_EQ(none.exit_code, 0);
    EXPECT_EQ(none.output, "tenant acme has no entry from 26 on\n");
}

TEST_F(List, InJsonIsALineForEachEntryAcrossPages) {
    append_many(1205);
    const ProcessResult result = on_database({"list", "--tenant", "acme", "--from", "3", "--limit", "1100", "--json"});
    const auto lines = lines_of(result.output);
    ASSERT_EQ(lines.size(), 1100);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        ASSERT_EQ(member(lines[i], "seq"), std::to_string(i + 3));
        ASSERT_EQ(member(lines[i], "data"), fmt::format("{{\"n\":{}}}", i + 3));
    }
}

TEST_F(List, InJsonKeepsAnEntryOnOneLineWhateverIsInIt) {
    ASSERT_EQ(
        on_database({"append", "--tenant", "ac\nme", "--actor", "a\x1b[31m\n\"b\"", "--data", "{\n\"a\":\r\n \"\\n\"}"})
            .exit_code,
        0);
    const ProcessResult result = on_database({"list", "--tenant", "ac\nme", "--json"});
    const auto lines = lines_of(result.output);
    ASSERT_EQ(lines.size(), 1);
    EXPECT_EQ(member(lines[0], "tenant"), "ac\nme");
    EXPECT_EQ(member(lines[0], "actor"), "a\x1b[31m\n\"b\"");
    EXPECT_EQ(member(lines[0], "data"), "{ \"a\":   \"\\n\"}");
    EXPECT_EQ(member(lines[0], "action"), "null");
}

TEST_F(List, SendsNoControlCharactersOfOthersToATerminal) {
    ASSERT_EQ(on_database({"append", "--tenant", "acme", "--actor", "a\x1b[31m\nb"}).exit_code, 0);
    const ProcessResult result = on_database({"list", "--tenant", "acme"});
    EXPECT_EQ(lines_of(result.output).size(), 2);
    EXPECT_THAT(result.output, testing::Not(HasSubstr("\x1b")));
}

class Verify : public CommandOnDatabaseTest {
  protected:
    Verify() {
        for (int i = 0; i < 5; ++i) {
            for (const char* tenant : {"acme", "bolt"}) {
                EXPECT_EQ(on_database({"append", "--tenant", tenant}).exit_code, 0);
            }
        }
    }
    /// As somebody who may do anything to the tables.
    void tamper(const std::string& sql) const {
        database_.execute("ALTER TABLE rowlock.audit_log DISABLE TRIGGER ALL; " + sql);
    }
};

TEST_F(Verify, OfUntouchedLogsIsIntact) {
    const ProcessResult one = on_database({"verify", "--tenant", "acme"});
    EXPECT_EQ(one.exit_code, 0);
    EXPECT_THAT(one.output, HasSubstr("acme: INTACT, 5 entries\n"));
    const ProcessResult all = on_database({"verify", "--all"});
    EXPECT_EQ(all.exit_code, 0);
    EXPECT_THAT(all.output, HasSubstr("INTACT: 2 tenants, 10 entries, 0 findings"));
}

TEST_F(Verify, OfATenantThatIsNotThereProvesNothing) {
    const ProcessResult result = on_database({"verify", "--tenant", "nobody"});
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_THAT(result.output, testing::Not(HasSubstr("INTACT")));
    expect_one_line(result, {"proves nothing"});
    EXPECT_EQ(member(on_database({"verify", "--tenant", "nobody", "--json"}).output, "verdict"), "EMPTY");
}

TEST_F(Verify, NamesTheKindAndThePlaceOfTampering) {
    tamper("UPDATE rowlock.audit_log SET actor = 'mallory' WHERE tenant_id = 'acme' AND seq = 3");
    tamper("DELETE FROM rowlock.audit_log WHERE tenant_id = 'bolt' AND seq = 5");
    const ProcessResult all = on_database({"verify", "--all"});
    EXPECT_EQ(all.exit_code, 1);
    EXPECT_THAT(all.output, HasSubstr("acme: TAMPERED"));
    EXPECT_THAT(all.output, HasSubstr("entry 3: changed"));
    EXPECT_THAT(all.output, HasSubstr("bolt: TAMPERED"));
    EXPECT_THAT(all.output, HasSubstr("entry 5: tail_missing"));
    EXPECT_THAT(all.output, HasSubstr("TAMPERED: 2 tenants"));
    const ProcessResult json = on_database({"verify", "--tenant", "acme", "--json"});
    EXPECT_EQ(json.exit_code, 1);
    EXPECT_EQ(member(json.output, "verdict"), "TAMPERED");
    EXPECT_THAT(member(json.output, "findings"), HasSubstr("\"kind\":\"changed\",\"tenant\":\"acme\",\"seq\":3"));
}

TEST_F(Verify, OfATenantBesideATamperedOneIsIntact) {
    tamper("DELETE FROM rowlock.audit_log WHERE tenant_id = 'bolt' AND seq = 2");
    EXPECT_EQ(on_database({"verify", "--tenant", "acme"}).exit_code, 0);
    EXPECT_EQ(on_database({"verify", "--tenant", "bolt"}).exit_code, 1);
}

TEST_F(Verify, SaysTheSameOfManyTenantsAtOnce) {
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(on_database({"append", "--tenant", "tenant " + std::to_string(i)}).exit_code, 0);
    }
    tamper("UPDATE rowlock.audit_log SET actor = 'mallory' WHERE tenant_id IN ('acme', 'tenant 3', 'tenant 11')");
    const ProcessResult one_by_one = on_database({"verify", "--all", "--json"});
    EXPECT_EQ(one_by_one.exit_code, 1);
    EXPECT_EQ(lines_of(one_by_one.output).size(), 22U);
    for (const char* jobs : {"2", "5", "64"}) {
        const ProcessResult at_once = on_database({"verify", "--all", "--json", "--full-speed", "--jobs", jobs});
        EXPECT_EQ(at_once.exit_code, 1) << jobs;
        EXPECT_EQ(at_once.output, one_by_one.output) << jobs;
    }
    expect_one_line(on_database({"verify", "--all", "--jobs", "0"}), {"--jobs"});
}

TEST_F(Verify, OfManyTenantsAtOnceEndsWithTheFaultOfOne) {
    tamper("ALTER TABLE rowlock.ledger DISABLE TRIGGER ALL; DELETE FROM rowlock.ledger");
    const ProcessResult result = on_database({"verify", "--all", "--jobs", "2"});
    EXPECT_EQ(result.exit_code, 2);
    expect_one_line(result, {"rowlock.ledger is empty"});
}

TEST_F(Verify, ReadsTwoTenantsAtOnceIfAsked) {
    Database holder(DatabaseOptions{.connection = database_.connection(), .connections_max = 1});
    std::optional<BackgroundProcess> verifying;
    holder.transact({}, [&](Transaction& transaction) {
        transaction.execute({"test.lock", "LOCK TABLE rowlock.ledger"});
        verifying.emplace(command(
            {"--db", database_.connection(), "--keyring", keyring().string(), "verify", "--all", "--jobs", "2"}));
        const auto waiting = [&] {
            return database_.value(
                "SELECT count(*) FROM pg_locks WHERE NOT granted AND database = (SELECT oid FROM"
                " pg_database WHERE datname = current_database())");
        };
        for (int i = 0; i < 1000 && waiting() != "2"; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
        EXPECT_EQ(waiting(), "2");
    });
    EXPECT_EQ(verifying->wait(std::chrono::seconds(30)).exit_code, 0);
}

}  // namespace
}  // namespace rowlock::test
