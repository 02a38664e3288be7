// Key claims, raced: the library's own statements explored to the end without a violation; with any one lock or
// condition taken out of them, some race breaks; and so do the naive forms.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "claim/claim_sql.hpp"
#include "race/generated_race.hpp"

namespace rowlock::race::test {
namespace {

const ClaimedTable room_table{.table = "room", .id = {"room_id"}, .key = "room_key", .used_keys = "used_room_keys"};

/// The library's statements with a clock of the race's own, and what a mutation changes of them.
struct Library {
    ClaimStatements sql = claim_statements(room_table, "(SELECT t FROM clock)");
    /// A write by `player`, who leaves his name in the history.
    [[nodiscard]] std::string write(const std::string& player, const std::string& key, const std::string& epoch,
                                    const std::string& set = "history = history || ' ' || ") const {
        const std::string statement =
            "UPDATE room SET " + set + "'" + player + "' WHERE room_id = 1 AND EXISTS (SELECT FROM rowlock_fence)";
        const std::string own = fenced_sql(room_table, statement, 0);
        return with_values(without(own, claim_statements(room_table).fence, sql.fence), {"1", key, epoch});
    }
    [[nodiscard]] std::string complete(const std::string& player, const std::string& key,
                                       const std::string& epoch) const {
        return with_values(sql.complete, {"1", key, epoch, "'key of " + player + "'"});
    }
};

constexpr std::string_view always_invariant = R"(
invariant always "nobody waits" { SELECT pid FROM pg_locks WHERE NOT granted }
)";

/// Room 1 is played for. Of room 2 somebody else has the same key, and his lease is over; room 3 nobody has claimed.
std::string set_up(const Library& library, const std::string& more = "") {
    return "setup {\n"
           "    CREATE TABLE clock(t timestamptz NOT NULL);\n"
           "    CREATE TABLE room(room_id int PRIMARY KEY, pebbles int NOT NULL, room_key text NOT NULL,"
           " history text NOT NULL DEFAULT '');\n"
           "    CREATE TABLE told(player text, answer text);\n"
           "    CREATE TABLE change(player text);\n" +
           library.sql.create_used_keys +
           "    INSERT INTO clock VALUES ('2026-01-01 12:00');\n"
           "    INSERT INTO room VALUES (1, 5, 'k1'), (2, 5, 'k1'), (3, 5, 'k1');\n"
           "    INSERT INTO used_room_keys (room_id, room_key, claimed_at, leased_until)"
           " VALUES (2, 'k1', '2026-01-01 11:00', '2026-01-01 11:59');\n" +
           more +
           "}\n"
           "invariant \"other rooms are left alone\" {\n"
           "    SELECT room_id FROM room WHERE room_id > 1 AND (pebbles <> 5 OR room_key <> 'k1' OR history <> '')\n"
           "    UNION ALL SELECT 2 WHERE NOT EXISTS (SELECT FROM used_room_keys WHERE room_id = 2 AND epoch = 1"
           " AND completed_at IS NULL AND leased_until = '2026-01-01 11:59')\n"
           "    UNION ALL SELECT room_id FROM used_room_keys WHERE room_id = 3\n"
           "}\n";
}

/// Ann had claimed room 1, and her lease is over.
constexpr const char* expired_claim =
    "    INSERT INTO used_room_keys (room_id, room_key, owner, claimed_at, leased_until)"
    " VALUES (1, 'k1', 'ann', '2026-01-01 11:00', '2026-01-01 11:30');\n";

/// What KeyClaim::claim does, up to its answer in the variables won, key and epoch.
std::string claim_in_parts(const Library& library, const std::string& player, const std::string& key,
                           const std::string& between) {
    const std::vector<std::string> values{"1", key, "'" + player + "'", "1000"};
    return "SAVEPOINT rowlock_claim;" + with_values(library.sql.look_and_lock, values) + "\\gset seen_\n" + between +
           "\\if :seen_pg_try_advisory_xact_lock\n" + with_values(library.sql.take_over, values) + "\\gset taken_\n" +
           with_values(library.sql.insert, values) +
           "\\gset\n"
           "\\endif\n"
           "SELECT coalesce(:'epoch', :'taken_epoch') AS epoch, coalesce(:'epoch', :'taken_epoch') IS NOT NULL AS won"
           " \\gset\n"
           "\\if :won\n"
           "RELEASE SAVEPOINT rowlock_claim\n"
           "\\else\n"
           "ROLLBACK TO SAVEPOINT rowlock_claim; RELEASE SAVEPOINT rowlock_claim;"
           " INSERT INTO told VALUES ('" +
           player +
           "', 'no')\n"
           "\\endif\n";
}
/// No epoch is known before the statements have told one.
constexpr const char* nothing_known = "SELECT NULL AS epoch, NULL AS taken_epoch, NULL AS won \\gset\n";

std::string claim_at_once(const Library& library, const std::string& player, const std::string& key) {
    return nothing_known + ("BEGIN;" + claim_in_parts(library, player, key, "") + "COMMIT\n");
}

/// One transaction for claim, writes and completion. The players decide by what they read before.
std::string player_in_one_transaction(const Library& library, const std::string& player, int takes) {
    return fmt::format(
        "session {0}\n"
        "    on_error stop\n"
        "    step look {{ {1} BEGIN; SELECT pebbles - {2} AS left_over, room_key AS read_key FROM room WHERE room_id = "
        "1 "
        "\\gset }}\n"
        "    step lock {{ {3} }}\n"
        "    step write {{\n\\if :won\n{4} \\gset written_\n{5} \\gset done_\n"
        "INSERT INTO told VALUES ('{0}', 'yes'); INSERT INTO change VALUES ('{0}')\n\\endif\n }}\n"
        "    step commit {{ COMMIT }}\n",
        player, nothing_known, takes, claim_in_parts(library, player, ":'read_key'", "}\n    step claim {\n"),
        library.write(player, ":'read_key'", ":epoch", "pebbles = :left_over, history = "),
        library.complete(player, ":'read_key'", ":epoch"));
}

constexpr std::string_view count_and_history_agree = R"(
invariant "the room holds what those who were told yes have left" {
    SELECT pebbles FROM room WHERE room_id = 1
     AND pebbles <> 5 - coalesce((SELECT sum(CASE player WHEN 'ann' THEN 1 ELSE 2 END) FROM told WHERE answer = 'yes'), 0)
}
invariant "everybody is told, and one is told yes" {
    SELECT count(*) FROM told HAVING count(*) <> 2 OR count(*) FILTER (WHERE answer = 'yes') < 1
}
invariant "each completion changed the key and left a used one" {
    SELECT 1 WHERE (SELECT count(*) FROM told WHERE answer = 'yes')
                <> (SELECT count(*) FROM used_room_keys WHERE room_id = 1 AND completed_at IS NOT NULL)
}
)";

