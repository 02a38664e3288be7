// The captured changes, played onto an empty copy, give the same table: for random statements on tables of many shapes.
#include <fmt/format.h>

#include <random>
#include <thread>

#include "postgres/capture_fixture.hpp"

namespace rowlock {
namespace {

struct Shape {
    std::string name;
    std::string ddl;  ///< Of table t in the schema that is first in the search_path.
    /// Statements; # is a small number, another one each time, and @ a text or NULL.
    std::vector<std::string> statements;
};

const std::vector<Shape> shapes{
    {"plain",
     "CREATE TABLE t (tenant_id text NOT NULL, id int PRIMARY KEY, a int, n numeric, s text, d json, big text, f "
     "float8, p point,"
     " span interval, list int[], g text GENERATED ALWAYS AS (s || '!') STORED)",
     {"INSERT INTO t (tenant_id, id, a, s, n) SELECT 'w' || n % 3, n, #, @, 1.50 FROM generate_series(#, #) AS n",
      "INSERT INTO t (tenant_id, id, a, s) SELECT 'w' || n % 3, n, #, @ FROM generate_series(#, #) AS n ON CONFLICT "
      "(id) DO"
      " UPDATE SET s = excluded.s, a = t.a + 1, id = CASE WHEN t.id = # THEN t.id + 50 ELSE t.id END",
      "INSERT INTO t (tenant_id, id, s, big) VALUES ('w#', #, @, repeat(md5('#'), 400)), ('w#', #, @, NULL)",
      "UPDATE t SET a = #, s = @ WHERE id = #",
      "UPDATE t SET a = NULL WHERE id < #",
      "UPDATE t SET s = @ WHERE id % 3 = # % 3",
      "UPDATE t SET id = id + # WHERE id > #",
      "UPDATE t SET id = -id",
      "UPDATE t SET id = # WHERE id = #",
      "UPDATE t SET tenant_id = 'w' || # % 4 WHERE id % 2 = # % 2",
      "UPDATE t SET n = CASE WHEN id % 2 = 0 THEN n + 0.10 ELSE round(n, # % 4) END",
      "UPDATE t SET big = big || '#' WHERE id < #",
      "UPDATE t SET a = a",
      "UPDATE t SET d = '{\"a\": #, \"b\":[@]}' WHERE id = #",
      "UPDATE t SET d = NULL, f = -f, p = point(#, #), span = make_interval(hours => #)",
      "UPDATE t SET f = #, list = ARRAY[#, NULL, #] WHERE id % 2 = 0",
      "DELETE FROM t WHERE id = #",
      "DELETE FROM t WHERE id % 5 = # % 5",
      "TRUNCATE t",
      "MERGE INTO t USING (SELECT n AS k FROM generate_series(#, #) AS n) AS m ON t.id = m.k WHEN MATCHED AND m.k % 3 "
      "= 0 THEN DELETE"
      " WHEN MATCHED THEN UPDATE SET id = t.id + 7, s = @ WHEN NOT MATCHED THEN INSERT (tenant_id, id, s) VALUES "
      "('w1', m.k, @)",
      "WITH x AS (DELETE FROM t WHERE id < # RETURNING *), y AS (UPDATE t SET s = @ WHERE id > # RETURNING id)"
      " INSERT INTO t (tenant_id, id, a) SELECT tenant_id, id + 100, a FROM x"}},
    {"composite",
     "CREATE TABLE t (v varchar(40), tenant_id int, code text COLLATE \"C\", b bool, at timestamptz, price "
     "numeric(8,2), PRIMARY KEY (tenant_id, code))",
     {"INSERT INTO t SELECT @, n % 3, 'c' || n, n % 2 = 0, now() FROM generate_series(#, #) AS n ON CONFLICT DO "
      "NOTHING",
      "INSERT INTO t VALUES (@, #, 'c#', NULL, NULL, 1) ON CONFLICT (tenant_id, code) DO UPDATE SET v = excluded.v, "
      "price = t.price + 1",
      "UPDATE t SET tenant_id = tenant_id + 1", "UPDATE t SET code = code || '#' WHERE tenant_id = # % 4",
      "UPDATE t SET code = 'c#' WHERE code = 'c#'", "UPDATE t SET v = @, at = at + '# hours'",
      "UPDATE t SET b = NOT b WHERE tenant_id = # % 4", "UPDATE t SET price = # WHERE code < 'c#'",
      "DELETE FROM t WHERE code = 'c#'", "DELETE FROM t WHERE tenant_id = # % 9", "TRUNCATE t"}},
    {"partitioned",
     "CREATE TABLE t (tenant_id text NOT NULL, id int, region int, v text, PRIMARY KEY (id, region)) PARTITION BY "
     "RANGE (region);"
     "CREATE TABLE t_low PARTITION OF t FOR VALUES FROM (-10) TO (10);"
     "CREATE TABLE t_high (v text, junk int, region int NOT NULL, id int NOT NULL, tenant_id text NOT NULL);"
     "ALTER TABLE t_high DROP COLUMN junk; ALTER TABLE t ATTACH PARTITION t_high FOR VALUES FROM (10) TO (20);"
     "CREATE TABLE t_top PARTITION OF t FOR VALUES FROM (20) TO (200) PARTITION BY LIST (id);"
     "CREATE TABLE t_top_1 PARTITION OF t_top FOR VALUES IN (1, 2, 3, 4, 5); CREATE TABLE t_top_2 PARTITION OF t_top "
     "DEFAULT",
     {"INSERT INTO t SELECT 'w' || n % 3, n, n * 2, @ FROM generate_series(#, #) AS n ON CONFLICT (id, region) DO "
      "UPDATE SET v = excluded.v",
      "INSERT INTO t_high (tenant_id, id, region, v) VALUES ('w#', #, 12, @), ('w1', #, 13, @)",
      "UPDATE t SET region = region + #", "UPDATE t SET region = # WHERE id = #", "UPDATE t_low SET v = @ WHERE id < #",
      "UPDATE t_top SET id = # WHERE id = #", "UPDATE t SET tenant_id = 'w' || # % 3 WHERE region > #",
      "UPDATE t SET v = @", "DELETE FROM t WHERE id = #", "DELETE FROM t_top WHERE id % 2 = # % 2", "TRUNCATE t_high",
      "TRUNCATE t_top", "TRUNCATE t"}},
    {"self_referencing",
     "CREATE TABLE t (id int PRIMARY KEY, tenant_id int NOT NULL, up int REFERENCES t ON UPDATE CASCADE ON DELETE SET "
     "NULL,"
     " side int REFERENCES t ON UPDATE CASCADE ON DELETE SET NULL, v text)",
     {"INSERT INTO t (id, tenant_id, v) SELECT n, n % 2, @ FROM generate_series(#, #) AS n ON CONFLICT DO NOTHING",
      "UPDATE t SET up = #, side = # WHERE id % 3 = # % 3", "UPDATE t SET up = # WHERE id = #",
      "UPDATE t SET id = id + #", "UPDATE t SET id = id + 100 WHERE id % 2 = # % 2", "UPDATE t SET id = # WHERE id = #",
      "UPDATE t SET v = @, tenant_id = # % 3 WHERE id < #", "DELETE FROM t WHERE id = #",
      "DELETE FROM t WHERE id % 3 = # % 3", "TRUNCATE t"}},
};

class Generator {
  public:
    explicit Generator(unsigned seed) : dice_(seed) {}
    int below(int end) { return static_cast<int>(dice_() % static_cast<unsigned>(end)); }

