// What a lifecycle decides and builds without a server.
#include "rowlock/lifecycle.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lifecycle/catalog.hpp"
#include "lifecycle/statements.hpp"
#include "rowlock/error.hpp"

namespace rowlock {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(LifecycleTransition, IsTotal) {
    struct Case {
        LifecycleRequest request;
        ParentState state;
        Transition transition;
    };
    for (const Case& each : {Case{LifecycleRequest::retire, ParentState::live, Transition::cascade},
                             Case{LifecycleRequest::retire, ParentState::retired, Transition::nothing},
                             Case{LifecycleRequest::revive, ParentState::retired, Transition::revive},
                             Case{LifecycleRequest::revive, ParentState::live, Transition::nothing}}) {
        EXPECT_EQ(transition_for(each.request, each.state), each.transition);
    }
}

LifecycleDescription description() {
    return {.parent = {.table = "p", .key = {"a", "b"}},
            .child = {.table = "c", .key = {"id"}, .parent = {"p_a", "p_b"}},
            .retired = "gone",
            .live_children = {"x", "y"},
            .tenant_column = "tenant"};
}

const std::vector<Parameter> parent{"acme", 1, 2};

TEST(LifecycleSql, NamesTheTenantInEveryStatement) {
    const LifecycleStatements statements(description());
    const std::vector<Parameter> child{"acme", 7};
    for (const Query& query : {statements.lock_parent(ParentLock::share, std::chrono::seconds(1), parent),
                               statements.lock_two_parents(parent, parent), statements.find_parent(parent),
                               statements.retire_children(parent), statements.set_parent_status(parent, "open"),
                               statements.confirm_child(child, parent), statements.move_child(child, parent, parent)}) {
        EXPECT_THAT(std::string(query.statement.sql), HasSubstr("\"tenant\" = $1")) << query.statement.name;
        const std::string last = "$" + std::to_string(query.parameters.size());
        EXPECT_THAT(std::string(query.statement.sql), HasSubstr(last)) << query.statement.name;
        EXPECT_THAT(std::string(query.statement.sql), Not(HasSubstr("$" + std::to_string(query.parameters.size() + 1))))
            << query.statement.name;
    }
}

TEST(LifecycleSql, WaitsAsItIsTold) {
    const LifecycleStatements statements(description());
    const auto sql = [&](LockWait wait) {
        return std::string(statements.lock_parent(ParentLock::no_key_update, wait, parent).statement.sql);
    };
    EXPECT_THAT(sql(std::chrono::seconds(1)), testing::EndsWith("FOR NO KEY UPDATE"));
    EXPECT_THAT(sql(LockWait::no_wait()), testing::EndsWith("FOR NO KEY UPDATE NOWAIT"));
    EXPECT_THAT(sql(LockWait::skip_locked()), testing::EndsWith("FOR NO KEY UPDATE SKIP LOCKED"));
}

TEST(LifecycleSql, GivesTheGateANameThatNoOtherKeyHas) {
    const LifecycleStatements statements(description());
    const auto gate = [&](const RowKey& key) {
        return statements.gate(ParentLock::share, LockWait::no_wait(), key).parameters.at(1).text();
    };
    EXPECT_EQ(gate({1, 2}), gate({"1", "2"}));
    EXPECT_NE(gate({"1 1:2", "3"}), gate({"1", "2 1:3"}));
    EXPECT_NE(gate({"12", ""}), gate({"1", "2"}));
}

TEST(LifecycleCatalog, FillsInWhatTheCatalogKnows) {
    LifecycleDescription left_out = description();
    left_out.parent.key = {};
    left_out.child.key = {};
    left_out.child.parent = {};
    const LifecycleFacts facts{
        .parent = {.columns = {"tenant", "a", "b", "status"},
                   .primary_key = {"tenant", "a", "b"},
                   .unique_keys = {{"tenant", "a", "b"}},
                   .indexes = {{"tenant", "a", "b"}}},
        .child = {.columns = {"tenant", "id", "p_a", "p_b", "status"},
                  .primary_key = {"tenant", "id"},
                  .unique_keys = {{"tenant", "id"}},
                  .indexes = {{"tenant", "id"}, {"tenant", "p_b", "p_a"}}},
        .foreign_keys = {{{"tenant", "tenant"}, {"p_b", "b"}, {"p_a", "a"}},
                         {{"tenant", "tenant"}, {"p_b", "b"}, {"p_a", "a"}, {"flag", "retired"}}}};
    const LifecycleDescription complete = completed(left_out, facts);
    EXPECT_EQ(complete.parent.key, description().parent.key);
    EXPECT_EQ(complete.child.key, description().child.key);
    EXPECT_EQ(complete.child.parent, description().child.parent);
    EXPECT_EQ(first_problem(complete, facts), std::nullopt);
    LifecycleFacts slow = facts;
    slow.child.indexes = {{"tenant", "id", "p_a", "p_b"}, {"p_a"}};
    EXPECT_THAT(first_problem(complete, slow).value_or(""), HasSubstr("no index on (p_a, p_b)"));
}

TEST(RowKeyText, IsTheValueOrAllOfThem) {
    EXPECT_EQ(RowKey(7).text(), "7");
    EXPECT_EQ(RowKey("a", 2026).text(), "(a, 2026)");
}

}  // namespace
}  // namespace rowlock
