#include "race/random_scenario.hpp"

#include <fmt/format.h>

#include <array>
#include <random>
#include <string_view>
#include <utility>

namespace rowlock::race::test {

namespace {

constexpr std::string_view trigger_function = R"(
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO log SELECT TG_OP || count(*) FROM one; RETURN NEW; END $$;
)";

constexpr std::string_view handler_function = R"(
    CREATE FUNCTION try_insert(v int) RETURNS text LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO one VALUES (v, 0); RETURN 'new';
    EXCEPTION WHEN unique_violation OR deadlock_detected THEN RETURN SQLSTATE; END $$;
)";

class ScenarioWriter {
  public:
    ScenarioWriter(unsigned seed, bool by_row) : dice_(seed), by_row_(by_row) {}

    std::string write() {
        if (by_row_) return write_by_row();
        has_tag_ = one_in(2);
        has_trigger_ = one_in(3);
        std::string text = setup();
        const int sessions = one_in(4) ? 3 : 2;
        statements_max_ = sessions == 3 ? 1 : 3;
        for (int number = 0; number < sessions; ++number) text += session(number);
        return text;
    }

  private:
    std::string write_by_row() {
        std::string text =
            "setup {\n    CREATE TABLE one(id int PRIMARY KEY, n int NOT NULL);\n"
            "    CREATE TABLE two(n int NOT NULL, id text PRIMARY KEY);\n    CREATE TABLE log(what text);\n"
            "    INSERT INTO one VALUES (1, 10), (2, 20);\n    INSERT INTO two VALUES (10, '1'), (20, '2');\n}\n";
        const int sessions = one_in(3) ? 3 : 2;
        statements_max_ = sessions == 3 ? 2 : 3;
        for (int number = 0; number < sessions; ++number) text += session(number);
        return text;
    }

    /// Of the engine alone, not of a distribution, whose numbers differ from library to library.
    int pick(int below) { return static_cast<int>(dice_() % static_cast<unsigned>(below)); }
    bool one_in(int count) { return pick(count) == 0; }
    template <std::size_t size>
    std::string_view any(const std::array<std::string_view, size>& choices) {
        return choices[static_cast<std::size_t>(pick(static_cast<int>(size)))];
    }

    std::string setup() {
        constexpr std::array<std::string_view, 5> references{"", "ON DELETE CASCADE", "ON UPDATE CASCADE",
                                                             "ON DELETE SET NULL", "DEFERRABLE INITIALLY DEFERRED"};
        std::string text = "setup {\n";
        text += fmt::format("    CREATE TABLE one(id int PRIMARY KEY, n int NOT NULL{});\n",
                            has_tag_ ? ", tag text UNIQUE" : "");
        const std::string reference = one_in(3) ? "" : fmt::format("REFERENCES one {}", any(references));
        text += fmt::format("    CREATE TABLE two(id int PRIMARY KEY, one int {}, n int NOT NULL);\n", reference);
        text += "    CREATE TABLE log(what text);\n    CREATE SEQUENCE number;\n";
        text += "    INSERT INTO one VALUES (1, 10), (2, 20);\n    INSERT INTO two VALUES (1, 1, 1), (2, 2, 2);";
        text += handler_function;
        if (has_trigger_) {
            constexpr std::array<std::string_view, 4> triggers{
                "CREATE TRIGGER note AFTER INSERT OR UPDATE ON two", "CREATE TRIGGER note BEFORE UPDATE ON two",
                "CREATE TRIGGER note AFTER DELETE ON two",
                "CREATE CONSTRAINT TRIGGER note AFTER INSERT OR UPDATE ON two DEFERRABLE INITIALLY DEFERRED"};
            text += fmt::format("{}    {} FOR EACH ROW EXECUTE FUNCTION note();\n", trigger_function, any(triggers));
        }
        return text + "}\n";
    }

