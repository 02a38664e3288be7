#include "race/lifecycle_races.hpp"

#include <fmt/format.h>

#include <cctype>
#include <regex>

namespace rowlock::race::test {

namespace {

constexpr std::string_view setup = R"race(setup {
    CREATE TABLE document(id int PRIMARY KEY, status text NOT NULL, note int NOT NULL DEFAULT 0);
    CREATE TABLE claim(id int PRIMARY KEY, document_id int NOT NULL REFERENCES document, status text NOT NULL);
    CREATE INDEX ON claim (document_id);
    CREATE TABLE history(claim_id int, was text, became text, document_was int, document_became int);
    CREATE TABLE report(claim_id int, earlier text);
    CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            INSERT INTO history VALUES (OLD.id, OLD.status, NEW.status, OLD.document_id, NEW.document_id);
            RETURN NULL;
        END $$;
    CREATE TRIGGER keep AFTER UPDATE ON claim FOR EACH ROW EXECUTE FUNCTION keep();
    INSERT INTO document VALUES (1, 'open'), (2, 'open'), (3, 'open');
    INSERT INTO claim VALUES (1, 1, 'candidate');
}

)race";

constexpr std::string_view invariants = R"race(
invariant "nothing live under a retired document" {
    SELECT claim.id FROM claim JOIN document ON document.id = document_id
    WHERE document.status = 'rejected' AND claim.status IN ('confirmed', 'candidate')
}
invariant "a claim that was withdrawn is not written over" {
    SELECT claim_id FROM history WHERE was = 'withdrawn' AND became = 'rejected'
}
invariant "what is reported of a claim is what it was" {
    SELECT history.claim_id, was, earlier FROM history JOIN report USING (claim_id)
    WHERE became = 'rejected' AND was <> earlier
}
invariant "a claim is retired once" { SELECT claim_id FROM report GROUP BY claim_id HAVING count(*) > 1 }
invariant "a claim is moved from where it was said to be" {
    SELECT claim_id FROM history WHERE document_was <> document_became AND document_was <> 1 AND claim_id = 1
}
)race";

LifecycleDescription documents_and_claims() {
    return {.parent = {.table = "document", .key = {"id"}},
            .child = {.table = "claim", .key = {"id"}, .parent = {"document_id"}},
            .retired = "rejected",
            .live_children = {"confirmed", "candidate"}};
}

RowIdentity id(int value) {
    return {Parameter(value)};
}

/// What the library decides between two statements: only under an open document.
std::string if_open(const std::string& sql) {
    return "\\if :retired\n\\else\n" + sql + "\n\\endif";
}

std::string insert_claim(int claim_id) {
    return fmt::format("INSERT INTO claim VALUES ({}, 1, 'confirmed')", claim_id);
}

constexpr std::string_view withdraw = "UPDATE claim SET status = 'withdrawn' WHERE id = 1 AND status = 'candidate'";
constexpr std::string_view reclassify = "UPDATE claim SET status = 'confirmed' WHERE id = 1 AND status = 'candidate'";

}  // namespace

std::string literal_sql(const Query& query) {
    std::string text;
    const std::string_view sql = query.statement.sql;
    for (std::size_t at = 0; at < sql.size();) {
        const bool is_place = sql[at] == '$' && at + 1 < sql.size() && std::isdigit(sql[at + 1]) != 0;
        if (!is_place) {
            text += sql[at++];
            continue;
        }
        std::size_t number = 0;
        for (++at; at < sql.size() && std::isdigit(sql[at]) != 0; ++at) {
            number = number * 10 + static_cast<std::size_t>(sql[at] - '0');
        }
        text += '\'' + query.parameters.at(number - 1).text().value() + '\'';
    }
    return text;
}

std::string LockClause::without() const {
    std::string text = statement;
    return text.erase(text.find(clause), clause.size());
}

LifecycleRaces::LifecycleRaces() : statements_(documents_and_claims()) {}

LifecycleRaces::Session LifecycleRaces::retirer(const std::string& name, int document, bool with_gate) const {
    Session session{name, {{"begin", "BEGIN"}}};
    const LockWait wait = std::chrono::seconds(3);
    if (with_gate)
        session.steps.emplace_back("gate", literal_sql(statements_.gate(ParentLock::update, wait, document)));
    session.steps.emplace_back(
        "lock", literal_sql(statements_.lock_parent(ParentLock::update, wait, id(document))) + " \\gset");
    session.steps.emplace_back("cascade", if_open(literal_sql(statements_.retire_children(id(document)))));
    session.steps.emplace_back("mark", if_open(literal_sql(statements_.set_parent_status(id(document), "rejected"))));
    session.steps.emplace_back("commit", "COMMIT");
    return session;
}

