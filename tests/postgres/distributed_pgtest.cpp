// The schema in its distributed layout: nothing of it may be weaker than the one server's, and what can't be had says
// so.
#include <gmock/gmock.h>

#include <atomic>

#include "postgres/distributed_fixture.hpp"
#include "rowlock/checkpoint.hpp"
#include "rowlock/error.hpp"
#include "rowlock/gapless_sequence.hpp"
#include "rowlock/quota.hpp"
#include "rowlock/sealer.hpp"

namespace rowlock {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

class Distributed : public DistributedTest {};

std::string name_of_cluster(const testing::TestParamInfo<Cluster>& info) {
    return info.param == Cluster::citus ? "Citus" : "StandIn";
}
INSTANTIATE_TEST_SUITE_P(On, Distributed, testing::Values(Cluster::stand_in, Cluster::citus), name_of_cluster);

std::string tenant_number(int number) {
    return "tenant " + std::to_string(number);
}

TEST_P(Distributed, IsAtTheVersionOfThisBuildAndSpreadsTheTenants) {
    EXPECT_NO_THROW(app_->transact({}, require_schema));
    EXPECT_EQ(
        value("SELECT count(*) FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid"
              " WHERE relnamespace = 'rowlock'::regnamespace AND NOT tgisinternal AND relname <> 'claimed_table'"),
        "0")
        << "Citus has no triggers";
    EXPECT_EQ(
        value("SELECT count(*) FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid WHERE relnamespace ="
              " 'rowlock'::regnamespace AND relkind = 'r' AND attname = 'tenant_id' AND atttypid <> 'text'::regtype"),
        "0")
        << "Citus finds no server for a parameter where the column is a domain";
    EXPECT_EQ(value("SELECT count(*) FROM pg_class WHERE relnamespace = 'rowlock'::regnamespace"
                    " AND relowner <> 'rowlock_owner'::regrole"),
              "0");
    if (GetParam() == Cluster::stand_in) return;
    EXPECT_NO_THROW(superuser_->transact(patient, install_distributed_schema)) << "it is there already";
    for (int i = 0; i < 30; ++i) EXPECT_EQ(said(append(tenant_number(i))), "appended 1");
    EXPECT_EQ(value("SELECT count(DISTINCT colocation_id) FROM citus_tables JOIN pg_class ON oid = table_name"
                    " WHERE citus_table_type = 'distributed' AND relnamespace = 'rowlock'::regnamespace"),
              "1");
    EXPECT_EQ(value("SELECT string_agg(DISTINCT result, ' ') FROM run_command_on_all_nodes("
                    " $$SELECT string_agg(proname, ',') FROM pg_proc WHERE pronamespace = 'rowlock'::regnamespace"
                    "   AND has_function_privilege('public', oid, 'EXECUTE')$$)"),
              "tell_nodes")
        << "Citus asks the server that runs a function, not the one that sends the call on";
    EXPECT_EQ(value("SELECT count(DISTINCT nodename || nodeport) > 1 FROM citus_shards JOIN (SELECT DISTINCT"
                    " get_shard_id_for_distribution_column('rowlock.audit_log', tenant_id) AS shardid FROM"
                    " rowlock.audit_log) AS used USING (shardid)"),
              "t")
        << "the test's Citus has more than one server";
}

TEST_P(Distributed, NumbersAndChainsAreGaplessForACrowdOfWriters) {
    constexpr int writers = 8;
    constexpr int each = 12;
    const GaplessSequence invoices("invoice");
    in_threads(writers, [&](int number) {
        for (int i = 0; i < each; ++i) {
            for (const std::string& tenant : {std::string("acme"), tenant_number(number)}) {
                app_->transact(of(tenant), [&](Transaction& t) {
                    EXPECT_GE(invoices.take_next(t), 1);
                    EXPECT_EQ(log_.append(t, {.actor = "crowd"}).index(), 0U);
                });
            }
        }
    });
    EXPECT_EQ(verified("acme"), fmt::format("intact {}", writers * each));
    EXPECT_EQ(value("SELECT format('%s %s', count(*), sum(last_taken)) FROM rowlock.sequence_counter"),
              fmt::format("{} {}", writers + 1, 2 * writers * each));
    EXPECT_EQ(superuser_->transact({}, AuditLog::tenants).size(), writers + 1U);
    for (int i = 0; i < writers; ++i) EXPECT_EQ(verified(tenant_number(i)), fmt::format("intact {}", each));
}

TEST_P(Distributed, AppendsForSeveralTenantsInOneTransactionOrForNone) {
    std::vector<TenantEntry> entries;
    for (int i = 0; i < 6; ++i) {
        entries.push_back({TenantId(tenant_number(i % 3)), {.action = "many", .data = std::to_string(i)}});
    }
    app_->transact({}, [&](Transaction& t) { EXPECT_EQ(log_.append_all(t, entries).size(), entries.size()); });
    EXPECT_THROW(app_->transact({},
                                [&](Transaction& t) {
                                    static_cast<void>(log_.append_all(t, entries));
                                    throw InvalidInput("undo it");
                                }),
                 InvalidInput);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(verified(tenant_number(i)), "intact 2");
    // The same entry once more is known by its id.
    EXPECT_EQ(said(append(tenant_number(0), entries[0].entry)), "already 1");
    const auto listed = app_->transact(of(tenant_number(1)), [](Transaction& t) { return AuditLog::list(t, 1, 10); });
    ASSERT_EQ(listed.size(), 2U);
    EXPECT_EQ(listed[1].data, "4");
}

TEST_P(Distributed, SealsWhatIsStagedAndKeepsTheOrderOfATransaction) {
    for (int i = 0; i < 10; ++i) {
        app_->transact(of(tenant_number(i % 5)), [&](Transaction& t) {
            for (const char* const object : {"first", "second", "third"}) {
                t.execute({"test.stage", "SELECT rowlock.stage($1, 'row.changed', $2)"}, {*t.tenant(), object});
            }
        });
    }
    Database sealing({.connection = connection_, .role = "rowlock_sealer"});
    EXPECT_EQ(sealing.transact({}, count_staged).entries, 30);
    const auto tenants = sealing.transact({}, staged_tenants);
    EXPECT_EQ(tenants.size(), 5U);
    for (const TenantId& tenant : tenants) {
        const auto outcome = sealing.transact({.tenant = tenant, .lock_wait_max = LockWait::skip_locked()},
                                              [&](Transaction& t) { return seal_staged(t, log_); });
        ASSERT_TRUE(std::holds_alternative<Sealed>(outcome));
        EXPECT_EQ(std::get<Sealed>(outcome).appended, 6);
        EXPECT_EQ(verified(tenant.text()), "intact 6");
        EXPECT_EQ(value("SELECT string_agg(object, ' ' ORDER BY seq) FROM rowlock.audit_log WHERE tenant_id = '" +
                        tenant.text() + "'"),
                  "first second third first second third");
    }
    EXPECT_EQ(sealing.transact({}, count_staged).entries, 0);
}

TEST_P(Distributed, ReservesNoMoreThanTheCap) {
    const Quota seats("seats");
    app_->transact(of("acme"), [&](Transaction& t) { seats.set_cap(t, 10); });
    std::atomic<int> reserved = 0;
    in_threads(8, [&](int) {
        for (int i = 0; i < 4; ++i) {
            const auto outcome = app_->transact(of("acme"), [&](Transaction& t) { return seats.reserve(t); });
            if (std::holds_alternative<Reserved>(outcome)) ++reserved;
        }
    });
    EXPECT_EQ(reserved, 10);
    EXPECT_EQ(value("SELECT used FROM rowlock.quota WHERE tenant_id = 'acme'"), "10");
}

TEST_P(Distributed, WaitsForALockNoLongerThanItsLimit) {
    append("acme");
    Database beside(app_connection_);
    app_->transact(of("acme"), [&](Transaction& t) {
        EXPECT_EQ(log_.append(t, {}).index(), 0U);
        EXPECT_THROW(static_cast<void>(beside.transact(of("acme", 300ms),
                                                       [&](Transaction& other) { return log_.append(other, {}); })),
                     Busy);
        EXPECT_NO_THROW(static_cast<void>(
            beside.transact(of("globex", 5s), [&](Transaction& other) { return log_.append(other, {}); })));
    });
    EXPECT_EQ(verified("acme"), "intact 2");
}

TEST_P(Distributed, KeepsEachTenantToItsOwnRows) {
    for (int i = 0; i < 8; ++i) append(tenant_number(i));
    for (const char* const table : {"audit_log", "tenant_seq"}) {
        const std::string count = fmt::format("SELECT count(*) FROM rowlock.{}", table);
        const auto seen = [&](const TransactionPolicy& policy) {
            return app_->transact(policy,
                                  [&](Transaction& t) { return t.execute({"test.seen", count}).only().integer(0); });
        };
        EXPECT_EQ(seen({}), 0) << table << ": no tenant sees nothing";
        EXPECT_EQ(seen(of(tenant_number(3))), 1) << table;
        EXPECT_EQ(seen(of("nobody")), 0) << table;
    }
    for (const char* const call :
         {"SELECT rowlock.stage('tenant 1', 'x')", "SELECT rowlock.next_number('tenant 1', 'x')",
          "SELECT rowlock.reserve('tenant 1', 'x')", "SELECT FROM rowlock.lock_head('tenant 1', true, false)"}) {
        EXPECT_EQ(refused(login_, tenant_number(2), call), "42501") << call;
        EXPECT_EQ(refused(login_, "", call), "42501") << call;
    }
}

TEST_P(Distributed, RefusesByPrivilegeWhatTriggersRefuseElsewhere) {
    append("acme");
    for (const char* const change :
         {"UPDATE rowlock.audit_log SET actor = 'x' WHERE tenant_id = 'acme'",
          "DELETE FROM rowlock.audit_log WHERE tenant_id = 'acme'", "TRUNCATE rowlock.audit_log",
          "DELETE FROM rowlock.tenant_seq WHERE tenant_id = 'acme'", "TRUNCATE rowlock.tenant_seq",
          "DELETE FROM rowlock.ledger"}) {
        for (const std::string& role : {std::string("rowlock_owner"), login_}) {
            EXPECT_EQ(refused(role, "acme", change), "42501") << role << ": " << change;
        }
    }
    EXPECT_EQ(refused(login_, "acme", "UPDATE rowlock.tenant_seq SET last_seq = 9 WHERE tenant_id = 'acme'"), "42501");
    EXPECT_EQ(refused(login_, "acme", "INSERT INTO rowlock.tenant_seq (tenant_id) VALUES ('acme')"), "42501");
    // What a superuser changes is not refused, and is found.
    value("UPDATE rowlock.audit_log SET actor = 'x' WHERE tenant_id = 'acme'");
    EXPECT_THAT(verified("acme"), HasSubstr("tampered"));
}

TEST_P(Distributed, RetiresWhatACheckpointCovers) {
    for (int i = 0; i < 12; ++i) append("acme");
    append("globex");
    const Checkpoint seen = superuser_->transact({}, read_checkpoint);
    EXPECT_EQ(seen.heads.size(), 2U);
    Database owner({.connection = connection_, .role = "rowlock_owner"});
    const RetirementOutcome outcome = owner.transact(
        of("acme"), [&](Transaction& t) { return log_.retire(t, seen, {.through = 5, .reason = "old"}); });
    ASSERT_TRUE(std::holds_alternative<EntriesRetired>(outcome));
    const std::int64_t retired_by = std::get<EntriesRetired>(outcome).seq;
    const auto drop = [&](Database& database) {
        return database.transact(of("acme"), [&](Transaction& t) { return AuditLog::drop_retired(t, retired_by, 3); });
    };
    EXPECT_THROW(drop(*app_), ServerError);
    EXPECT_EQ(drop(owner), 3);
    EXPECT_EQ(drop(owner), 2);
    EXPECT_EQ(drop(owner), 0);
    EXPECT_EQ(verified("acme"), "intact 8");
    EXPECT_EQ(refused("rowlock_owner", "acme", "SELECT rowlock.drop_retired_entries('acme', 12, 3)"), "RL009");
}

TEST_P(Distributed, SaysThatNoTableCanBeTracked) {
    value("CREATE TABLE public.invoice (tenant_id text, id int, PRIMARY KEY (tenant_id, id))");
    try {
        value("SELECT rowlock.track('public.invoice', 'tenant_id')");
        ADD_FAILURE() << "tracked";
    } catch (const std::exception& refusal) {
        EXPECT_THAT(refusal.what(), HasSubstr("the schema is distributed, and Citus has no triggers"));
    }
    value("DROP TABLE public.invoice");
}

TEST_P(Distributed, SaysThatRowsOfADistributedTableCanNotBeClaimed) {
    if (GetParam() == Cluster::stand_in) {
        // What Citus has a row in for every distributed table.
        value("CREATE TABLE public.pg_dist_partition AS SELECT 'rowlock.quota'::regclass AS logicalrelid");
        value("ALTER FUNCTION rowlock.refuse_distributed_claims() SET search_path = public");
    }
    try {
        value(
            "INSERT INTO rowlock.claimed_table (name, table_name, id_columns, key_column, used_keys)"
            " VALUES ('seats', 'rowlock.quota', '{name}', 'used', 'rowlock.ledger')");
        ADD_FAILURE() << "described";
    } catch (const std::exception& refusal) {
        EXPECT_THAT(refusal.what(), HasSubstr("can't be claimed by key: the table is distributed"));
    }
}

TEST_P(Distributed, IsUninstalledWhole) {
    append("acme");
    superuser_->transact(patient, uninstall_schema);
    EXPECT_EQ(Database(connection_).transact({}, schema_status).installed, 0);
    EXPECT_EQ(value("SELECT count(*) FROM pg_namespace WHERE nspname = 'rowlock'"), "0");
}

/// On a server of the ordinary kind.
class NotDistributed : public testing::Test {
  protected:
    std::string refused(SchemaStatus (*install)(Transaction&)) {
        try {
            Database(server_.connection()).transact({.lock_wait_max = 60s, .deadline = 120s}, install);
        } catch (const SetupError& error) {
            return error.what();
        }
        return "";
    }
    test::TestDatabase server_;
};

TEST_F(NotDistributed, SaysThatTheDatabaseHasNoCitus) {
    EXPECT_THAT(refused(install_distributed_schema), HasSubstr("the database has no Citus: CREATE EXTENSION citus"));
    EXPECT_EQ(refused(install_schema), "");
}

TEST_F(NotDistributed, IsNoUpgradeOfADistributedOne) {
    server_.execute(stand_ins);
    test::ProcessOptions psql;
    psql.arguments = {"psql", "--no-psqlrc", "--quiet", "--dbname=" + server_.connection()};
    psql.input = distributed_schema_sql();
    ASSERT_EQ(test::run_process(psql).exit_code, 0);
    EXPECT_EQ(refused(install_schema), "");
    server_.execute(
        "DELETE FROM rowlock.schema_version WHERE version = (SELECT max(version) FROM rowlock.schema_version)");
    EXPECT_THAT(refused(install_schema), HasSubstr("the schema is distributed"));
}

}  // namespace
}  // namespace rowlock
