// Through a pooler in transaction mode: every transaction may get the server connection that another tenant has just
// had.
#include <gmock/gmock.h>

#include <mutex>
#include <set>

#include "postgres/audit_fixture.hpp"
#include "support/pgbouncer.hpp"

namespace rowlock {
namespace {

class AuditLogBehindAPooler : public AuditTest {
  protected:
    void SetUp() override {
        if (!test::Pgbouncer::available()) GTEST_SKIP() << "pgbouncer is not installed";
        AuditTest::SetUp();
        pooler_.emplace(test::PgbouncerOptions{.pool_size = 1, .logins = {login_}});
        pooled_.emplace(pooler_->connection_as(server_.name(), login_));
        pooled_beside_.emplace(pooler_->connection_as(server_.name(), login_));
    }
    void TearDown() override {
        pooled_.reset();
        pooled_beside_.reset();
        pooler_.reset();
        AuditTest::TearDown();
    }
    /// Who serves this, as the server says.
    static std::int64_t backend_of(Transaction& transaction) {
        return transaction.execute({"test.backend", "SELECT pg_backend_pid()"}).only().integer(0);
    }
    /// A plain client of the pool, with no transaction and no tenant of its own.
    [[nodiscard]] std::string plain(const std::string& sql) const {
        return test::run_sql(pooler_->connection_as(server_.name(), login_), sql);
    }

    std::optional<test::Pgbouncer> pooler_;
    std::optional<Database> pooled_;
    std::optional<Database> pooled_beside_;
};

TEST_F(AuditLogBehindAPooler, NeverMixesTenantsThatTakeTurnsOnOneServerConnection) {
    std::set<std::int64_t> backends;
    for (std::int64_t round = 1; round <= 20; ++round) {
        for (const std::string tenant : {"acme", "globex"}) {
            Database& database = tenant == "acme" ? *pooled_ : *pooled_beside_;
            database.transact(of(tenant), [&](Transaction& transaction) {
                backends.insert(backend_of(transaction));
                EXPECT_EQ(said(log_.append(transaction, {.actor = tenant})), "appended " + std::to_string(round));
                const auto entries = AuditLog::list(transaction, 1, 1000);
                EXPECT_EQ(entries.size(), static_cast<std::size_t>(round));
                for (const StoredEntry& entry : entries) EXPECT_EQ(entry.actor, tenant);
            });
        }
    }
    EXPECT_EQ(backends.size(), 1U) << "they have met";
    expect_gapless("acme", 20);
    expect_gapless("globex", 20);
}

TEST_F(AuditLogBehindAPooler, LeavesNoSettingToTheNextClient) {
    const std::string settings =
        "SELECT concat_ws('|', pg_backend_pid(), current_user, current_setting('rowlock.tenant', true),"
        " current_setting('lock_timeout'), current_setting('statement_timeout'),"
        " current_setting('idle_in_transaction_session_timeout'))";
    const std::string nobody = plain("SELECT pg_backend_pid()") + "|" + login_.role + "||0|0|0";
    append_on(*pooled_, of("acme"), {});
    EXPECT_EQ(plain(settings), nobody);
    EXPECT_EQ(plain("SELECT count(*) FROM rowlock.audit_log"), "0");
    EXPECT_EQ(plain("SELECT count(*) FROM rowlock.tenant_seq"), "0");
    EXPECT_THROW(append_on(*pooled_, of("acme"), {.data = "{"}), ServerError);
    EXPECT_EQ(plain(settings), nobody) << "after a failure";
    pooled_->transact({}, [&](Transaction& transaction) {
        const std::vector<TenantEntry> entries{{TenantId("acme"), {}}, {TenantId("globex"), {}}};
        EXPECT_EQ(said(log_.append_all(transaction, entries)), "appended 2, appended 1");
    });
    EXPECT_EQ(plain(settings), nobody) << "after several tenants";
    EXPECT_EQ(plain("SELECT count(*) FROM rowlock.audit_log"), "0");
    pooled_->transact({}, [](Transaction& transaction) {
        EXPECT_EQ(AuditLog::tenants(transaction).size(), 0U);
        EXPECT_EQ(transaction.execute({"test.count", "SELECT count(*) FROM rowlock.audit_log"}).only().integer(0), 0);
    });
}

TEST_F(AuditLogBehindAPooler, WorksWithoutPreparedStatements) {
    append_many("acme", 5);
    pooled_->transact(of("acme"), [&](Transaction& transaction) {
        EXPECT_EQ(told(log_.verify(transaction, TenantId("acme"))), "intact 5");
        EXPECT_EQ(said(log_.append(transaction, {.action = "last"})), "appended 6");
    });
    const std::vector<TenantEntry> entries{{TenantId("acme"), {}}, {TenantId("acme"), {}}};
    pooled_->transact(of("acme"), [&](Transaction& transaction) {
        EXPECT_EQ(said(log_.append_all(transaction, entries)), "appended 7, appended 8");
    });
    EXPECT_EQ(plain("SELECT count(*) FROM pg_prepared_statements"), "0");
    expect_gapless("acme", 8);
}

TEST_F(AuditLogBehindAPooler, LetsManyClientsShareOneServerConnection) {
    const int rounds = full_or(100, 30);
    constexpr int clients = 8;
    in_threads(clients, [&](int client) {
        const std::string tenant = "tenant-" + std::to_string(client % 3);
        Database database(pooler_->connection_as(server_.name(), login_));
        for (int round = 0; round < rounds; ++round) {
            database.transact(of(tenant), [&](Transaction& transaction) {
                static_cast<void>(log_.append(transaction, {.actor = tenant}));
            });
        }
    });
    EXPECT_EQ(server_.value("SELECT count(*) FROM rowlock.audit_log"), std::to_string(clients * rounds));
    EXPECT_EQ(server_.value("SELECT count(*) FROM rowlock.audit_log WHERE actor <> tenant_id"), "0");
    for (const auto& [tenant, share] : {std::pair<std::string, int>{"tenant-0", 3}, {"tenant-1", 3}, {"tenant-2", 2}}) {
        expect_gapless(tenant, share * rounds);
    }
}

TEST_F(AuditLogBehindAPooler, SaysBusyAndGoesOn) {
    append("acme");
    app_->transact(of("acme"), [&](Transaction& transaction) {
        static_cast<void>(log_.append(transaction, {}));
        for (int i = 0; i < 3; ++i) {
            EXPECT_THROW(append_on(*pooled_, of("acme", std::chrono::milliseconds(50)), {}), Busy);
        }
    });
    EXPECT_EQ(said(append_on(*pooled_, of("acme"), {})), "appended 3");
    expect_gapless("acme", 3);
}

}  // namespace
}  // namespace rowlock