LifecycleRaces::Session LifecycleRaces::holder(const std::string& name, ParentLock lock, const std::string& write,
                                               bool with_gate) const {
    Session session{name, {{"begin", "BEGIN"}}};
    const LockWait wait = std::chrono::seconds(3);
    if (with_gate) session.steps.emplace_back("gate", literal_sql(statements_.gate(lock, wait, 1)));
    session.steps.emplace_back("hold", literal_sql(statements_.lock_parent(lock, wait, id(1))) + " \\gset");
    session.steps.emplace_back("write", if_open(write));
    session.steps.emplace_back("commit", "COMMIT");
    return session;
}

LifecycleRaces::Session LifecycleRaces::mover(const std::string& name, int from, int to, bool with_gate) const {
    Session session{name, {{"begin", "BEGIN"}}};
    if (with_gate) session.steps.emplace_back("gate", literal_sql(statements_.gate_of_two(from, to)));
    // The row of the second parent alone goes into the decision.
    session.steps.emplace_back(
        "hold", fmt::format("WITH held AS MATERIALIZED ({}) SELECT bool_or(retired AND is_second) AS retired FROM held"
                            " \\gset",
                            literal_sql(statements_.lock_two_parents(id(from), id(to)))));
    session.steps.emplace_back("move", if_open(literal_sql(statements_.move_child(id(1), id(from), id(to)))));
    session.steps.emplace_back("commit", "COMMIT");
    return session;
}

std::string LifecycleRaces::file(const std::vector<Session>& sessions, const std::string& more_setup) {
    std::string text(setup);
    if (!more_setup.empty()) text += "setup {\n" + more_setup + "\n}\n\n";
    for (const Session& session : sessions) {
        text += fmt::format("session {}\n    on_error stop\n", session.name);
        for (const auto& [name, sql] : session.steps) text += fmt::format("    step {} {{ {} }}\n", name, sql);
    }
    return text + std::string(invariants);
}

std::vector<LifecycleRace> LifecycleRaces::all(bool with_gate) const {
    const std::string confirm = literal_sql(statements_.confirm_child(id(1), id(1)));
    const Session retire = retirer("retire", 1, with_gate);
    const auto outside = [](const std::string& name, std::string_view sql) {
        return Session{name, {{"begin", "BEGIN"}, {name, std::string(sql)}, {"commit", "COMMIT"}}};
    };
    const std::string write_both = insert_claim(20) + ";\nUPDATE document SET note = note + 1 WHERE id = 1";
    Session two_steps = mover("elsewhere", 1, 2, with_gate);
    const Session then = retirer("then", 2, with_gate);
    for (const auto& [name, sql] : then.steps) two_steps.steps.emplace_back("then_" + name, sql);
    // What a retirement is told of its only child, kept by the transaction itself.
    Session reporting = retire;
    for (auto& [name, sql] : reporting.steps) {
        if (name != "cascade") continue;
        sql = if_open(fmt::format("{} \\gset\nINSERT INTO report VALUES (1, :'earlier');",
                                  literal_sql(statements_.retire_children(id(1)))));
    }
    return {
        {"add against retire", file({retire, holder("add", ParentLock::share, insert_claim(10), with_gate)})},
        {"confirm against retire", file({retire, holder("confirm", ParentLock::share, confirm, with_gate)})},
        {"write both against retire", file({retire, holder("both", ParentLock::no_key_update, write_both, with_gate)})},
        {"write both twice",
         file({holder("one", ParentLock::no_key_update, write_both, with_gate),
               holder("other", ParentLock::no_key_update,
                      insert_claim(21) + ";\nUPDATE document SET note = note + 1 WHERE id = 1", with_gate)})},
        {"retire against retire", file({retire, retirer("again", 1, with_gate)})},
        {"withdraw against retire", file({retire, outside("withdraw", withdraw)})},
        {"reclassify against retire", file({reporting, outside("reclassify", reclassify)})},
        {"move in against retire", file({mover("move", 1, 2, with_gate), retirer("retire", 2, with_gate)})},
        {"move out against retire", file({mover("move", 1, 2, with_gate), retire})},
        {"move against move", file({mover("here", 1, 2, with_gate), mover("there", 1, 3, with_gate)})},
        {"confirm against move and retire",
         file({two_steps, holder("confirm", ParentLock::share, confirm, with_gate)})},
    };
}

