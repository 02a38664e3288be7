// Every claim of the dependency relation as a scenario on a real server: with the reduction, and with the sessions in
// every order, the end states and what each session saw are those of all interleavings.
#include "race/reduction_claims.hpp"

namespace rowlock::race::test {
namespace {

constexpr Claim locks[] = {
    {"LOCK TABLE waits for a plain read, and a plain read for LOCK TABLE", 2, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0); CREATE TABLE u(n int); }
session reads step b { BEGIN } step r { SELECT n FROM t } step w { INSERT INTO u SELECT count(*) FROM u } step c { COMMIT }
session locks step b { BEGIN } step l { LOCK TABLE t } step w { INSERT INTO u SELECT 10 + count(*) FROM u } step c { COMMIT }
)"},
    {"LOCK TABLE alone reads and writes nothing, and still orders the writers after it", 2, R"(
setup { CREATE TABLE t(n int); CREATE TABLE u(n int); }
session locks step b { BEGIN } step l { LOCK TABLE t IN SHARE MODE } step r { SELECT count(*) FROM u } step c { COMMIT }
session writes step b { BEGIN } step i { INSERT INTO u VALUES (1) } step w { INSERT INTO t VALUES (1) } step c { COMMIT }
)"},
    {"a child's insert locks its parent's key", 3, R"(
setup { CREATE TABLE parent(id int PRIMARY KEY, n int); CREATE TABLE child(id int PRIMARY KEY, parent int REFERENCES parent);
        INSERT INTO parent VALUES (1, 0); }
session adds step b { BEGIN } step i { INSERT INTO child VALUES (1, 1) } step c { COMMIT }
session removes step b { BEGIN } step r { SELECT count(*) FROM child } step d { DELETE FROM parent WHERE id = 1 } step c { COMMIT }
)"},
    {"a parent's update of what is no key does not wait for a child's insert, of its key it does", 2, R"(
setup { CREATE TABLE parent(id int PRIMARY KEY, n int); CREATE TABLE child(id int PRIMARY KEY, parent int REFERENCES parent ON UPDATE CASCADE);
        INSERT INTO parent VALUES (1, 0), (2, 0); }
session adds step b { BEGIN } step i { INSERT INTO child VALUES (1, 1) } step j { INSERT INTO child VALUES (2, 2) } step c { COMMIT }
session moves step b { BEGIN } step n { UPDATE parent SET n = 1 WHERE id = 2 } step k { UPDATE parent SET id = 3 WHERE id = 1 } step c { COMMIT }
)"},
    {"equal keys of a second unique index make inserts wait", 2, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, tag text UNIQUE); }
session a step b { BEGIN } step i { INSERT INTO t VALUES (1, 'x') } step c { COMMIT }
session z step b { BEGIN } step i { INSERT INTO t VALUES (2, 'x') } step e { ROLLBACK }
session y step i { INSERT INTO t VALUES (3, 'x') ON CONFLICT DO NOTHING }
)"},
    {"an exclusion constraint makes inserts of other keys wait", 2, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, r int4range, EXCLUDE USING gist (r WITH &&)); }
session a step b { BEGIN } step i { INSERT INTO t VALUES (1, '[1,5]') } step c { COMMIT }
session z step b { BEGIN } step i { INSERT INTO t VALUES (2, '[5,9]') } step c { COMMIT }
)"},
    {"row locks follow the server's matrix", 3, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0); CREATE TABLE u(n int); }
session shares step s { BEGIN; SELECT n FROM t WHERE id = 1 FOR SHARE } step w { INSERT INTO u SELECT n FROM t } step c { COMMIT }
session keeps step k { BEGIN; SELECT n FROM t WHERE id = 1 FOR KEY SHARE } step c { COMMIT }
session writes step u { UPDATE t SET n = n + 1 WHERE id = 1 }
)"},
    {"advisory locks, shared and not, of one and two parts", 2, R"(
setup { CREATE TABLE u(n int); }
session a step b { BEGIN } step l { SELECT pg_advisory_xact_lock(1, 7) } step r { INSERT INTO u SELECT count(*) FROM u } step c { COMMIT }
session z step b { BEGIN } step s { SELECT pg_advisory_xact_lock_shared(1, 7) } step r { SELECT count(*) FROM u } step c { COMMIT }
)"},
};

