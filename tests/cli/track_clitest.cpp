// rowlock track, untrack and tracked.
#include "cli/command_test.hpp"

namespace rowlock::test {
namespace {

using testing::HasSubstr;

class TrackCommand : public CommandOnDatabaseTest {
  protected:
    TrackCommand() {
        database_.execute(
            "CREATE SCHEMA shop; CREATE TABLE shop.\"Invoice\" (id int PRIMARY KEY, tenant_id text NOT NULL, iban text,"
            " updated_at timestamptz)");
    }
    [[nodiscard]] ProcessResult track(Arguments more = {}) const {
        Arguments arguments{"track", "shop.\"Invoice\"", "--tenant-column", "tenant_id"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        return on_database(std::move(arguments));
    }
};

TEST_F(TrackCommand, TracksOnceAndAnewAndListsAndTakesItAway) {
    EXPECT_THAT(on_database({"tracked"}).output, HasSubstr("no table is tracked"));
    ProcessResult result = track({"--exclude", "updated_at", "--mask", "iban"});
    EXPECT_EQ(result.output, "shop.\"Invoice\" is tracked from now on\n") << result.errors;
    EXPECT_EQ(result.exit_code, 0);
    result = track({"--exclude", "updated_at", "--mask", "iban"});
    EXPECT_EQ(result.output, "shop.\"Invoice\" was tracked so already\n");
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(member(track({"--mask", "iban", "--json"}).output, "outcome"), "retracked");
    result = on_database({"tracked"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.output, HasSubstr("shop.\"Invoice\"  tenant_id"));
    EXPECT_THAT(result.output, HasSubstr("current"));
    EXPECT_THAT(on_database({"tracked", "--json"}).output,
                HasSubstr(R"("table":"shop.\"Invoice\"","tenant_column":"tenant_id","excluded":[],"masked":["iban"])"));
    database_.execute("INSERT INTO shop.\"Invoice\" VALUES (1, 'acme', 'DE1', now())");
    EXPECT_EQ(
        database_.value("SELECT concat_ws(' ', tenant_id, action, data->'new'->>'iban') FROM rowlock.audit_staged"),
        "acme row.insert masked");
    EXPECT_THAT(on_database({"untrack", "shop.\"Invoice\""}).output, HasSubstr("is not tracked any more"));
    result = on_database({"untrack", "shop.\"Invoice\"", "--json"});
    EXPECT_EQ(member(result.output, "was_tracked"), "false");
    EXPECT_EQ(result.exit_code, 0);
}

TEST_F(TrackCommand, TellsThatATableHasChangedSince) {
    EXPECT_EQ(track().exit_code, 0);
    database_.execute("ALTER TABLE shop.\"Invoice\" ADD COLUMN more int");
    ProcessResult result = on_database({"tracked"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.output, HasSubstr("stale: columns of shop.\"Invoice\" have changed"));
    expect_one_line(result, {"run rowlock track again"});
    EXPECT_THAT(on_database({"tracked", "--json"}).output, HasSubstr(R"("stale":true)"));
    EXPECT_THAT(track().output, HasSubstr("is tracked anew"));
    EXPECT_EQ(on_database({"tracked"}).exit_code, 0);
}

TEST_F(TrackCommand, PrintsWhatAMigrationCanRun) {
    const ProcessResult printed = run({"track", "shop.\"Invoice\"", "--tenant-column", "tenant_id", "--mask", "iban",
                                       "--exclude", "updated_at", "--actor-setting", "app.user", "--sql"});
    EXPECT_EQ(printed.output,
              "SELECT rowlock.track('shop.\"Invoice\"', 'tenant_id', p_exclude => '{\"updated_at\"}', p_mask => "
              "'{\"iban\"}', p_actor_setting => 'app.user');\n");
    database_.execute(printed.output);
    EXPECT_THAT(track({"--mask", "iban", "--exclude", "updated_at", "--actor-setting", "app.user"}).output,
                HasSubstr("was tracked so already"));
}

TEST_F(TrackCommand, RefusesInOneLineWithWhatToDo) {
    const auto refused = [&](const Arguments& arguments, const std::vector<std::string>& parts) {
        const ProcessResult result = on_database(arguments);
        EXPECT_EQ(result.exit_code, 2);
        EXPECT_EQ(result.output, "");
        expect_one_line(result, parts);
    };
    refused({"track", "shop.invoice", "--tenant-column", "tenant_id"}, {"there is no table shop.invoice"});
    refused({"untrack", "shop.invoice"}, {"there is no table shop.invoice"});
    refused({"track", "shop.\"Invoice\""}, {"--tenant-column is required"});
    refused({"track", "shop.\"Invoice\"", "--tenant-column", "tenant"}, {"has no column tenant", "Columns are named"});
    refused({"track", "shop.\"Invoice\"", "--tenant-column", ""}, {"is empty"});
    refused({"track", "shop.\"Invoice\"", "--tenant-column", "tenant_id", "--mask", "id"},
            {"needs its column id", "neither excluded nor masked"});
    database_.execute("ALTER TABLE shop.\"Invoice\" DROP CONSTRAINT \"Invoice_pkey\"");
    refused({"track", "shop.\"Invoice\"", "--tenant-column", "tenant_id"}, {"has no primary key", "ADD PRIMARY KEY"});
}

TEST_F(TrackCommand, TellsWhoMayTrackToWhoMayNot) {
    const TestLogin& clerk = database_.add_login("clerk");
    database_.execute("GRANT rowlock_app TO \"" + clerk.role + "\"; GRANT USAGE ON SCHEMA shop TO \"" + clerk.role +
                      "\"");
    const ProcessResult result =
        on(database_.connection_as(clerk), {"track", "shop.\"Invoice\"", "--tenant-column", "tenant_id"});
    EXPECT_EQ(result.exit_code, 2);
    expect_one_line(result, {"permission denied", "owner of the table with GRANT rowlock_owner"});
    EXPECT_EQ(on(database_.connection_as(clerk), {"tracked"}).exit_code, 0);
    // The owner of a table and member of rowlock_owner may, without being a superuser.
    database_.execute("GRANT rowlock_owner TO \"" + clerk.role + "\"; ALTER TABLE shop.\"Invoice\" OWNER TO \"" +
                      clerk.role + "\"; ALTER SCHEMA shop OWNER TO \"" + clerk.role + "\"");
    EXPECT_EQ(on(database_.connection_as(clerk), {"track", "shop.\"Invoice\"", "--tenant-column", "tenant_id"}).output,
              "shop.\"Invoice\" is tracked from now on\n");
    database_.execute("INSERT INTO shop.\"Invoice\" VALUES (1, 'acme'); TRUNCATE shop.\"Invoice\"");
    EXPECT_EQ(database_.value("SELECT count(*) FROM rowlock.audit_staged"), "2");
    EXPECT_EQ(on(database_.connection_as(clerk), {"untrack", "shop.\"Invoice\""}).exit_code, 0);
}

}  // namespace
}  // namespace rowlock::test