    std::string statement(const Shape& shape) {
        std::string sql;
        // A TRUNCATE now and then, or there is never much in the table.
        do sql = shape.statements[static_cast<std::size_t>(below(static_cast<int>(shape.statements.size())))];
        while (sql.starts_with("TRUNCATE") && below(4) != 0);
        std::string filled;
        for (const char character : sql) {
            if (character == '#') {
                filled += std::to_string(below(25));
            } else if (character == '@') {
                filled += sql.find("[@]") != std::string::npos ? "null"
                          : below(3) == 0                      ? "NULL"
                                                               : fmt::format("'v{}'", below(4));
            } else {
                filled += character;
            }
        }
        return filled;
    }
    /// Statements in savepoints, some of which are undone, and so is now and then the whole.
    std::string transaction(const Shape& shape) {
        std::string script = "DO $do$ BEGIN\n";
        const int count = 1 + below(6);
        for (int i = 0; i < count; ++i) {
            script += fmt::format(
                "BEGIN EXECUTE $q${}$q$; {}EXCEPTION WHEN SQLSTATE 'UNDO1' OR unique_violation OR check_violation OR"
                " foreign_key_violation OR cardinality_violation OR not_null_violation THEN NULL; END;\n",
                statement(shape), below(6) == 0 ? "RAISE 'undo' USING ERRCODE = 'UNDO1'; " : "");
        }
        if (below(8) == 0) script += "RAISE 'undo' USING ERRCODE = 'UNDO1';\n";
        return script + "END $do$";
    }