constexpr Claim releases[] = {
    {"COMMIT carries its deferred checks", 2, R"(
setup { CREATE TABLE parent(id int PRIMARY KEY);
        CREATE TABLE child(id int PRIMARY KEY, parent int REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
        INSERT INTO parent VALUES (1); }
session adds step b { BEGIN } step i { INSERT INTO child VALUES (1, 1) } step c { COMMIT }
session removes step b { BEGIN } step d { DELETE FROM parent WHERE id = 1 } step c { COMMIT }
)"},
    {"COMMIT runs deferred triggers, which read other tables", 2, R"(
setup { CREATE TABLE t(n int); CREATE TABLE seen(n bigint);
        CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO seen SELECT count(*) FROM u; RETURN NULL; END $$;
        CREATE TABLE u(n int);
        CREATE CONSTRAINT TRIGGER look AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION look(); }
session a step b { BEGIN } step i { INSERT INTO t VALUES (1) } step c { COMMIT }
session z step b { BEGIN } step i { INSERT INTO u VALUES (1) } step c { COMMIT }
)"},
    {"ROLLBACK TO gives locks back", 2, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0); CREATE TABLE u(n int); }
session undoes step b { BEGIN } step s { SAVEPOINT s } step u { UPDATE t SET n = 5 WHERE id = 1 } step r { ROLLBACK TO s }
                 step w { INSERT INTO u SELECT count(*) FROM u } step c { COMMIT }
session waits step b { BEGIN } step u { UPDATE t SET n = n + 1 WHERE id = 1 } step w { SELECT count(*) FROM u } step c { COMMIT }
)"},
    {"a failing step gives locks back", 2, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0); CREATE TABLE u(n int); }
session fails step b { BEGIN } step u { UPDATE t SET n = 5 WHERE id = 1 } step f { SELECT 1 / 0 } step e { ROLLBACK }
session waits step b { BEGIN } step u { UPDATE t SET n = n + 1 WHERE id = 1 } step c { COMMIT }
session looks step r { SELECT n FROM t }
)"},
    {"what an exception handler swallows was locked and read all the same", 2, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0); CREATE TABLE told(n int);
        CREATE FUNCTION try(v int) RETURNS int LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO t VALUES (v, 0); RETURN 1; EXCEPTION WHEN unique_violation THEN RETURN 0; END $$; }
session a step b { BEGIN } step t { SELECT try(2) } step u { SELECT try(3) } step c { COMMIT }
session z step b { BEGIN } step d { INSERT INTO t VALUES (2, 9) } step c { COMMIT }
)"},
    {"session-level advisory locks outlive the transaction, and unlocking gives them back", 2, R"(
setup { CREATE TABLE u(n int); }
session a step l { SELECT pg_advisory_lock(1) } step w { INSERT INTO u VALUES (1) } step x { SELECT pg_advisory_unlock(1) }
session z step l { SELECT pg_advisory_lock(1), (SELECT count(*) FROM u) } step x { SELECT pg_advisory_unlock(1) }
)"},
    {"a client that dies gives everything back", 2, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0); }
session dies step b { BEGIN } step u { UPDATE t SET n = 5 WHERE id = 1 } step x { \disconnect }
session waits step b { BEGIN; SET LOCAL lock_timeout = '1s' } step u { UPDATE t SET n = n + 1 WHERE id = 1 } step c { COMMIT }
)"},
    {"a client that dies with a session-level lock gives it back", 2, R"(
setup { CREATE TABLE u(n int); }
session dies step l { SELECT pg_advisory_lock(1) } step w { INSERT INTO u VALUES (1) } step x { \disconnect }
session waits step l { SELECT pg_advisory_lock(1), (SELECT count(*) FROM u) } step x { SELECT pg_advisory_unlock(1) }
)"},
};