std::string one_transaction(const Library& library) {
    return set_up(library) + player_in_one_transaction(library, "ann", 1) +
           player_in_one_transaction(library, "ben", 2) + std::string(count_and_history_agree) +
           std::string(always_invariant);
}

/// The claim in a transaction of its own, then a transaction with a write and the completion. No time passes.
std::string player_with_lease(const Library& library, const std::string& player) {
    return fmt::format(
        "session {0}\n"
        "    on_error stop\n"
        "    step claim {{ {1} }}\n"
        "    step write {{\n\\if :won\nBEGIN; {2} \\gset written_\n\\endif\n }}\n"
        "    step done {{\n\\if :won\nSELECT NULL AS room_key \\gset done_\n{3} \\gset done_\n"
        "SELECT CASE WHEN :'done_room_key' IS NULL THEN 'fenced' ELSE 'yes' END AS answer \\gset\n"
        "INSERT INTO told VALUES ('{0}', :'answer'); COMMIT\n\\endif\n }}\n",
        player, claim_at_once(library, player, "'k1'"), library.write(player, "'k1'", ":epoch"),
        library.complete(player, "'k1'", ":epoch"));
}

std::string leases_that_run(const Library& library) {
    return set_up(library) + player_with_lease(library, "ann") + player_with_lease(library, "ben") +
           "invariant \"one is told yes, the other no\" {\n"
           "    SELECT string_agg(answer, ' ' ORDER BY answer) FROM told"
           " HAVING string_agg(answer, ' ' ORDER BY answer) <> 'no yes'\n}\n"
           "invariant \"one writes\" { SELECT history FROM room WHERE room_id = 1 AND history NOT IN (' ann', ' ben') "
           "}\n";
}

