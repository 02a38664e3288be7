// The schema in its distributed layout: on a Citus, and on one server where stand-ins do nothing in the place of
// Citus's functions, so that all but the distribution itself is tested everywhere.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "postgres/audit_fixture.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/database.hpp"
#include "rowlock/schema.hpp"
#include "support/process.hpp"
#include "support/test_database.hpp"

namespace rowlock {

enum class Cluster { stand_in, citus };

inline void PrintTo(Cluster cluster, std::ostream* out) {
    *out << (cluster == Cluster::citus ? "citus" : "stand_in");
}

inline constexpr const char* stand_ins = R"(
    CREATE FUNCTION public.create_distributed_table(regclass, text, colocate_with text) RETURNS void LANGUAGE sql AS '';
    CREATE FUNCTION public.create_reference_table(regclass) RETURNS void LANGUAGE sql AS '';
    CREATE FUNCTION public.create_distributed_function(regprocedure) RETURNS void LANGUAGE sql AS '';
    CREATE FUNCTION public.create_distributed_function(regprocedure, text, colocate_with text, force_delegation boolean)
        RETURNS void LANGUAGE sql AS '';
)";

/// ROWLOCK_TEST_CITUS is a connection string of libpq (keywords, not a URI), as a superuser, to a database of the
/// coordinator's that has Citus, is there for tests alone, and whose servers trust each other. Its schema rowlock is
/// dropped.
class DistributedTest : public testing::TestWithParam<Cluster> {
  protected:
    void SetUp() override {
        if (GetParam() == Cluster::citus) {
            const char* const named = std::getenv("ROWLOCK_TEST_CITUS");  // NOLINT(concurrency-mt-unsafe)
            if (named == nullptr) GTEST_SKIP() << "ROWLOCK_TEST_CITUS names no Citus";
            connection_ = named;
            Database(connection_).transact(patient, uninstall_schema);
            Database(connection_).transact(patient, install_distributed_schema);
            test::run_sql(connection_, "DROP ROLE IF EXISTS rowlock_test_shop");
            test::run_sql(connection_, "CREATE ROLE rowlock_test_shop LOGIN");
            login_ = "rowlock_test_shop";
            app_connection_ = connection_ + " user=" + login_;
        } else {
            stand_in_.emplace();
            connection_ = stand_in_->connection();
            stand_in_->execute(stand_ins);
            test::ProcessOptions psql;
            psql.arguments = {"psql", "--no-psqlrc", "--quiet", "--dbname=" + connection_};
            psql.input = distributed_schema_sql();
            const test::ProcessResult installed = test::run_process(psql);
            ASSERT_EQ(installed.exit_code, 0) << installed.errors;
            const test::TestLogin& login = stand_in_->add_login("shop");
            login_ = login.role;
            app_connection_ = stand_in_->connection_as(login);
        }
        test::run_sql(connection_, "GRANT rowlock_app TO " + login_);
        superuser_ = std::make_unique<Database>(connection_);
        app_ = std::make_unique<Database>(
            DatabaseOptions{.connection = app_connection_, .connections_max = connections_max});
    }

    AppendOutcome append(const std::string& tenant, const AuditEntry& entry = {}) {
        return app_->transact(of(tenant), [&](Transaction& t) { return log_.append(t, entry); });
    }
    std::string verified(const std::string& tenant) {
        return told(superuser_->transact({}, [&](Transaction& t) { return log_.verify(t, TenantId(tenant)); }));
    }
    std::string value(std::string_view sql) { return test::run_sql(connection_, sql); }
    /// The SQLSTATE, as this role for this tenant; "" where nothing is refused.
    std::string refused(const std::string& role, const std::string& tenant, std::string_view sql) {
        Database database({.connection = connection_, .role = role});
        TransactionPolicy policy;
        if (!tenant.empty()) policy.tenant = TenantId(tenant);
        try {
            database.transact(policy, [&](Transaction& t) { t.execute({"test.refused", sql}); });
        } catch (const ServerError& refusal) {
            return refusal.sqlstate();
        }
        return "";
    }

    static constexpr std::size_t connections_max = 16;
    inline static const TransactionPolicy patient{.lock_wait_max = std::chrono::seconds(60),
                                                  .deadline = std::chrono::seconds(120)};

    std::optional<test::TestDatabase> stand_in_;
    std::string connection_;
    std::string login_;
    std::string app_connection_;
    std::unique_ptr<Database> superuser_;
    std::unique_ptr<Database> app_;
    AuditLog log_{Keyring::generate()};
};

}  // namespace rowlock