constexpr Claim snapshots[] = {
    {"a plain read sees the COMMIT, not the write", 2, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0); }
session reads step b { BEGIN } step r { SELECT n FROM t } step s { SELECT n FROM t } step c { COMMIT }
session writes step b { BEGIN } step w { UPDATE t SET n = 1 } step c { COMMIT }
)"},
    {"now() is that of BEGIN", 2, R"(
setup { CREATE SEQUENCE moment; }
session reads step b { BEGIN } step r { SELECT last_value < (extract(epoch FROM now()) * 1000000)::bigint FROM moment } step c { COMMIT }
session marks step m { SELECT setval('moment', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) IS NOT NULL }
)"},
    {"now() is that of the step that has BEGIN in it", 2, R"(
setup { CREATE SEQUENCE moment; }
session reads step b { BEGIN; SELECT 1 } step r { SELECT last_value < (extract(epoch FROM now()) * 1000000)::bigint FROM moment } step c { COMMIT }
session marks step m { SELECT setval('moment', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) IS NOT NULL }
)"},
    {"REPEATABLE READ: the first statement is the snapshot of later reads", 3, R"(
setup { CREATE TABLE t(n int); CREATE TABLE u(n int); INSERT INTO t VALUES (0); INSERT INTO u VALUES (0); }
session reads step b { BEGIN ISOLATION LEVEL REPEATABLE READ } step s { SELECT 1 } step t { SELECT n FROM t } step u { SELECT n FROM u } step c { COMMIT }
session writes step t { UPDATE t SET n = 1 } step u { UPDATE u SET n = 1 }
)"},
    {"REPEATABLE READ: and of later write targets", 2, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0); CREATE TABLE u(n int); }
session late step b { BEGIN ISOLATION LEVEL REPEATABLE READ } step s { SELECT count(*) FROM u } step w { UPDATE t SET n = n + 1 } step c { COMMIT }
session early step b { BEGIN } step w { UPDATE t SET n = n + 10 } step c { COMMIT }
)"},
    {"REPEATABLE READ: TRUNCATE is seen by an older snapshot too", 2, R"(
setup { CREATE TABLE t(n int); CREATE TABLE u(n int); INSERT INTO t VALUES (0); }
session reads step b { BEGIN ISOLATION LEVEL REPEATABLE READ } step s { SELECT count(*) FROM u } step r { SELECT count(*) FROM t } step c { COMMIT }
session empties step b { BEGIN } step t { TRUNCATE t } step c { COMMIT }
)"},
    {"REPEATABLE READ by default, with nothing of it in the session's text", 2, R"(
isolation "repeatable read"
setup { CREATE TABLE t(n int); CREATE TABLE u(n int); INSERT INTO t VALUES (0); INSERT INTO u VALUES (0); }
session reads step b { BEGIN } step s { SELECT n FROM u } step t { SELECT n FROM t } step c { COMMIT }
session writes step t { UPDATE t SET n = 1 }
)"},
    {"REPEATABLE READ set for the database, with nothing of it in the scenario's text", 2, R"(
setup { CREATE TABLE t(n int); CREATE TABLE u(n int); INSERT INTO t VALUES (0); INSERT INTO u VALUES (0);
        DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = %L', current_database(), 'repeatable' || ' ' || 'read'); END $$; }
session reads step b { BEGIN } step s { SELECT n FROM u } step t { SELECT n FROM t } step c { COMMIT }
session writes step t { UPDATE t SET n = 1 }
)"},
    {"SERIALIZABLE: write skew, and who fails", 3, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, on_call bool); INSERT INTO t VALUES (1, true), (2, true); }