/// Ann comes back late, while Ben takes her claim over: her writes come all before his, or not at all.
std::string taken_over(const Library& library) {
    return set_up(library, expired_claim) +
           fmt::format(
               "session ann\n    on_error stop\n"
               "    step write {{ {0} \\gset }}\n"
               "    step again {{ {0} \\gset }}\n"
               "    step complete {{ {1} \\gset }}\n"
               "session ben\n    on_error stop\n"
               "    step claim {{ {2} }}\n"
               "    step write {{\nBEGIN\n\\if :won\n{3} \\gset\n\\endif\n }}\n"
               "    step complete {{\n\\if :won\n{4} \\gset\n\\endif\n }}\n"
               "    step commit {{ COMMIT }}\n",
               library.write("ann", "'k1'", "1"), library.complete("ann", "'k1'", "1"),
               claim_at_once(library, "ben", "'k1'"), library.write("ben", "'k1'", ":epoch"),
               library.complete("ben", "'k1'", ":epoch")) +
           "invariant \"nothing late lands\" { SELECT history FROM room WHERE room_id = 1 AND history ~ 'ben.*ann' }\n"
           "invariant \"who took it over completes it\" {\n"
           "    SELECT room_key FROM room WHERE room_id = 1 AND history ~ 'ben' AND room_key <> 'key of ben'\n}\n"
           "invariant \"who is told that he has it can write\" {\n"
           "    SELECT 1 WHERE NOT EXISTS (SELECT FROM told WHERE player = 'ben')"
           " AND (SELECT history FROM room WHERE room_id = 1) !~ 'ben'\n}\n";
}

/// The claim taken over in the transaction that writes: Ann's write waits for the row, and must not land behind Ben's.
std::string taken_over_while_a_write_waits(const Library& library) {
    return set_up(library, expired_claim) +
           fmt::format(
               "session ann\n    on_error stop\n"
               "    step write {{ {0} \\gset }}\n"
               "session ben\n    on_error stop\n"
               "    step claim {{ {1} BEGIN; {2} }}\n"
               "    step write {{\n\\if :won\n{3} \\gset\n\\endif\n }}\n"
               "    step commit {{ COMMIT }}\n",
               library.write("ann", "'k1'", "1"), nothing_known, claim_in_parts(library, "ben", "'k1'", ""),
               library.write("ben", "'k1'", ":epoch")) +
           "invariant \"nothing late lands\" { SELECT history FROM room WHERE room_id = 1 AND history ~ 'ben.*ann' }\n";
}

