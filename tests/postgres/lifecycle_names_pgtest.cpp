// Any names, any keys: descriptions that fit the catalog work to the letter, others are refused in one line.
#include "postgres/identifier.hpp"
#include "postgres/lifecycle_fixture.hpp"
#include "rowlock/lifecycle_rule.hpp"

namespace rowlock {
namespace {

using testing::HasSubstr;

/// Tables of one shape under other names and types.
struct Shape {
    std::string name;
    std::string setup;
    LifecycleDescription description;
    RowKey parent;
    RowKey child;
    std::vector<ColumnValue> another_child;
    std::string violations;  ///< A query that counts them.
    std::optional<TenantId> tenant{};
};

LifecycleDescription described(LifecycleDescription::Parent parent, LifecycleDescription::Child child) {
    return {.parent = std::move(parent),
            .child = std::move(child),
            .retired = "rejected",
            .live_children = {"confirmed", "candidate"}};
}

Shape composite() {
    return {"composite",
            "CREATE TABLE p (year int, no text, status text NOT NULL DEFAULT 'open', PRIMARY KEY (no, year));"
            "CREATE TABLE c (a int, b date, p_year int, p_no text, status text NOT NULL, PRIMARY KEY (a, b),"
            "                FOREIGN KEY (p_no, p_year) REFERENCES p);"
            "CREATE INDEX ON c (p_year, p_no);"
            "INSERT INTO p VALUES (2026, 'x''y'); INSERT INTO c VALUES (1, '2026-01-01', 2026, 'x''y', 'candidate')",
            described({.table = "p"}, {.table = "c"}),
            {"x'y", 2026},
            {1, "2026-01-01"},
            {{"a", 2}, {"b", "2026-01-02"}, {"status", "candidate"}},
            "SELECT count(*) FROM c JOIN p ON p_no = no AND p_year = year"
            " WHERE p.status = 'rejected' AND c.status <> 'rejected'"};
}

Shape uuid_and_enum() {
    return {"uuid_and_enum",
            "CREATE TYPE mood AS ENUM ('open', 'rejected', 'candidate', 'confirmed');"
            "CREATE TABLE p (id uuid PRIMARY KEY, status mood NOT NULL DEFAULT 'open');"
            "CREATE TABLE c (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), p uuid REFERENCES p, status mood);"
            "CREATE INDEX ON c (p);"
            "INSERT INTO p VALUES ('11111111-1111-1111-1111-111111111111');"
            "INSERT INTO c VALUES ('22222222-2222-2222-2222-222222222222', '11111111-1111-1111-1111-111111111111',"
            "                      'candidate')",
            described({.table = "p"}, {.table = "c"}),
            "11111111-1111-1111-1111-111111111111",
            "22222222-2222-2222-2222-222222222222",
            {{"status", "candidate"}},
            "SELECT count(*) FROM c JOIN p ON p = p.id WHERE p.status = 'rejected' AND c.status <> 'rejected'"};
}

Shape awkward_names() {
    return {"awkward_names",
            R"sql(CREATE SCHEMA "Ac""me; --";
                  CREATE TABLE "Ac""me; --"."""; DROP TABLE x; --"
                      ("I d" int PRIMARY KEY, "Sta'tus{0}" text DEFAULT 'open');
                  CREATE TABLE "Ac""me; --"."$1 $$ $rowlock$ %s"
                      ("key_1" int PRIMARY KEY, "child" int REFERENCES "Ac""me; --"."""; DROP TABLE x; --",
                       "target" varchar(20));
                  CREATE INDEX ON "Ac""me; --"."$1 $$ $rowlock$ %s" ("child");
                  INSERT INTO "Ac""me; --"."""; DROP TABLE x; --" VALUES (1);
                  INSERT INTO "Ac""me; --"."$1 $$ $rowlock$ %s" VALUES (1, 1, 'candidate'))sql",
            described({.schema = "Ac\"me; --", .table = "\"; DROP TABLE x; --", .status = "Sta'tus{0}"},
                      {.schema = "Ac\"me; --", .table = "$1 $$ $rowlock$ %s", .status = "target"}),
            1,
            1,
            {{"key_1", 2}, {"target", "candidate"}},
            R"sql(SELECT count(*) FROM "Ac""me; --"."$1 $$ $rowlock$ %s" AS c
                    JOIN "Ac""me; --"."""; DROP TABLE x; --" AS p ON "child" = "I d"
                   WHERE "Sta'tus{0}" = 'rejected' AND "target" <> 'rejected')sql"};
}

Shape with_tenant() {
    Shape shape{"with_tenant",
                "CREATE TABLE p (\"Tenant\" text, id int, status text DEFAULT 'open', PRIMARY KEY (\"Tenant\", id));"
                "CREATE TABLE c (\"Tenant\" text, id int, p int, status text, PRIMARY KEY (\"Tenant\", id),"
                "                FOREIGN KEY (\"Tenant\", p) REFERENCES p);"
                "CREATE INDEX ON c (\"Tenant\", p);"
                "INSERT INTO p VALUES ('acme', 1), ('globex', 1);"
                "INSERT INTO c VALUES ('acme', 1, 1, 'candidate'), ('globex', 1, 1, 'candidate')",
                described({.table = "p"}, {.table = "c"}),
                1,
                1,
                {{"id", 2}, {"status", "candidate"}},
                "SELECT count(*) FROM c JOIN p USING (\"Tenant\") WHERE c.p = p.id"
                " AND ((p.status = 'rejected' AND c.status <> 'rejected')"
                "      OR (\"Tenant\" = 'globex' AND c.status <> 'candidate'))",
                TenantId("acme")};
    shape.description.tenant_column = "Tenant";
    return shape;
}

Shape partitioned() {
    return {"partitioned",
            "CREATE TABLE p (id int PRIMARY KEY, status text DEFAULT 'open');"
            "CREATE TABLE c (id int, p int REFERENCES p, status text, PRIMARY KEY (id)) PARTITION BY HASH (id);"
            "CREATE TABLE c0 PARTITION OF c FOR VALUES WITH (MODULUS 2, REMAINDER 0);"
            "CREATE TABLE c1 PARTITION OF c FOR VALUES WITH (MODULUS 2, REMAINDER 1);"
            "CREATE INDEX ON c (p);"
            "INSERT INTO p VALUES (1); INSERT INTO c SELECT n, 1, 'candidate' FROM generate_series(1, 9) AS n",
            described({.table = "p"}, {.table = "c"}),
            1,
            1,
            {{"id", 10}, {"status", "candidate"}},
            "SELECT count(*) FROM c JOIN p ON c.p = p.id WHERE p.status = 'rejected' AND c.status <> 'rejected'"};
}

std::vector<Shape> shapes() {
    return {composite(), uuid_and_enum(), awkward_names(), with_tenant(), partitioned()};
}

class LifecycleOf : public testing::TestWithParam<Shape> {
  protected:
    LifecycleOf() { server_.execute(GetParam().setup); }
    test::TestDatabase server_;
    Database database_{server_.connection()};
};

TEST_P(LifecycleOf, AnyShapeKeepsItsPromises) {
    const Shape& shape = GetParam();
    const Lifecycle lifecycle(database_, shape.description);
    const TransactionPolicy policy{.tenant = shape.tenant};
    database_.transact(policy, [&](Transaction& transaction) {
        HoldOutcome outcome = lifecycle.hold_open(transaction, shape.parent);
        auto* const open = std::get_if<OpenParent>(&outcome);
        ASSERT_NE(open, nullptr);
        lifecycle.add_child(*open, shape.another_child);
        EXPECT_TRUE(std::holds_alternative<Confirmed>(lifecycle.confirm(*open, shape.child)));
    });
    database_.transact(policy, [&](Transaction& transaction) {
        EXPECT_TRUE(
            std::holds_alternative<Moved>(lifecycle.move(transaction, shape.child, shape.parent, shape.parent)));
    });
    const RetireOutcome outcome = database_.transact(
        policy, [&](Transaction& transaction) { return lifecycle.retire(transaction, shape.parent); });
    const auto* const cascade = std::get_if<Cascade>(&outcome);
    ASSERT_NE(cascade, nullptr);
    EXPECT_EQ(cascade->earlier_counts.at("confirmed"), 1);
    EXPECT_TRUE(
        std::ranges::any_of(cascade->children, [&](const Cascade::Child& child) { return child.key == shape.child; }));
    EXPECT_EQ(server_.value(shape.violations), "0");
    database_.transact(policy, [&](Transaction& transaction) {
        EXPECT_TRUE(std::holds_alternative<RetiredParent>(lifecycle.hold_open_to_write(transaction, shape.parent)));
    });
    database_.transact(policy, [&](Transaction& transaction) {
        EXPECT_TRUE(std::holds_alternative<Revived>(lifecycle.revive(transaction, shape.parent)));
    });
}

TEST_P(LifecycleOf, AnyShapeTakesTheRuleInTheDatabase) {
    const Shape& shape = GetParam();
    const Lifecycle lifecycle(database_, shape.description);
    const LifecycleDescription& complete = lifecycle.description();
    const TransactionPolicy policy{.tenant = shape.tenant};
    const auto run_script = [&](const std::string& sql) {
        database_.transact({}, [&](Transaction& transaction) { transaction.execute_script({"test.rule", sql}); });
    };
    const std::string revive_children =
        fmt::format("UPDATE {}.{} SET {} = 'candidate' WHERE {} = 'rejected'", quote_identifier(complete.child.schema),
                    quote_identifier(complete.child.table), quote_identifier(complete.child.status),
                    quote_identifier(complete.child.status));
    for (const LifecycleRule rule : {LifecycleRule::trigger, LifecycleRule::declarative}) {
        run_script(lifecycle_rule_sql(complete, rule));
        database_.transact(policy, [&](Transaction& transaction) {
            HoldOutcome outcome = lifecycle.hold_open(transaction, shape.parent);
            EXPECT_TRUE(
                std::holds_alternative<Confirmed>(lifecycle.confirm(std::get<OpenParent>(outcome), shape.child)));
        });
        const RetireOutcome retired = database_.transact(
            policy, [&](Transaction& transaction) { return lifecycle.retire(transaction, shape.parent); });
        EXPECT_TRUE(std::holds_alternative<Cascade>(retired));
        EXPECT_THROW(server_.execute(revive_children), std::runtime_error);
        const LifecycleStatus status = database_.transact(
            policy, [&](Transaction& transaction) { return lifecycle_status(transaction, complete); });
        EXPECT_EQ(status.has_trigger, rule == LifecycleRule::trigger);
        EXPECT_EQ(status.has_declarative, rule == LifecycleRule::declarative);
        EXPECT_EQ(status.retired_parents, 1);
        EXPECT_EQ(status.violations, 0);
        database_.transact(policy, [&](Transaction& transaction) {
            EXPECT_TRUE(std::holds_alternative<Revived>(lifecycle.revive(transaction, shape.parent)));
        });
        run_script(lifecycle_rule_removal_sql(complete, rule));
        server_.execute(revive_children);
    }
}

INSTANTIATE_TEST_SUITE_P(Lifecycles, LifecycleOf, testing::ValuesIn(shapes()),
                         [](const auto& tested) { return tested.param.name; });

class LifecycleDescriptions : public LifecycleTest {
  protected:
    void expect_refused(const LifecycleDescription& wrong, const std::string& part) {
        const auto fault = fault_of<SetupError>([&] { Lifecycle(database_, wrong); });
        ASSERT_TRUE(fault);
        EXPECT_THAT(fault->what(), HasSubstr(part));
        EXPECT_EQ(std::string(fault->what()).find('\n'), std::string::npos);
    }
};

TEST_F(LifecycleDescriptions, ThatDoNotFitTheCatalogAreRefusedInOneLine) {
    server_.execute(
        "CREATE TABLE free (id int PRIMARY KEY, document_id int, status text); CREATE INDEX ON free (document_id);"
        "CREATE TABLE slow (id int PRIMARY KEY, document_id int REFERENCES document, status text);"
        "CREATE INDEX ON slow (document_id) WHERE status = 'x'; CREATE TABLE keyless (id int, status text)");
    const auto with = [&](auto change) {
        LifecycleDescription wrong = description();
        change(wrong);
        return wrong;
    };
    expect_refused(with([](auto& d) { d.parent.table = "Document"; }), "there is no table public.Document");
    expect_refused(with([](auto& d) { d.child.schema = "elsewhere"; }), "there is no table elsewhere.claim");
    expect_refused(with([](auto& d) { d.parent.status = "state"; }), "table public.document has no column state");
    expect_refused(with([](auto& d) { d.child.key = {"no"}; }), "table public.claim has no column no");
    expect_refused(with([](auto& d) { d.tenant_column = "tenant"; }), "has no column tenant");
    expect_refused(with([](auto& d) { d.parent.key = {"note"}; }), "no unique index on (note)");
    expect_refused(with([](auto& d) { d.parent.table = "keyless"; }), "name its columns");
    expect_refused(with([](auto& d) { d.child = {.table = "free", .parent = {"document_id"}}; }), "no foreign key");
    expect_refused(with([](auto& d) { d.child.table = "slow"; }), "no index on (document_id)");
    expect_refused(with([](auto& d) { d.live_children = {}; }), "live_children");
    expect_refused(with([](auto& d) { d.retired = ""; }), "retired");
    expect_refused(with([](auto& d) { d.retired = "open"; }), "can't be the status of an open parent");
    expect_refused(with([](auto& d) { d.live_children.push_back("rejected"); }), "can't be a live status");
}

TEST_F(LifecycleDescriptions, NameTheForeignKeyWhereThereAreSeveral) {
    server_.execute("ALTER TABLE claim ADD origin_id int REFERENCES document");
    expect_refused(description(), "or several");
    LifecycleDescription named = description();
    named.child.parent = {"document_id"};
    Lifecycle(database_, named);
}

TEST_F(LifecycleDescriptions, AreCompletedFromTheCatalog) {
    const LifecycleDescription& complete = documents().description();
    EXPECT_EQ(complete.parent.key, std::vector<std::string>{"id"});
    EXPECT_EQ(complete.child.key, std::vector<std::string>{"id"});
    EXPECT_EQ(complete.child.parent, std::vector<std::string>{"document_id"});
}

TEST_F(LifecycleDescriptions, WhoseChildrenArePartitionedByStatusAreRunAgainWhenARowHasMovedOn) {
    server_.execute(
        "CREATE TABLE part (id int, document_id int REFERENCES document, status text, PRIMARY KEY (id, status))"
        " PARTITION BY LIST (status);"
        "CREATE TABLE part_live PARTITION OF part FOR VALUES IN ('candidate', 'confirmed');"
        "CREATE TABLE part_gone PARTITION OF part FOR VALUES IN ('rejected', 'withdrawn');"
        "CREATE INDEX ON part (document_id); INSERT INTO part VALUES (1, 1, 'candidate'), (2, 1, 'confirmed')");
    LifecycleDescription by_status = description();
    by_status.child = {.table = "part"};
    const Lifecycle lifecycle(database_, by_status);
    std::jthread confirmer;
    int runs = 0;
    database_.transact({}, [&](Transaction& outside) {
        outside.execute({"test.withdraw", "UPDATE part SET status = 'withdrawn' WHERE id = 1"});
        confirmer = std::jthread([&] {
            beside_.transact({.lock_wait_max = 20s}, [&](Transaction& transaction) {
                ++runs;
                HoldOutcome outcome = lifecycle.hold_open(transaction, 1);
                static_cast<void>(lifecycle.confirm(std::get<OpenParent>(outcome), {1, "withdrawn"}));
                static_cast<void>(lifecycle.confirm(std::get<OpenParent>(outcome), {1, "candidate"}));
            });
        });
        expect_a_waiter();
    });
    confirmer.join();
    EXPECT_EQ(runs, 2) << "40001 at READ COMMITTED, since the row is in another partition now";
    EXPECT_EQ(value("SELECT string_agg(status, ' ' ORDER BY id) FROM part"), "confirmed confirmed");
}

}  // namespace
}  // namespace rowlock