session a step b { BEGIN ISOLATION LEVEL SERIALIZABLE } step r { SELECT count(*) FROM t WHERE on_call } step w { UPDATE t SET on_call = false WHERE id = 1 } step c { COMMIT }
session z step b { BEGIN ISOLATION LEVEL SERIALIZABLE } step r { SELECT count(*) FROM t WHERE on_call } step w { UPDATE t SET on_call = false WHERE id = 2 } step c { COMMIT }
)"},
    {"SERIALIZABLE: a reader's snapshot between two commits", 2, R"(
setup { CREATE TABLE x(n int); CREATE TABLE y(n int); INSERT INTO x VALUES (0); INSERT INTO y VALUES (0); }
session a step r { BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT n FROM x } step w { UPDATE y SET n = 1 } step c { COMMIT }
session z step w { BEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE x SET n = 1 } step c { COMMIT }
session r step s { BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT x.n, y.n FROM x, y } step c { COMMIT }
)"},
};

constexpr Claim statements[] = {
    {"an UPDATE that matches no row may match one later", 2, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0); }
session misses step u { UPDATE t SET n = 9 WHERE id = 2 }
session adds step b { BEGIN } step i { INSERT INTO t VALUES (2, 0) } step c { COMMIT }
)"},
    {"a lost update of autocommit steps", 2, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0); }
session a step r { SELECT n FROM t WHERE id = 1 \gset } step w { UPDATE t SET n = :n + 1 WHERE id = 1 }
session z step r { SELECT n FROM t WHERE id = 1 \gset } step w { UPDATE t SET n = :n + 1 WHERE id = 1 }
)"},
    {"several statements of one step are one transaction", 2, R"(
setup { CREATE TABLE t(n int); CREATE TABLE u(n int); INSERT INTO t VALUES (0); INSERT INTO u VALUES (0); }
session a step s { UPDATE t SET n = 1; UPDATE u SET n = 1 }
session z step r { SELECT n FROM t } step s { SELECT n FROM u }
)"},
    {"a sequence's value that reaches a column", 2, R"(
setup { CREATE TABLE t(id int GENERATED ALWAYS AS IDENTITY, who text); CREATE TABLE s(id serial, who text); }
session a step b { BEGIN } step i { INSERT INTO t(who) VALUES ('a') } step j { INSERT INTO s(who) VALUES ('a') } step c { COMMIT }
session z step i { INSERT INTO t(who) VALUES ('z') } step j { INSERT INTO s(who) VALUES ('z') }
)"},
    {"a sequence's value that a rollback does not give back", 2, R"(
setup { CREATE SEQUENCE q; CREATE TABLE t(n bigint); }
session a step b { BEGIN } step n { SELECT nextval('q') } step e { ROLLBACK }
session z step b { BEGIN } step i { INSERT INTO t SELECT last_value FROM q } step n { SELECT nextval('q') } step c { COMMIT }
)"},
    {"LIMIT without ORDER BY takes the heap's order", 2, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0); CREATE TABLE u(n int); }
session a step b { BEGIN } step i { UPDATE t SET n = 1 WHERE id = 1 } step c { COMMIT }
session z step b { BEGIN } step i { UPDATE t SET n = 2 WHERE id = 2 } step c { COMMIT } step l { SELECT id FROM t LIMIT 1 }
)"},
    {"NOWAIT and SKIP LOCKED see locks that nobody waits for", 3, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0); }