/// Ann goes on after she has completed; Ben claims the fresh key, and Cid, or nobody, completes for him.
std::string after_completion(const Library& library) {
    return set_up(library) +
           fmt::format(
               "session ann\n    on_error stop\n"
               "    step claim {{ {0} }}\n"
               "    step complete {{\n\\if :won\n{1} \\gset\n\\endif\n }}\n"
               "    step late {{\n\\if :won\n{2} \\gset\n\\endif\n }}\n"
               "    step renew {{\n\\if :won\nSELECT NULL AS int8 \\gset\n{3} \\gset\n"
               "SELECT :'int8' IS NOT NULL AS renewed \\gset\n"
               "\\if :renewed\nINSERT INTO told VALUES ('ann', 'renewed')\n\\endif\n\\endif\n }}\n"
               "    step complete_again {{\n\\if :won\n{4} \\gset\n\\endif\n }}\n"
               "session ben\n    on_error stop\n"
               "    step claim {{ SELECT room_key AS read_key FROM room WHERE room_id = 1 \\gset\n{5} }}\n"
               "    step write {{\n\\if :won\n{6} \\gset\n\\endif\n }}\n",
               claim_at_once(library, "ann", "'k1'"), library.complete("ann", "'k1'", ":epoch"),
               library.write("ann", "'k1'", ":epoch"), with_values(library.sql.renew, {"1", "'k1'", ":epoch", "1000"}),
               with_values(library.sql.complete, {"1", "'k1'", ":epoch", "'another key of ann'"}),
               claim_at_once(library, "ben", ":'read_key'"), library.write("ben", ":'read_key'", ":epoch")) +
           "invariant \"nothing is written after completion\" {\n"
           "    SELECT history FROM room WHERE room_id = 1 AND history ~ 'ann'\n"
           "    UNION ALL SELECT answer FROM told WHERE answer = 'renewed'\n"
           "    UNION ALL SELECT room_key FROM room WHERE room_key = 'another key of ann'\n}\n"
           "invariant \"only what was completed is said to be\" {\n"
           "    SELECT room_key FROM used_room_keys WHERE room_key <> 'k1' AND completed_at IS NOT NULL\n}\n";
}

/// A claim that has expired is taken over or renewed, or its holder is writing; nobody waits for anybody.
std::string expired(const Library& library) {
    return set_up(library, expired_claim) +
           fmt::format(
               "session ann\n    on_error stop\n"
               "    step write {{ SELECT NULL AS int8 \\gset\nBEGIN; {0} }}\n"
               "    step renew {{ {1} \\gset\nSELECT :'int8' IS NOT NULL AS renewed \\gset\n"
               "\\if :renewed\nINSERT INTO told VALUES ('ann', 'renewed')\n\\endif\n }}\n"
               "    step commit {{ COMMIT }}\n"
               "session ben\n    on_error stop\n"
               "    step claim {{ {2}\n\\if :won\nINSERT INTO told VALUES ('ben', 'yes')\n\\endif\n }}\n",
               library.write("ann", "'k1'", "1"), with_values(library.sql.renew, {"1", "'k1'", "1", "1000"}),
               claim_at_once(library, "ben", "'k1'")) +
           "invariant \"renewed or taken over\" {\n"
           "    SELECT count(*) FROM told WHERE answer <> 'no' HAVING count(*) <> 1\n}\n" +
           std::string(always_invariant);
}

/// Ann completes while Ben takes over: he must not be told that he has what is done.
std::string completed_or_taken_over(const Library& library) {
    return set_up(library, expired_claim) +
           fmt::format(
               "session ann\n    on_error stop\n"
               "    step complete {{ BEGIN; {0} \\gset }}\n"
               "    step commit {{ COMMIT }}\n"
               "session ben\n    on_error stop\n"
               "    step claim {{ {1}\n\\if :won\nINSERT INTO told VALUES ('ben', 'yes')\n\\endif\n }}\n",
               library.complete("ann", "'k1'", "1"), claim_at_once(library, "ben", "'k1'")) +
           "invariant \"completed or taken over\" {\n"
           "    SELECT 1 WHERE (SELECT room_key = 'key of ann' FROM room WHERE room_id = 1)"
           " = EXISTS (SELECT FROM told WHERE answer = 'yes')\n}\n" +
           std::string(always_invariant);
}

/// The current key is not swept, though its lease is over: its epoch keeps the late writer out.
std::string swept_while_current(const Library& library) {
    return set_up(library, expired_claim) +
           fmt::format(
               "session sweeper\n    on_error stop\n"
               "    step sweep {{ {0} }}\n"
               "session ann\n    on_error stop\n"
               "    step write {{ {1} }}\n"
               "session ben\n    on_error stop\n"
               "    step claim {{ {2} }}\n"
               "    step write {{\n\\if :won\n{3} \\gset\n\\endif\n }}\n",
               with_values(library.sql.sweep, {"60000", "10"}), library.write("ann", "'k1'", "1"),
               claim_at_once(library, "ben", "'k1'"), library.write("ben", "'k1'", ":epoch")) +
           "invariant \"nothing late lands\" { SELECT history FROM room WHERE room_id = 1 AND history ~ 'ben.*ann' "
           "}\n" +
           std::string(always_invariant);
}