    std::string reading(int id) {
        constexpr std::array<std::string_view, 4> modes{"FOR UPDATE", "FOR NO KEY UPDATE", "FOR SHARE",
                                                        "FOR KEY SHARE"};
        switch (pick(7)) {
            case 0:
                return "SELECT id, n FROM one ORDER BY id";
            case 1:
                return fmt::format("SELECT n FROM one WHERE id = {} {}", id, any(modes));
            case 2:
                return fmt::format("SELECT id FROM two WHERE one = {} ORDER BY id {}", id, any(modes));
            case 3:
                return fmt::format("SELECT n FROM one WHERE id = {} {} {}", id, any(modes),
                                   one_in(2) ? "NOWAIT" : "SKIP LOCKED");
            case 4:
                return "SELECT count(*) FROM log";
            case 5:
                return "SELECT one.n, two.n FROM one JOIN two ON two.one = one.id ORDER BY two.id";
            default:
                return "SELECT id FROM one LIMIT 1";
        }
    }

    std::string writing(int session, int id) {
        switch (pick(12)) {
            case 0:
                return fmt::format("UPDATE one SET n = n * 2 + {} WHERE id = {}", session, id);
            case 1:
                return fmt::format("UPDATE one SET n = n + 1 WHERE n > {}", 5 * pick(5));
            case 2:
                return fmt::format("INSERT INTO one VALUES ({}, {})", 3 + pick(2), session);
            case 3:
                return fmt::format("INSERT INTO two VALUES ({}, {}, {})", 3 + pick(2), 1 + pick(3), session);
            case 4:
                return fmt::format("DELETE FROM one WHERE id = {}", id);
            case 5:
                return fmt::format("DELETE FROM two WHERE id = {} RETURNING n", id);
            case 6:
                return fmt::format("UPDATE two SET n = (SELECT count(*) FROM one) WHERE id = {}", id);
            case 7:
                return fmt::format("INSERT INTO log SELECT 's{} ' || sum(n) FROM two", session);
            case 8:
                return fmt::format("INSERT INTO one VALUES ({}, {}) ON CONFLICT (id) DO UPDATE SET n = one.n + 7", id,
                                   session);
            case 9:
                return fmt::format("UPDATE one SET id = {} WHERE id = {}", 3 + pick(2), id);
            case 10:
                return fmt::format("UPDATE two SET one = {} WHERE id = {}", 1 + pick(3), id);
            default:
                if (!has_tag_) return fmt::format("INSERT INTO log VALUES ('{}')", session);
                return fmt::format("UPDATE one SET tag = '{}' WHERE id = {}", pick(2), id);
        }
    }

    /// Whatever names its row by the key; now and then a look at another table.
    std::string of_one_row(int session, int id) {
        constexpr std::array<std::string_view, 5> modes{"", "FOR UPDATE", "FOR NO KEY UPDATE", "FOR SHARE",
                                                        "FOR KEY SHARE"};
        const bool is_one = one_in(2);
        const std::string_view table = is_one ? "one" : "two";
        const std::string key = is_one && one_in(3) ? fmt::format("{}", id) : fmt::format("'{}'", id);
        switch (pick(9)) {
            case 0:
            case 1:
                return fmt::format("SELECT n FROM {} WHERE id = {} {}", table, key, any(modes));
            case 2:
            case 3:
                return fmt::format("UPDATE {} SET n = n * 2 + {} WHERE id = {} RETURNING n", table, session, key);
            case 4:
                return fmt::format("UPDATE {} SET n = 1 / (n - {}) WHERE id = {} AND n > 3", table, 10 + session, key);
            case 5:
                return fmt::format("DELETE FROM {} WHERE id = {}", table, key);
            case 6:
                return fmt::format("INSERT INTO {} (id, n) VALUES ({}, {})", table, key, session);
            case 7:
                return fmt::format("INSERT INTO {} (n, id) VALUES ({}, {}) ON CONFLICT (id) DO {}", table, session, key,
                                   one_in(2) ? "NOTHING" : "UPDATE SET n = excluded.n + 7");
            default:
                return fmt::format("INSERT INTO log SELECT '{} ' || count(*) FROM log", session);
        }
    }