  private:
    std::mt19937 dice_;
};

/// Plays what is staged of public.t onto copy.t. Each old value must be there, and each row must be found.
constexpr std::string_view replay_script = R"sql(
CREATE FUNCTION literal(data json, name text, type text) RETURNS text LANGUAGE sql AS
    $$ SELECT format('%L::%s', data ->> name, type) $$;
CREATE FUNCTION replay() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    entry record;
    is_row text;
    names text;
    texts text;
    found_rows bigint;
BEGIN
    FOR entry IN SELECT * FROM rowlock.audit_staged ORDER BY staged_at, staged_id LOOP
        IF entry.action = 'table.truncate' THEN
            EXECUTE format('DELETE FROM %s WHERE tenant_id::text = %L',
                           replace(entry.data ->> 'table', 'public.', 'copy.'), entry.tenant_id);
            GET DIAGNOSTICS found_rows = ROW_COUNT;
            ASSERT found_rows = (entry.data ->> 'rows')::bigint, 'TRUNCATE of ' || found_rows || ': ' || entry::text;
            CONTINUE;
        END IF;
        SELECT string_agg(format('%I = %s', a.attname, literal(entry.data -> 'key', a.attname, a.atttypid::regtype::text)), ' AND ')
          INTO is_row FROM pg_attribute AS a
         WHERE a.attrelid = 'copy.t'::regclass AND a.attname IN (SELECT json_object_keys(entry.data -> 'key'));
        IF entry.action <> 'row.insert' THEN
            SELECT is_row || coalesce(string_agg(format(' AND NOT record_image_ne(ROW(%I), ROW(%s))', a.attname,
                       literal(entry.data -> 'old', a.attname, a.atttypid::regtype::text)), ''), '')
              INTO texts FROM pg_attribute AS a
             WHERE a.attrelid = 'copy.t'::regclass AND a.attname IN (SELECT json_object_keys(entry.data -> 'old'));
            EXECUTE format('SELECT count(*) FROM copy.t WHERE tenant_id::text = %L AND %s', entry.tenant_id, texts) INTO found_rows;
            ASSERT found_rows = 1, 'the old row is not there: ' || entry::text;
        END IF;
        IF entry.action = 'row.delete' THEN
            EXECUTE format('DELETE FROM copy.t WHERE %s', is_row);
            CONTINUE;
        END IF;
        SELECT string_agg(format('%I', a.attname), ', '),
               string_agg(literal(entry.data -> 'new', a.attname, a.atttypid::regtype::text), ', ')
          INTO names, texts FROM pg_attribute AS a
         WHERE a.attrelid = 'copy.t'::regclass AND a.attgenerated = ''
           AND a.attname IN (SELECT json_object_keys(entry.data -> 'new'));
        IF entry.action = 'row.insert' THEN
            EXECUTE format('INSERT INTO copy.t (%s) VALUES (%s)', names, texts);
        ELSE
            EXECUTE format('UPDATE copy.t SET (%s) = ROW(%s) WHERE %s', names, texts, is_row);
        END IF;
    END LOOP;
END $$;
CREATE FUNCTION content(prefix text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    all_rows text;
BEGIN
    EXECUTE format('SELECT string_agg(replace(tableoid::regclass::text, ''copy.'', '''') || t::text, E''\n'' ORDER BY t::text)'
                   ' FROM %s.t AS t', prefix) INTO all_rows;
    RETURN coalesce(all_rows, '');
END $$;
)sql";

class CaptureReplay : public CaptureTest, public testing::WithParamInterface<std::size_t> {
  protected:
    CaptureReplay() {
        // Writers at once deadlock often, and are run again.
        run("CREATE SCHEMA copy; ALTER DATABASE \"" + server_.name() + "\" SET deadlock_timeout = '10ms'");
        run(std::string(replay_script));
    }
    void make_tables(const Shape& shape) {
        run("DROP TABLE IF EXISTS public.t, copy.t; " + shape.ddl);
        EXPECT_EQ(track_table({.table = "public.t", .tenant_column = "tenant_id"}), TrackOutcome::tracked);
        std::string ddl = shape.ddl;
        // No foreign keys in the copy: their actions are captured, and would happen twice.
        for (std::size_t at = ddl.find(" REFERENCES t ON UPDATE CASCADE ON DELETE SET NULL"); at != std::string::npos;
             at = ddl.find(" REFERENCES t ON UPDATE CASCADE ON DELETE SET NULL")) {
            ddl.erase(at, std::string_view(" REFERENCES t ON UPDATE CASCADE ON DELETE SET NULL").size());
        }
        run("SET LOCAL search_path = copy, public; " + ddl);
        run("TRUNCATE rowlock.audit_staged");
    }
    /// Sessions that know of the shorter deadlock_timeout.
    Database writers_{server_.connection()};
    static void play(Database& database, Generator& generator, const Shape& shape, int transactions) {
        for (int i = 0; i < transactions; ++i) {
            const std::string script = generator.transaction(shape);
            try {
                database.transact({.lock_wait_max = 30s, .attempts_max = 50},
                                  [&](Transaction& transaction) { transaction.execute_script({"test.play", script}); });
            } catch (const ServerError& undone) {
                if (undone.sqlstate() != "UNDO1") throw;
            }
        }
    }
    void expect_the_same(const std::string& told) {
        run("SELECT replay()");
        EXPECT_EQ(value("SELECT content('copy')"), value("SELECT content('public')")) << told;
    }
};

INSTANTIATE_TEST_SUITE_P(Shapes, CaptureReplay, testing::Range<std::size_t>(0, shapes.size()),
                         [](const auto& tested) { return shapes[tested.param].name; });

TEST_P(CaptureReplay, GivesTheSameTable) {
    const Shape& shape = shapes[GetParam()];
    std::int64_t entries = 0;
    for (unsigned seed = 1; seed <= 12 && !HasFailure(); ++seed) {
        make_tables(shape);
        Generator generator(seed);
        play(database_, generator, shape, 20);
        entries += std::stoi(value("SELECT count(*) FROM rowlock.audit_staged"));
        expect_the_same(fmt::format("{}, seed {}", shape.name, seed));
    }
    EXPECT_GT(entries, 500);
}

/// Three at once. For one row the order of staged_at is the order of its changes: its lock is held by then.
TEST_P(CaptureReplay, GivesTheSameTableAfterWritersAtOnce) {
    const Shape& shape = shapes[GetParam()];
    make_tables(shape);
    std::vector<std::thread> writers;
    for (unsigned writer = 0; writer < 3; ++writer) {
        writers.emplace_back([&, writer] {
            try {
                Generator generator(100 + writer);
                play(writers_, generator, shape, 12);
            } catch (const std::exception& fault) {
                ADD_FAILURE() << fault.what();
            }
        });
    }
    for (std::thread& writer : writers) writer.join();
    expect_the_same(shape.name);
}

}  // namespace
}  // namespace rowlock
