// What the tests of change capture share: a database with the schema, and what its tracked tables have staged.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "postgres/one_table.hpp"
#include "rowlock/change_capture.hpp"
#include "rowlock/database.hpp"
#include "rowlock/schema.hpp"
#include "support/test_database.hpp"

namespace rowlock {

class CaptureTest : public testing::Test {
  protected:
    CaptureTest() { database_.transact({.lock_wait_max = 60s}, install_schema); }

    /// As the superuser, in one transaction, on a session that stays.
    void run(const std::string& sql) {
        database_.transact({}, [&](Transaction& transaction) { transaction.execute_script({"test.run", sql}); });
    }
    TrackOutcome track_table(const TrackedTable& table) {
        return database_.transact({}, [&](Transaction& transaction) { return track(transaction, table); });
    }
    bool untrack_table(const std::string& table) {
        return database_.transact({}, [&](Transaction& transaction) { return untrack(transaction, table); });
    }
    /// The problem of the only tracked table.
    std::string problem() {
        const auto tables = database_.transact({}, tracked_tables);
        return tables.size() == 1 ? tables.front().problem : std::to_string(tables.size()) + " tables are tracked";
    }
    /// Runs the statements and gives what they staged, a line each: tenant, action, object, data. Then forgets it.
    std::vector<std::string> captured(const std::string& sql) {
        run(sql);
        return staged();
    }
    std::vector<std::string> staged() {
        return database_.transact({}, [&](Transaction& transaction) {
            std::vector<std::string> lines;
            const Rows rows = transaction.execute(
                {"test.staged",
                 "WITH gone AS (DELETE FROM rowlock.audit_staged RETURNING *) SELECT concat_ws(' ', tenant_id, action,"
                 " object, data) FROM gone ORDER BY transaction_id, staged_id"});
            for (const Row row : rows) lines.emplace_back(row.text(0));
            return lines;
        });
    }
    [[nodiscard]] std::string value(const std::string& sql) const { return server_.value(sql); }
    /// The refusal of a statement; empty where it went well.
    std::string refusal(const std::string& sql) {
        try {
            run(sql);
        } catch (const ServerError& refused) {
            return refused.sqlstate() + " " + refused.report().message;
        }
        return {};
    }
    std::string track_refusal(const TrackedTable& table) {
        const auto refused = fault_of<ServerError>([&] { static_cast<void>(track_table(table)); });
        return refused ? refused->sqlstate() + " " + refused->report().message : "";
    }

    test::TestDatabase server_;
    Database database_{server_.connection()};
};

}  // namespace rowlock