/// A reader with an old key comes back; somebody holds a used key; one key was done with a minute ago.
std::string swept_behind_readers(const Library& library) {
    const std::string old_claims =
        "    INSERT INTO used_room_keys (room_id, room_key, claimed_at, leased_until, completed_at) VALUES"
        " (1, 'k-1', '2026-01-01 10:00', '2026-01-01 10:01', '2026-01-01 10:01'),"
        " (1, 'k0', '2026-01-01 11:58', '2026-01-01 11:59', '2026-01-01 11:59');\n";
    return set_up(library, expired_claim + old_claims) +
           fmt::format(
               "session sweeper\n    on_error stop\n"
               "    step sweep {{ {0} }}\n"
               "session ben\n    on_error stop\n"
               "    step claim {{ {1} }}\n"
               "session cid\n    on_error stop\n"
               "    step hold {{ BEGIN; SELECT FROM used_room_keys WHERE room_key = 'k-1' FOR SHARE }}\n"
               "    step commit {{ COMMIT }}\n",
               with_values(library.sql.sweep, {"60000", "10"}), claim_at_once(library, "ben", "'k-1'")) +
           "invariant \"old keys do not win\" { SELECT 1 WHERE NOT EXISTS (SELECT FROM told WHERE player = 'ben') }\n"
           "invariant \"young keys stay\" {\n"
           "    SELECT 1 WHERE NOT EXISTS (SELECT FROM used_room_keys WHERE room_key = 'k0')\n}\n" +
           std::string(always_invariant);
}

/// Somebody records a used key by hand, without the lock: that claim counts, too, and is waited for.
std::string inserted_by_hand(const Library& library) {
    return set_up(library) +
           fmt::format(
               "session hand\n    on_error stop\n"
               "    step insert {{ BEGIN; INSERT INTO used_room_keys (room_id, room_key, leased_until)"
               " VALUES (1, 'k1', '2026-01-01 13:00') ON CONFLICT DO NOTHING }}\n"
               "    step commit {{ COMMIT }}\n"
               "session ben\n    on_error stop\n"
               "    step claim {{ {0}\n\\if :won\nINSERT INTO told VALUES ('ben', 'yes')\n\\endif\n }}\n",
               claim_at_once(library, "ben", "'k1'")) +
           "invariant \"he is told\" { SELECT count(*) FROM told HAVING count(*) <> 1 }\n"
           "invariant \"one has it\" {\n"
           "    SELECT owner FROM used_room_keys WHERE room_id = 1 AND (owner = 'ben')"
           " <> EXISTS (SELECT FROM told WHERE answer = 'yes')\n}\n";
}

using RaceText = std::string (*)(const Library&);
struct Race {
    std::string name;
    RaceText text;
};
const std::vector<Race> races{{"one transaction", one_transaction},
                              {"leases that run", leases_that_run},
                              {"taken over", taken_over},
                              {"taken over while a write waits", taken_over_while_a_write_waits},
                              {"after completion", after_completion},
                              {"expired", expired},
                              {"completed or taken over", completed_or_taken_over},
                              {"inserted by hand", inserted_by_hand},
                              {"swept while current", swept_while_current},
                              {"swept behind readers", swept_behind_readers}};

struct Mutation {
    std::string ClaimStatements::* statement;
    std::string piece;
    std::string instead;
    RaceText breaks;
};
/// The part of a statement from one text up to another.
std::string part(std::string_view sql, std::string_view from, std::string_view to) {
    const std::size_t begin = sql.find(from);
    return std::string(sql.substr(begin, sql.find(to, begin) - begin));
}
const ClaimStatements whole = Library().sql;