session holds step b { BEGIN } step l { SELECT n FROM t WHERE id = 1 FOR UPDATE } step c { COMMIT }
session skips step s { SELECT id FROM t ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED } step n { SELECT id FROM t WHERE id = 1 FOR SHARE NOWAIT }
)"},
    {"a try-lock sees a lock that nobody waits for", 2, R"(
session holds step b { BEGIN } step l { SELECT pg_advisory_xact_lock(3) } step c { COMMIT }
session tries step t { SELECT pg_try_advisory_lock(3) } step u { SELECT pg_advisory_unlock_all() }
)"},
    {"a function reads what its text names", 2, R"(
setup { CREATE TABLE t(n int); INSERT INTO t VALUES (0); CREATE TABLE u(n int); INSERT INTO u VALUES (0);
        CREATE FUNCTION total() RETURNS bigint LANGUAGE sql AS 'SELECT sum(n) FROM t';
        CREATE VIEW v AS SELECT total() AS n; }
session reads step b { BEGIN } step f { SELECT n FROM v } step g { SELECT n FROM v } step c { COMMIT }
session writes step w { UPDATE t SET n = n + 1 } step x { UPDATE u SET n = 1 }
)"},
    {"an aggregate of the user's reads what its function names", 2, R"(
setup { CREATE TABLE t(n int); INSERT INTO t VALUES (0);
        CREATE FUNCTION plus(a bigint, b bigint) RETURNS bigint LANGUAGE sql AS 'SELECT a + b + (SELECT sum(n) FROM t)';
        CREATE AGGREGATE odd(bigint) (SFUNC = plus, STYPE = bigint, INITCOND = '0'); }
session reads step b { BEGIN } step f { SELECT odd(1::bigint) } step g { SELECT odd(1::bigint) } step c { COMMIT }
session writes step w { UPDATE t SET n = n + 1 }
)"},
    {"a domain's check reads what its function names", 2, R"(
setup { CREATE TABLE t(n int); INSERT INTO t VALUES (0);
        CREATE FUNCTION fits(v int) RETURNS bool LANGUAGE sql AS 'SELECT v > (SELECT sum(n) FROM t)';
        CREATE DOMAIN fitting AS int CHECK (fits(VALUE)); }
session reads step b { BEGIN } step f { SELECT 1::fitting } step g { SELECT 2::fitting } step c { COMMIT }
session writes step w { UPDATE t SET n = n + 1 }
)"},
    {"a trigger on a cascade's target writes further tables", 2, R"(
setup { CREATE TABLE parent(id int PRIMARY KEY); CREATE TABLE child(id int PRIMARY KEY, parent int REFERENCES parent ON DELETE CASCADE);
        CREATE TABLE log(n bigint); INSERT INTO parent VALUES (1), (2); INSERT INTO child VALUES (1, 1), (2, 2);
        CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log SELECT count(*) FROM log; RETURN NULL; END $$;
        CREATE TRIGGER note AFTER DELETE ON child FOR EACH ROW EXECUTE FUNCTION note(); }
session a step b { BEGIN } step d { DELETE FROM parent WHERE id = 1 } step e { DELETE FROM parent WHERE id = 2 } step c { COMMIT }
session z step i { INSERT INTO log VALUES (7) }
)"},
    {"SELECT INTO makes a table", 2, R"(
setup { CREATE TABLE t(n int); INSERT INTO t VALUES (0); }
session a step s { SELECT n INTO made FROM t } step d { DROP TABLE made }
session z step r { SELECT count(*) FROM pg_class WHERE relname = 'made' }
)"},
    {"a cursor's rows are those of its opening", 2, R"(
setup { CREATE TABLE t(n int); INSERT INTO t VALUES (0); }
session reads step b { BEGIN } step d { DECLARE k CURSOR FOR SELECT n FROM t } step f { FETCH k } step c { COMMIT }
session writes step w { UPDATE t SET n = n + 1 }
)"},
};

constexpr Claim waits[] = {
    {"waiters on one row may wake in any order", 4, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1); }
session holds step b { BEGIN } step u { UPDATE t SET n = n + 1 } step c { COMMIT }
session doubles step u { UPDATE t SET n = n * 2 }
session adds step u { UPDATE t SET n = n + 5 }
)"},
    {"a wake-up is the event of whoever freed it", 2, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0); CREATE TABLE u(n int); }
session holds step b { BEGIN } step u { UPDATE t SET n = 1 WHERE id = 1 } step c { COMMIT }
session waits step w { WITH w AS (UPDATE t SET n = n + 1 WHERE id = 1 RETURNING n) INSERT INTO u SELECT n FROM w }
session looks step r { SELECT count(*) FROM u }
)"},
    {"each of a cycle may be the victim", 3, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0); }