std::vector<LifecycleRace> LifecycleRaces::before_rule(const std::string& rule_sql) const {
    const Session retire{"retire",
                         {{"begin", "BEGIN"},
                          {"lock", "SELECT FROM document WHERE id = 1 FOR UPDATE"},
                          {"cascade",
                           "UPDATE claim SET status = 'rejected' WHERE document_id = 1"
                           " AND status IN ('candidate', 'confirmed')"},
                          {"mark", "UPDATE document SET status = 'rejected' WHERE id = 1"},
                          {"commit", "COMMIT"}}};
    // It forgets the children, or takes no lock before.
    const Session careless{"careless", {{"mark", "UPDATE document SET status = 'rejected' WHERE id = 1"}}};
    const auto block = [](const std::string& name, const std::string& sql) {
        return Session{name, {{"begin", "BEGIN"}, {name, sql}, {"commit", "COMMIT"}}};
    };
    const Session add = block("add", insert_claim(10));
    const Session confirm = block("confirm", "UPDATE claim SET status = 'confirmed' WHERE id = 1");
    const Session move = block("move", "UPDATE claim SET document_id = 1 WHERE id = 2");
    const std::string more = rule_sql + "INSERT INTO claim VALUES (2, 2, 'candidate');";
    return {
        {"add against retire", file({retire, add}, more)},
        {"confirm against retire", file({retire, confirm}, more)},
        {"move in against retire", file({retire, move}, more)},
        {"add against careless", file({careless, add}, more + "DELETE FROM claim WHERE id = 1;")},
        {"confirm against careless",
         file({careless, confirm}, more + "UPDATE claim SET status = 'withdrawn' WHERE id = 1;")},
        {"move in against careless", file({careless, move}, more + "DELETE FROM claim WHERE id = 1;")},
    };
}

std::vector<LifecycleRace> LifecycleRaces::twins() const {
    const Session retire = retirer("retire", 1, false);
    const std::string lock = literal_sql(statements_.lock_parent(ParentLock::update, std::chrono::seconds(3), id(1)));
    // Lock and cascade in one statement: its snapshot is older than its wait.
    Session at_once{"retire", {{"begin", "BEGIN"}}};
    std::string cascade = literal_sql(statements_.retire_children(id(1)));
    cascade.replace(0, std::string_view("WITH").size(), "WITH held AS MATERIALIZED (" + lock + "),");
    cascade.replace(cascade.find("WHERE", cascade.find("target AS")), std::string_view("WHERE").size(),
                    "WHERE EXISTS (SELECT FROM held) AND");
    at_once.steps.emplace_back("cascade", cascade);
    at_once.steps.emplace_back("mark", literal_sql(statements_.set_parent_status(id(1), "rejected")));
    at_once.steps.emplace_back("commit", "COMMIT");
    const Session add = holder("add", ParentLock::share, insert_claim(10), false);
    // FOR NO KEY UPDATE does not hold back the foreign key check of a child.
    Session too_weak = retire;
    const std::string weak =
        literal_sql(statements_.lock_parent(ParentLock::no_key_update, std::chrono::seconds(3), id(1)));
    too_weak.steps[1].second = weak + " \\gset";
    Session unguarded{"add", {{"add", insert_claim(10)}}};
    return {
        {"lock and cascade in one statement", file({at_once, add})},
        {"an older snapshot", "isolation \"repeatable read\"\n" + file({retire, add})},
        {"no guard at all", file({retire, unguarded})},
        {"no guard against too weak a lock", file({too_weak, unguarded})},
        {"two that share and then write",
         file({holder("one", ParentLock::share, "UPDATE document SET note = note + 1 WHERE id = 1", false),
               holder("other", ParentLock::share, "UPDATE document SET note = note + 1 WHERE id = 1", false)})},
    };
}

std::vector<LockClause> LifecycleRaces::clauses() const {
    const LockWait wait = std::chrono::seconds(3);
    const std::vector<Query> all{statements_.lock_parent(ParentLock::share, wait, id(1)),
                                 statements_.lock_parent(ParentLock::no_key_update, wait, id(1)),
                                 statements_.lock_parent(ParentLock::update, wait, id(1)),
                                 statements_.lock_two_parents(id(1), id(2)),
                                 statements_.retire_children(id(1)),
                                 statements_.set_parent_status(id(1), "rejected"),
                                 statements_.confirm_child(id(1), id(1)),
                                 statements_.move_child(id(1), id(1), id(2))};
    // What the statement looks at again behind its wait: the child is still under the parent that is held.
    const std::regex clause("FOR (SHARE|UPDATE|NO KEY UPDATE)| AND \"document_id\" = '1'");
    std::vector<LockClause> clauses;
    for (const Query& query : all) {
        const std::string sql = literal_sql(query);
        for (std::sregex_iterator at(sql.begin(), sql.end(), clause), end; at != end; ++at) {
            clauses.push_back({sql, at->str()});
        }
    }
    return clauses;
}

}  // namespace rowlock::race::test
