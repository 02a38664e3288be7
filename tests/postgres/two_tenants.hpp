// A database with the schema, two tenants A and B, and a login that is a member of rowlock_app and of nothing else.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "rowlock/database.hpp"
#include "rowlock/schema.hpp"
#include "support/test_database.hpp"

namespace rowlock {

/// As the server told it; empty where the statement was not refused.
struct Answer {
    std::string sqlstate;
    std::string message;
    std::string detail;
    std::string rows;

    bool operator==(const Answer&) const = default;
};

struct Refusal {
    std::string sql;
    std::string sqlstate;
};

inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
        text.replace(at, from.size(), to);
    }
    return text;
}

/// An entry of `tenant` with the MACs 32 × prev and 32 × mac, both two hexadecimal digits.
inline std::string append_sql(const std::string& tenant, int seq, const std::string& prev, const std::string& mac) {
    return "SELECT rowlock.append_entry('" + tenant + "', " + std::to_string(seq) +
           ", gen_random_uuid(), 1700000000123456, 'me', 'made', 'it', '{\"a\":  1}', 'k1', decode(repeat('" + prev +
           "', 32), 'hex'), decode(repeat('" + mac + "', 32), 'hex'))";
}

class TwoTenants : public testing::Test {
  protected:
    void SetUp() override {
        superuser_.transact({.lock_wait_max = std::chrono::seconds(60)}, install_schema);
        server_.execute("GRANT rowlock_app TO " + login_.role);
        app_.emplace(server_.connection_as(login_));
        for (const std::string tenant : {"A", "B"}) {
            app_->transact({.tenant = TenantId(tenant)}, [&](Transaction& transaction) {
                run(transaction, "INSERT INTO rowlock.tenant_seq (tenant_id) VALUES ('" + tenant + "')");
                run(transaction, append_sql(tenant, 1, "00", "01"));
                run(transaction, "SELECT rowlock.next_number('" + tenant + "', 'invoice')");
                run(transaction,
                    "INSERT INTO rowlock.quota (tenant_id, name, cap) VALUES ('" + tenant + "', 'seats', 3)");
            });
        }
    }
    void TearDown() override { app_.reset(); }

    static Rows run(Transaction& transaction, const std::string& sql) { return transaction.execute({"test", sql}); }

    static Answer ask(Database& database, const std::optional<std::string>& tenant, const std::string& sql) {
        TransactionPolicy policy{.lock_wait_max = std::chrono::seconds(2), .attempts_max = 1};
        if (tenant) policy.tenant = TenantId(*tenant);
        try {
            return database.transact(policy, [&](Transaction& transaction) {
                const Rows rows = run(transaction, sql);
                std::string text = std::string(rows.command_tag()) + ":";
                for (const Row row : rows) text += row.optional_text(0).value_or("NULL") + ";";
                return Answer{{}, {}, {}, text};
            });
        } catch (const ServerError& error) {
            return {error.sqlstate(), error.report().message, error.report().detail, {}};
        }
    }
    Answer app(const std::string& sql) { return ask(*app_, "A", sql); }
    Answer app_without_tenant(const std::string& sql) { return ask(*app_, std::nullopt, sql); }
    std::string rows_of(Database& database, const std::string& sql) { return ask(database, std::nullopt, sql).rows; }
    std::string everything() {
        return rows_of(superuser_, "SELECT t::text FROM rowlock.tenant_seq t ORDER BY 1") +
               rows_of(superuser_, "SELECT l::text FROM rowlock.audit_log l ORDER BY 1") +
               rows_of(superuser_, "SELECT c::text FROM rowlock.sequence_counter c ORDER BY 1") +
               rows_of(superuser_, "SELECT q::text FROM rowlock.quota q ORDER BY 1");
    }
    /// Each is refused with its SQLSTATE, nothing has changed, and the tenant can go on appending.
    void expect_refused(const std::vector<Refusal>& refusals) {
        const std::string before = everything();
        for (const Refusal& refusal : refusals) {
            const Answer answer = app(refusal.sql);
            EXPECT_EQ(answer.sqlstate, refusal.sqlstate) << refusal.sql << "\n" << answer.message << answer.rows;
        }
        EXPECT_EQ(everything(), before);
        EXPECT_EQ(app(append_sql("A", 2, "01", "02")).sqlstate, "");
    }

    test::TestDatabase server_;
    const test::TestLogin login_ = server_.add_login("shop");
    Database superuser_{server_.connection()};
    std::optional<Database> app_;
};

}  // namespace rowlock