    std::string other(int session) {
        constexpr std::array<std::string_view, 5> modes{"ACCESS SHARE", "ROW EXCLUSIVE", "SHARE", "EXCLUSIVE",
                                                        "ACCESS EXCLUSIVE"};
        switch (pick(9)) {
            case 0:
                return fmt::format("SELECT pg_advisory_xact_lock{}(1, {})", one_in(2) ? "" : "_shared", pick(2));
            case 1:
                return "SELECT pg_advisory_lock(7)";
            case 2:
                return "SELECT pg_advisory_unlock(7)";
            case 3:
                return fmt::format("LOCK TABLE {} IN {} MODE", one_in(2) ? "one" : "two", any(modes));
            case 4:
                return fmt::format("SELECT try_insert({})", 3 + pick(2));
            case 5:
                return fmt::format("INSERT INTO log SELECT '{} ' || nextval('number')", session);
            case 6:
                return one_in(3) ? "TRUNCATE log" : "SELECT last_value FROM number";
            case 7:
                return fmt::format("UPDATE one SET n = 1 / (n - {}) WHERE id = 1", 10 + session);
            default:
                return "SELECT 1 / 0";
        }
    }

    std::string statement(int session) {
        const int id = 1 + pick(3);
        if (by_row_) return of_one_row(session, id);
        const int kind = pick(10);
        if (kind < 3) return reading(id);
        if (kind < 8) return writing(session, id);
        return other(session);
    }

    std::string_view begin() {
        constexpr std::array<std::string_view, 8> begins{"BEGIN",
                                                         "BEGIN",
                                                         "BEGIN",
                                                         "BEGIN",
                                                         "BEGIN ISOLATION LEVEL REPEATABLE READ",
                                                         "BEGIN ISOLATION LEVEL REPEATABLE READ",
                                                         "BEGIN ISOLATION LEVEL SERIALIZABLE",
                                                         "BEGIN; SET LOCAL lock_timeout = '1s'"};
        return any(begins);
    }

    std::string session(int number) {
        constexpr std::array<std::string_view, 4> policies{"stop", "ignore", "ignore", "retry 1"};
        std::string text = fmt::format("session s{}\n  on_error {}\n", number, any(policies));
        int step = 0;
        const auto add = [&](std::string_view sql) { text += fmt::format("  step p{} {{ {} }}\n", step++, sql); };
        const int count = 1 + pick(statements_max_);
        if (one_in(5)) {
            for (int i = 0; i < count; ++i) add(statement(number));
            return text;
        }
        const bool apart = by_row_ || !one_in(3);
        std::string first(begin());
        if (apart) add(std::exchange(first, ""));
        const bool has_savepoint = one_in(5);
        for (int i = 0; i < count; ++i) {
            const std::string prefix = first.empty() ? "" : std::exchange(first, "") + "; ";
            const std::string sql = statement(number);
            if (has_savepoint && i == 0 && by_row_) add("SAVEPOINT s");
            add(prefix + (has_savepoint && i == 0 && !by_row_ ? "SAVEPOINT s; " + sql : sql));
            if (has_savepoint && i == 0) add("ROLLBACK TO s");
        }
        if (one_in(9)) {
            add("\\disconnect");
        } else {
            add(one_in(5) ? "ROLLBACK" : "COMMIT");
        }
        return text;
    }

    std::mt19937 dice_;
    bool by_row_;
    bool has_tag_ = false;
    bool has_trigger_ = false;
    int statements_max_ = 3;
};

}  // namespace

std::string random_scenario(unsigned seed) {
    return ScenarioWriter(seed, false).write();
}

std::string random_row_scenario(unsigned seed) {
    return ScenarioWriter(seed, true).write();
}

}  // namespace rowlock::race::test
