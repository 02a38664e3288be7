// The dependency relation where rows are resources of their own, and where each state is looked at: as
// reduction_scenarios_test.cpp does it.
#include "race/reduction_claims.hpp"

namespace rowlock::race::test {
namespace {

constexpr Claim looks[] = {
    {"what is always asked sees each state, not the last one alone", 2, R"(
setup { CREATE TABLE a(n int); CREATE TABLE b(n int); }
session one step a { INSERT INTO a VALUES (1) } step z { DELETE FROM a }
session two step b { INSERT INTO b VALUES (1) } step y { DELETE FROM b }
invariant always "never both" { SELECT 1 FROM a, b }
)"},
    {"what is always asked sees a COMMIT, through a view too, and not what nobody asks for", 2, R"(
setup { CREATE TABLE a(n int); CREATE TABLE b(n int); CREATE TABLE c(n int); CREATE VIEW v AS SELECT n FROM b; }
session one step b { BEGIN } step a { INSERT INTO a VALUES (1) } step k { COMMIT }
session two step i { INSERT INTO b VALUES (1) } step d { DELETE FROM b }
session three step c { INSERT INTO c VALUES (1) }
invariant always "b is gone before a comes" { SELECT 1 FROM a, v }
)"},
    {"what is always asked may look at the sessions themselves", 2, R"(
setup { CREATE TABLE a(n int); }
session one step b { BEGIN } step a { SELECT 1 } step k { COMMIT }
session two step b { BEGIN } step a { SELECT 2 } step k { COMMIT }
invariant always "one at a time" { SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction'
    AND datname = current_database() HAVING count(*) > 1 }
)"},
};

constexpr Claim rows[] = {
    {"rows named by the only key are apart", 2, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0); }
session a step b { BEGIN } step u { UPDATE t SET n = n + 1 WHERE id = 1 } step v { UPDATE t SET n = n * 2 WHERE id = 2 } step c { COMMIT }
session z step u { UPDATE t SET n = n + 3 WHERE id = 2 RETURNING n } step r { SELECT n FROM t WHERE id = 1 }
)"},
    {"two that take two rows in either order", 3, R"(
setup { CREATE TABLE t(id text PRIMARY KEY, n int); INSERT INTO t VALUES ('x', 0), ('y', 0); }
session a step b { BEGIN } step u { UPDATE t SET n = n + 1 WHERE id = 'x' } step v { UPDATE t SET n = n * 2 WHERE id = 'y' } step c { COMMIT }
session z step b { BEGIN } step u { UPDATE t SET n = n + 3 WHERE id = 'y' } step v { SELECT n FROM t WHERE id = 'x' FOR UPDATE } step c { COMMIT }
)"},
    {"a row that comes, goes and comes again", 3, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0); }
session a step b { BEGIN } step d { DELETE FROM t WHERE id = 1 } step i { INSERT INTO t VALUES (2, 5) } step c { COMMIT }
session z step i { INSERT INTO t (n, id) VALUES (7, 1) ON CONFLICT (id) DO NOTHING } step d { DELETE FROM t WHERE id = 2 RETURNING n }
)"},
    {"one key has many spellings", 2, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0); }
session a step b { BEGIN } step u { UPDATE t SET n = n + 1 WHERE id = '01' } step c { COMMIT }
session z step r { SELECT n FROM t WHERE id = 1 AND n >= 0 }
)"},
    {"a key that is read first, and one that is not there", 2, R"(
setup { CREATE TABLE pick(k int PRIMARY KEY, v int); INSERT INTO pick VALUES (1, 2), (2, NULL);
        CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0); }
session a step r { SELECT v FROM pick WHERE k = 1 \gset } step u { UPDATE t SET n = n + 1 WHERE id = :v }
session y step p { UPDATE pick SET v = 1 WHERE k = 1 } step w { UPDATE t SET n = 10 * n + 3 WHERE id = 2 RETURNING n }
session z step r { SELECT v FROM pick WHERE k = 2 \gset } step u { UPDATE t SET n = 7 WHERE id = :v }
)"},
    {"rows in a snapshot of the whole transaction", 3, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0); }
session a step b { BEGIN ISOLATION LEVEL REPEATABLE READ } step r { SELECT n FROM t WHERE id = 1 } step u { UPDATE t SET n = n + 1 WHERE id = 2 } step c { COMMIT }
session z step u { UPDATE t SET n = n + 3 WHERE id = 2 } step v { UPDATE t SET n = n + 3 WHERE id = 1 }
)"},
    {"one look at the whole table meets every row", 3, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0); }
session a step u { UPDATE t SET n = 1 WHERE id = 1 } step v { UPDATE t SET n = 1 WHERE id = 2 }
session z step r { SELECT sum(n) FROM t }
)"},
    {"a second unique key puts no row apart", 2, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, tag text UNIQUE); INSERT INTO t VALUES (1, 'a'), (2, 'b'); }
session a step b { BEGIN } step u { UPDATE t SET tag = 'x' WHERE id = 1 } step c { COMMIT }
session z step u { UPDATE t SET tag = 'x' WHERE id = 2 }
)"},
};

TEST_F(Reduction, KeepsTheOutcomesOfRows) {
    compare(rows);
}
TEST_F(Reduction, KeepsTheOutcomesOfLooks) {
    compare(looks);
}

}  // namespace
}  // namespace rowlock::race::test
