// Quotas, raced: the library's own statements explored to the end without a violation; with any one lock or condition
// taken out of them, some race breaks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "quota/quota_sql.hpp"
#include "race/generated_race.hpp"

namespace rowlock::race::test {
namespace {

/// The library's statements, and what a mutation changes of them.
struct Library {
    std::string reserve{reserve_quota.sql};
    std::string release{release_quota.sql};
    std::string set_cap{set_quota_cap.sql};
    std::string lock{lock_quota.sql};
    std::string count =
        count_sql({.table = "member", .tenant_column = "tenant", .status_column = "status", .statuses = {"on"}});
    std::string set_used{set_quota_used.sql};
    std::string hold = hold_rule_sql();
};

/// Everything is named with its schema: the role may be called rowlock, too, and a schema of its name comes first for
/// it. Acme has two seats, one of them taken; nobody may touch its desks, nor the seats of globex.
constexpr std::string_view set_up = R"(
setup {
    CREATE SCHEMA rowlock;
    CREATE TABLE rowlock.quota(tenant_id text, name text, used bigint NOT NULL DEFAULT 0 CHECK (used >= 0),
                               cap bigint NOT NULL, PRIMARY KEY (tenant_id, name));
    CREATE TABLE public.member(tenant text, name text, status text, PRIMARY KEY (tenant, name));
    CREATE TABLE public.told(who text, answer text);
    INSERT INTO rowlock.quota VALUES ('acme', 'seats', 1, 2), ('acme', 'desks', 1, 2), ('globex', 'seats', 1, 2);
    INSERT INTO public.member VALUES ('acme', 'first', 'on'), ('acme', 'gone', 'off'), ('globex', 'gus', 'on');
}
invariant "no more members than the quota says, and it is right" {
    SELECT used FROM rowlock.quota WHERE tenant_id = 'acme' AND name = 'seats'
     AND (used > cap OR used <> (SELECT count(*) FROM public.member WHERE tenant = 'acme' AND status = 'on'))
}
invariant "other quotas are left alone" {
    SELECT tenant_id, name FROM rowlock.quota WHERE (tenant_id = 'globex' OR name = 'desks') AND (used <> 1 OR cap <> 2)
}
)";

std::string of_seats(const std::string& sql, const std::string& value) {
    return with_values(sql, {"'acme'", "'seats'", value});
}

std::string joining(const Library& library, const std::string& who) {
    return fmt::format(
        "session {0}\n    on_error stop\n"
        "    step begin {{ BEGIN }}\n"
        "    step reserve {{ WITH done AS ({1}) SELECT count(*) > 0 AS fits FROM done \\gset }}\n"
        "    step join {{\n\\if :fits\nINSERT INTO public.member VALUES ('acme', '{0}', 'on')\n\\endif\n"
        "INSERT INTO public.told VALUES ('{0}', CASE WHEN :'fits' THEN 'yes' ELSE 'no' END)\n }}\n"
        "    step commit {{ COMMIT }}\n",
        who, of_seats(library.reserve, "1"));
}

std::string two_join(const Library& library) {
    return std::string(set_up) + joining(library, "ann") + joining(library, "ben") +
           "invariant \"one is told yes, the other no\" {\n"
           "    SELECT string_agg(answer, ' ' ORDER BY answer) FROM public.told"
           " HAVING string_agg(answer, ' ' ORDER BY answer) <> 'no yes'\n}\n";
}

std::string leaving(const Library& library, const std::string& who) {
    return fmt::format(
        "session {0}\n    on_error stop\n"
        "    step begin {{ BEGIN }}\n"
        "    step leave {{ DELETE FROM public.member WHERE tenant = 'acme' AND name = 'first' }}\n"
        "    step release {{ WITH done AS ({1}) SELECT count(*) > 0 AS fits FROM done \\gset\n"
        "INSERT INTO public.told VALUES ('{0}', CASE WHEN :'fits' THEN 'yes' ELSE 'no' END)\n }}\n"
        "    step commit {{ COMMIT }}\n",
        who, of_seats(library.release, "1"));
}

/// Both believe that they take the last member away; the one whose DELETE finds nothing releases all the same.
std::string two_leave(const Library& library) {
    return std::string(set_up) + leaving(library, "ann") + leaving(library, "ben") +
           "invariant \"one is told yes, the other no\" {\n"
           "    SELECT count(*) FROM public.told HAVING count(*) <> 2 OR count(*) FILTER (WHERE answer = 'yes') <> "
           "1\n}\n";
}

std::string recount_while_one_joins(const Library& library) {
    return std::string(set_up) + joining(library, "ann") +
           fmt::format(
               "session auditor\n    on_error stop\n"
               "    step begin {{ BEGIN }}\n"
               "    step lock {{ {0} }}\n"
               "    step count {{ {1} \\gset }}\n"
               "    step set {{ {2} }}\n"
               "    step commit {{ COMMIT }}\n",
               of_seats(library.lock, ""), with_values(library.count, {"'acme'", "'{on}'"}),
               of_seats(library.set_used, ":count"));
}

/// The first use of a quota, by two at once; and a cap lowered while somebody joins.
std::string caps_change(const Library& library) {
    const auto setting = [&](const std::string& who) {
        return fmt::format(
            "session {0}\n    on_error stop\n"
            "    step set {{ {1} }}\n"
            "    step tell {{ INSERT INTO public.told VALUES ('{0}', 'yes') }}\n",
            who, with_values(library.set_cap, {"'acme'", "'rooms'", "2"}));
    };
    return std::string(set_up) + setting("ann") + setting("ben") +
           "invariant \"both are told\" { SELECT count(*) FROM public.told HAVING count(*) <> 2 }\n";
}

std::string counting(const Library& library, const std::string& who) {
    return fmt::format(
        "session {0}\n    on_error stop\n"
        "    step begin {{ BEGIN }}\n"
        "    step hold {{ {1} }}\n"
        "    step count {{ SELECT count(*) < 2 AS fits FROM public.member WHERE tenant = 'acme' AND status = 'on' "
        "\\gset }}\n"
        "    step join {{ INSERT INTO public.member SELECT 'acme', '{0}', 'on' WHERE :'fits' }}\n"
        "    step commit {{ COMMIT }}\n",
        who, with_values(library.hold, {"'acme'", "'members per tenant'", "'seats'"}));
}

std::string two_count_under_a_rule(const Library& library) {
    std::string text = std::string(set_up) + counting(library, "ann") + counting(library, "ben");
    // Here nothing keeps a total.
    return without(text, "used > cap OR used <> (SELECT", "2 < (SELECT");
}

using RaceText = std::string (*)(const Library&);
struct Race {
    std::string name;
    RaceText text;
};
const std::vector<Race> races{{"two join", two_join},
                              {"two leave", two_leave},
                              {"recount while one joins", recount_while_one_joins},
                              {"caps change", caps_change},
                              {"two count under a rule", two_count_under_a_rule}};

struct Mutation {
    std::string Library::* statement;
    std::string piece;
    std::string instead;
    RaceText breaks;
};
const std::vector<Mutation> mutations{
    {&Library::reserve, "tenant_id = $1 AND ", "", two_join},
    {&Library::reserve, "name = $2 AND ", "", two_join},
    {&Library::reserve, " AND used <= cap - $3::bigint", "", two_join},
    {&Library::release, "tenant_id = $1 AND ", "", two_leave},
    {&Library::release, "name = $2 AND ", "", two_leave},
    {&Library::release, " AND used >= $3::bigint", "", two_leave},
    {&Library::set_cap, " ON CONFLICT (tenant_id, name) DO UPDATE SET cap = excluded.cap", "", caps_change},
    {&Library::lock, " FOR UPDATE", "", recount_while_one_joins},
    {&Library::lock, "tenant_id = $1 AND name = $2", "false", recount_while_one_joins},
    {&Library::count, " AND \"status\"::text = ANY ($2::text[])", "", recount_while_one_joins},
    {&Library::count, "\"tenant\" = $1 AND ", "", recount_while_one_joins},
    {&Library::set_used, "tenant_id = $1 AND ", "", recount_while_one_joins},
    {&Library::set_used, " AND name = $2", "", recount_while_one_joins},
    {&Library::hold, "pg_advisory_xact_lock(", "greatest(", two_count_under_a_rule},
};

TEST(QuotaRaces, OfTheLibrarysOwnStatementsAreExploredToTheEndWithoutAViolation) {
    RaceRunner runner;
    for (const Race& race : races) runner.expect_holds(race.name, race.text({}));
}

TEST(QuotaRaces, BreakWhenAnyOneLockOrConditionIsTakenOut) {
    RaceRunner runner;
    for (const Mutation& mutation : mutations) {
        Library library;
        library.*mutation.statement = without(library.*mutation.statement, mutation.piece, mutation.instead);
        const CheckResult result = runner.check_text(mutation.breaks(library), true);
        EXPECT_EQ(result.exit_code(), 1) << mutation.piece << " survives in " << library.*mutation.statement;
    }
}

}  // namespace
}  // namespace rowlock::race::test