session a step b { BEGIN } step x { UPDATE t SET n = n + 1 WHERE id = 1 } step y { UPDATE t SET n = n + 1 WHERE id = 2 } step c { COMMIT }
session z step b { BEGIN } step y { UPDATE t SET n = n + 10 WHERE id = 2 } step x { UPDATE t SET n = n + 10 WHERE id = 1 } step c { COMMIT }
)"},
    {"a handler in PL/pgSQL sees a victim's own 40P01", 3, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0);
        CREATE FUNCTION take(which int) RETURNS text LANGUAGE plpgsql AS $$
        BEGIN UPDATE t SET n = n + 1 WHERE id = which; RETURN 'taken';
        EXCEPTION WHEN deadlock_detected THEN RETURN 'victim ' || SQLSTATE; END $$; }
session a step b { BEGIN } step x { SELECT take(1) } step y { SELECT take(2) } step c { COMMIT }
session z step b { BEGIN } step y { SELECT take(2) } step x { SELECT take(1) } step c { COMMIT }
)"},
    {"a cycle that only a queue's order closes is the server's to open", 1, R"(
setup { CREATE TABLE t(n int); CREATE TABLE u(n int); }
session shares step s { BEGIN; LOCK TABLE t IN SHARE MODE } step i { LOCK TABLE u IN SHARE MODE } step c { COMMIT }
session excludes step x { BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE } step c { COMMIT }
session closes step u { BEGIN; LOCK TABLE u IN EXCLUSIVE MODE } step s { LOCK TABLE t IN SHARE MODE } step c { COMMIT }
)"},
    {"lock_timeout runs out or does not", 3, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0); }
session hurries step b { BEGIN; SET LOCAL lock_timeout = '1s' } step u { UPDATE t SET n = n + 1 WHERE id = 1 } step c { COMMIT }
session holds step b { BEGIN } step u { UPDATE t SET n = n * 2 + 1 WHERE id = 1 } step c { COMMIT }
)"},
    {"lock_timeout gives back what the transaction held", 3, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0); }
session hurries step k { BEGIN; SET LOCAL lock_timeout = '1s'; UPDATE t SET n = 7 WHERE id = 2 } step u { UPDATE t SET n = n + 1 WHERE id = 1 } step c { COMMIT }
session holds step b { BEGIN } step u { UPDATE t SET n = n * 2 + 1 WHERE id = 1 } step c { COMMIT }
session third step u { UPDATE t SET n = n + 1 WHERE id = 2 RETURNING n }
)"},
    {"lock_timeout of a step without a transaction", 2, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0); }
session hurries step s { SET lock_timeout = '1s' } step u { UPDATE t SET n = n + 1 WHERE id = 1 }
session holds step b { BEGIN } step u { UPDATE t SET n = n * 2 + 1 WHERE id = 1 } step c { COMMIT }
)"},
    {"statement_timeout runs out or does not", 3, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0); }
session hurries step b { BEGIN; SET LOCAL statement_timeout = '1s' } step u { UPDATE t SET n = n + 1 WHERE id = 1 } step c { COMMIT }
session holds step b { BEGIN } step u { UPDATE t SET n = n * 2 + 1 WHERE id = 1 } step c { COMMIT }
)"},
    {"a session that runs its transaction again after a failure", 2, R"(
setup { CREATE TABLE t(id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0); }
session a on_error retry 2 step b { BEGIN ISOLATION LEVEL REPEATABLE READ } step r { SELECT n FROM t \gset } step w { UPDATE t SET n = :n + 1 } step c { COMMIT }
session z step b { BEGIN } step w { UPDATE t SET n = n + 1 } step c { COMMIT }
)"},
};

TEST_F(Reduction, KeepsTheOutcomesOfLocks) {
    compare(locks);
}
TEST_F(Reduction, KeepsTheOutcomesOfReleases) {
    compare(releases);
}
TEST_F(Reduction, KeepsTheOutcomesOfSnapshots) {
    compare(snapshots);
}
TEST_F(Reduction, KeepsTheOutcomesOfStatements) {
    compare(statements);
}
TEST_F(Reduction, KeepsTheOutcomesOfWaits) {
    compare(waits);
}

}  // namespace
}  // namespace rowlock::race::test
