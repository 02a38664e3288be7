// rowlock quota and rowlock claim, on tables of the user's own.
#include "cli/command_test.hpp"
#include "rowlock/database.hpp"
#include "rowlock/key_claim.hpp"

namespace rowlock::test {
namespace {

using testing::HasSubstr;

using QuotaCommand = CommandOnDatabaseTest;

TEST_F(QuotaCommand, SetsShowsAndRecounts) {
    const Arguments tenant{"--tenant", "acme"};
    const auto quota = [&](Arguments arguments) {
        arguments.insert(arguments.begin(), "quota");
        arguments.insert(arguments.end(), tenant.begin(), tenant.end());
        return on_database(arguments);
    };
    EXPECT_THAT(quota({"show"}).output, HasSubstr("tenant acme has no quota"));
    EXPECT_EQ(quota({"set", "--name", "seats", "--cap", "3"}).output, "0 of 3 used\n");
    database_.execute(
        "CREATE TABLE public.seat (tenant text, n int, status text);"
        "INSERT INTO public.seat VALUES ('acme', 2, 'on'), ('acme', 5, 'off'), ('globex', 1, 'on')");
    const Arguments recount{"recount", "--name", "seats", "--table", "seat", "--tenant-column", "tenant"};
    const ProcessResult repaired = quota(recount);
    EXPECT_EQ(repaired.output, "2 of 3 used, repaired: the quota said 0\n");
    EXPECT_EQ(repaired.exit_code, 1);
    EXPECT_EQ(quota(recount).output, "2 of 3 used, as the quota said\n");
    EXPECT_EQ(quota(recount).exit_code, 0);
    Arguments summed = recount;
    for (const char* const word : {"--amount-column", "n", "--status-column", "status", "--status", "off", "--json"}) {
        summed.emplace_back(word);
    }
    EXPECT_EQ(quota(summed).output, R"({"name":"seats","used":5,"cap":3,"used_before":2,"repaired":true})"
                                    "\n");
    EXPECT_EQ(quota({"show", "--json"}).output, R"({"name":"seats","used":5,"cap":3})"
                                                "\n");
    EXPECT_EQ(lines_of(quota({"show"}).output).back(), "seats     5    3     0");
}

TEST_F(QuotaCommand, SaysWhatIsWrongInOneLine) {
    const ProcessResult missing =
        on_database({"quota", "recount", "--tenant", "acme", "--name", "seats", "--table", "t"});
    EXPECT_EQ(missing.exit_code, 2);
    expect_one_line(missing, {"\"public.t\" does not exist", "--table"});
    const ProcessResult alone =
        on_database({"quota", "recount", "--tenant", "acme", "--name", "seats", "--table", "t", "--status", "on"});
    EXPECT_EQ(alone.exit_code, 2);
    expect_one_line(alone, {"--status-column"});
}

class ClaimCommand : public CommandOnDatabaseTest {
  protected:
    ClaimCommand() {
        database_.execute(
            "CREATE TABLE public.room (id int PRIMARY KEY, key uuid NOT NULL DEFAULT gen_random_uuid());"
            "INSERT INTO public.room VALUES (1), (2)");
        database_.execute(claim({"sql"}).output);
    }
    [[nodiscard]] ProcessResult claim(Arguments arguments) const {
        arguments.insert(arguments.begin(), "claim");
        for (const char* const word : {"--table", "room", "--id", "id", "--key", "key", "--used-keys", "used"}) {
            arguments.emplace_back(word);
        }
        return on_database(arguments);
    }
};

TEST_F(ClaimCommand, ShowsWhoHasWhatAndSweeps) {
    EXPECT_EQ(claim({"status"}).output, "0 open claims, 0 expired; 0 used keys to be swept\n");
    database_.execute(
        "INSERT INTO public.used SELECT id, key, 'ann', 1, now(), now() + '1 min' FROM public.room WHERE id = 1;"
        "INSERT INTO public.used SELECT id, key, 'ben', 3, now() - '2 min'::interval, now() - '1 min'::interval FROM "
        "public.room"
        " WHERE id = 2;"
        "INSERT INTO public.used SELECT 1, gen_random_uuid(), 'cid', 1, now() - '9 day'::interval, now() - '9 "
        "day'::interval,"
        " now() - '9 day'::interval FROM generate_series(1, 25)");
    const ProcessResult status = claim({"status"});
    EXPECT_EQ(status.exit_code, 1) << "one has expired";
    EXPECT_EQ(lines_of(status.output)[0], "2 open claims, 1 expired; 25 used keys to be swept");
    EXPECT_THAT(lines_of(status.output)[2], HasSubstr("ben"));
    EXPECT_THAT(lines_of(status.output)[2], HasSubstr("(over)"));
    EXPECT_EQ(member(claim({"status", "--json"}).output, "expired"), "1");
    EXPECT_EQ(claim({"sweep", "--batch", "10"}).output, "swept 25 used keys\n");
    EXPECT_EQ(claim({"sweep", "--json"}).output, "{\"swept\":0}\n");
    EXPECT_EQ(database_.value("SELECT count(*) FROM public.used"), "2");
}

TEST_F(ClaimCommand, SaysWhatIsWrongInOneLine) {
    const ProcessResult young = claim({"sweep", "--older-than", "59"});
    EXPECT_EQ(young.exit_code, 2);
    expect_one_line(young, {"kept for lease_max (60000 ms)"});
    database_.execute("DROP TABLE public.used");
    const ProcessResult missing = claim({"status"});
    EXPECT_EQ(missing.exit_code, 2);
    expect_one_line(missing, {"public.used", "there is no such table"});
}

}  // namespace
}  // namespace rowlock::test