/// Every lock and every condition of the statements that write or decide.
const std::vector<Mutation> mutations{
    {&ClaimStatements::look_and_lock, part(whole.look_and_lock, "pg_try", "\n  FROM"),
     "true AS pg_try_advisory_xact_lock", one_transaction},
    {&ClaimStatements::insert, "t.\"room_id\" = $1 AND ", "", leases_that_run},
    {&ClaimStatements::insert, " AND t.\"room_key\" = $2", "", one_transaction},
    {&ClaimStatements::insert, part(whole.insert, " AND NOT EXISTS", "\n    ON CONFLICT"), "", completed_or_taken_over},
    {&ClaimStatements::insert, "ON CONFLICT (\"room_id\", \"room_key\") DO NOTHING", "", inserted_by_hand},
    {&ClaimStatements::take_over, "u.\"room_id\" = $1 AND ", "", leases_that_run},
    {&ClaimStatements::take_over, " AND u.\"room_key\" = $2", "", swept_behind_readers},
    {&ClaimStatements::take_over, " AND u.leased_until < (SELECT t FROM clock)", "", leases_that_run},
    {&ClaimStatements::take_over, " AND u.completed_at IS NULL", "", completed_or_taken_over},
    {&ClaimStatements::take_over, " SKIP LOCKED", "", expired},
    {&ClaimStatements::take_over, "FOR UPDATE OF u SKIP LOCKED", "", expired},
    {&ClaimStatements::fence, "u.\"room_id\" = $1 AND ", "", after_completion},
    {&ClaimStatements::fence, "u.\"room_key\" = $2 AND ", "", after_completion},
    {&ClaimStatements::fence, " AND u.epoch = $3", "", taken_over},
    {&ClaimStatements::fence, " AND u.completed_at IS NULL", "", after_completion},
    {&ClaimStatements::fence, " FOR SHARE", "", taken_over_while_a_write_waits},
    {&ClaimStatements::complete, "u.\"room_id\" = $1 AND ", "", after_completion},
    {&ClaimStatements::complete, "u.\"room_key\" = $2 AND ", "", after_completion},
    {&ClaimStatements::complete, " AND u.epoch = $3", "", taken_over},
    {&ClaimStatements::complete, "t.\"room_id\" = claim.\"room_id\" AND ", "", after_completion},
    {&ClaimStatements::complete, " AND t.\"room_key\" = claim.\"room_key\"", "", after_completion},
    {&ClaimStatements::renew, "u.\"room_id\" = $1 AND ", "", expired},
    {&ClaimStatements::renew, "u.\"room_key\" = $2 AND ", "", after_completion},
    {&ClaimStatements::renew, " AND u.epoch = $3", "", expired},
    {&ClaimStatements::renew, " AND u.completed_at IS NULL", "", after_completion},
    {&ClaimStatements::sweep, part(whole.sweep, "greatest", "NOT EXISTS"), "", swept_behind_readers},
    {&ClaimStatements::sweep, part(whole.sweep, " AND NOT EXISTS", "\n     LIMIT"), "", swept_while_current},
    {&ClaimStatements::sweep, " SKIP LOCKED", "", swept_behind_readers},
    {&ClaimStatements::sweep, "FOR UPDATE OF u SKIP LOCKED", "", swept_behind_readers},
};

TEST(ClaimRaces, OfTheLibrarysOwnStatementsAreExploredToTheEndWithoutAViolation) {
    RaceRunner runner;
    for (const Race& race : races) {
        const std::size_t executions = runner.expect_holds(race.name, race.text({}));
        RecordProperty("executions of " + race.name, std::to_string(executions));
    }
}

TEST(ClaimRaces, BreakWhenAnyOneLockOrConditionIsTakenOut) {
    RaceRunner runner;
    for (const Mutation& mutation : mutations) {
        Library library;
        library.sql.*mutation.statement = without(library.sql.*mutation.statement, mutation.piece, mutation.instead);
        const CheckResult result = runner.check_text(mutation.breaks(library), true);
        EXPECT_EQ(result.exit_code(), 1) << mutation.piece << " survives in " << library.sql.*mutation.statement;
    }
}

}  // namespace
}  // namespace rowlock::race::test
