// The statements of claims and quotas as text: parameters in their places, names quoted, and what can't be fenced.
#include "claim/claim_sql.hpp"

#include <gmock/gmock.h>

#include "claim/description.hpp"
#include "quota/quota_sql.hpp"

namespace rowlock {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const ClaimedTable room{.table = "room", .id = {"floor", "no"}, .key = "key", .used_keys = "used", .tenant = "tenant"};

TEST(FencedSql, HasTheFencesParametersBehindTheStatementsOwn) {
    const std::string sql =
        fenced_sql(room, " update door SET a = $1, b = $2 WHERE EXISTS (SELECT FROM rowlock_fence)", 2);
    EXPECT_THAT(sql, StartsWith("WITH rowlock_fence AS MATERIALIZED (SELECT 1 FROM \"public\".\"used\" AS u WHERE "
                                "u.\"tenant\" = $3 AND u.\"floor\" = $4 AND u.\"no\" = $5 AND u.\"key\" = $6 AND "
                                "u.epoch = $7 AND u.completed_at IS NULL FOR SHARE)\n update door"));
}

TEST(FencedSql, RefusesWhatWouldBeCarriedOutWhoeverHasTheClaim) {
    for (const std::string sql :
         {"", "UPDATE door SET a = 1", "SELECT 1 FROM rowlock_fence",
          "WITH x AS (SELECT 1) UPDATE door SET a = 1 FROM rowlock_fence", "UPDATEs rowlock_fence"}) {
        EXPECT_THROW(static_cast<void>(fenced_sql(room, sql, 0)), InvalidInput) << sql;
    }
}

TEST(ClaimStatements, TellTheTimeByTheServersClockAlone) {
    const ClaimStatements sql = claim_statements(room);
    for (const std::string& statement : {sql.insert, sql.take_over, sql.complete, sql.renew, sql.sweep, sql.count}) {
        EXPECT_THAT(statement, HasSubstr("clock_timestamp()"));
        EXPECT_THAT(statement, Not(HasSubstr("now()"))) << "the time at which the transaction began";
    }
}

TEST(ClaimStatements, SweepAndCountOneTenantWhereThereAreTenants) {
    EXPECT_THAT(claim_statements(room).sweep, HasSubstr("AND u.\"tenant\" = $3"));
    EXPECT_THAT(claim_statements(room).count, HasSubstr("AND u.\"tenant\" = $1"));
    ClaimedTable without_tenants = room;
    without_tenants.tenant = "";
    EXPECT_THAT(claim_statements(without_tenants).sweep, Not(HasSubstr("tenant")));
}

TEST(ClaimDescription, NeedsAKeyWideEnoughFor128Bits) {
    ClaimCatalog catalog{.columns = {{"room", "no", "integer", true}, {"room", "key", "", true}},
                         .uniques = {{"room", {"no"}}}};
    const ClaimedTable table{.table = "room", .id = {"no"}, .key = "key", .used_keys = "used"};
    for (const auto& [type, fits] : {std::pair{"uuid", true},
                                     {"text", true},
                                     {"bytea", true},
                                     {"character varying(32)", true},
                                     {"character varying(31)", false},
                                     {"bigint", false},
                                     {"character(40)", false}}) {
        catalog.columns[1].type = type;
        EXPECT_THAT(objection_to(table, catalog), fits ? HasSubstr("used keys") : HasSubstr("could come twice"))
            << type;
    }
}

TEST(CountSql, CountsOrSumsUpTheTenantsRows) {
    CountedTable table{.table = "se\"at", .tenant_column = "t"};
    EXPECT_EQ(count_sql(table), R"(SELECT count(*) FROM "public"."se""at" WHERE "t" = $1)");
    table.amount_column = "n";
    table.status_column = "s";
    table.statuses = {"on", "off"};
    EXPECT_EQ(count_sql(table),
              "SELECT coalesce(sum(\"n\"), 0)::bigint FROM \"public\".\"se\"\"at\" WHERE \"t\" = $1 AND "
              "\"s\"::text = ANY ($2::text[])");
}

}  // namespace
}  // namespace rowlock
