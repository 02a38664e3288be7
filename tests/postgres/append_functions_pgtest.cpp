// The functions that append: they take what follows the head, and refuse the rest as a whole.
#include <chrono>
#include <thread>

#include "postgres/two_tenants.hpp"

namespace rowlock {
namespace {

using AppendFunctions = TwoTenants;

TEST_F(AppendFunctions, RefuseAnEntryThatDoesNotFollowTheHead) {
    expect_refused({
        {append_sql("A", 3, "01", "02"), "RL001"},
        {append_sql("A", 1, "01", "02"), "RL001"},
        {append_sql("A", 0, "01", "02"), "RL001"},
        {append_sql("A", 2, "00", "02"), "RL001"},
        {replaced(append_sql("A", 2, "01", "02"), "'k1'", "'k2'"), "RL003"},
        {replaced(append_sql("A", 2, "01", "02"), "'k1'", "NULL"), "RL003"},
        {replaced(append_sql("A", 2, "01", "02"), "'02', 32", "'02', 31"), "23514"},
        {replaced(append_sql("A", 2, "01", "02"), "'made', 'it'", "'rowlock.key_rotation', NULL"), "23514"},
        {replaced(append_sql("A", 2, "01", "02"), "'made', 'it'", "'rowlock.key_rotation', ''"), "23514"},
        {replaced(append_sql("A", 2, "01", "02"), "{\"a\":  1}", "{\"a\": \"\\u0000\"}"), "22P05"},
        {replaced(append_sql("A", 2, "01", "02"), "{\"a\":  1}", "1e1000000"), "22003"},
        {replaced(append_sql("A", 2, "01", "02"), "{\"a\":  1}", "{"), "22P02"},
        {replaced(append_sql("A", 2, "01", "02"), "gen_random_uuid()", "NULL"), "23502"},
        {replaced(append_sql("A", 2, "01", "02"), "1700000000123456", "NULL"), "23502"},
        {replaced(append_sql("A", 2, "01", "02"), "gen_random_uuid()", "(SELECT entry_id FROM rowlock.audit_log)"),
         "23505"},
    });
}

/// Two entries 2 and 3 of tenant A; parts of it are replaced to make it wrong.
const std::string batch =
    "SELECT rowlock.append_entries('A', '{2,3}', ARRAY[gen_random_uuid(), gen_random_uuid()], '{5,-5}', '{me,NULL}',"
    " '{x,y}', '{o,p}', ARRAY['{\"a\":  1}', NULL]::json[], '{k1,k1}', ARRAY[mac('01'), mac('02')], ARRAY[mac('02'), "
    "mac('03')])";

std::string batch_with(std::string_view from, std::string_view to) {
    std::string sql = replaced(batch, from, to);
    for (const std::string digits : {"01", "02", "03", "09"}) {
        sql = replaced(sql, "mac('" + digits + "')", "decode(repeat('" + digits + "', 32), 'hex')");
    }
    return sql;
}

TEST_F(AppendFunctions, RefuseABatchWithABreakInItAsAWhole) {
    expect_refused({
        {batch_with("'{2,3}'", "'{2,4}'"), "RL001"},
        {batch_with("'{2,3}'", "'{3,4}'"), "RL001"},
        {batch_with("'{2,3}'", "'{2,NULL}'"), "RL001"},
        {batch_with("ARRAY[mac('01')", "ARRAY[mac('09')"), "RL001"},
        {batch_with("mac('02')], ARRAY", "mac('09')], ARRAY"), "RL001"},
        {batch_with("mac('02')], ARRAY[mac('02')", "NULL], ARRAY[NULL"), "RL001"},
        {batch_with("'{2,3}'", "'{9223372036854775806,9223372036854775807}'"), "RL001"},
        {batch_with("'{k1,k1}'", "'{k1,k2}'"), "RL003"},
        {batch_with("'{k1,k1}'", "'{k2,k2}'"), "RL003"},
        {batch_with("'{x,y}', '{o,p}'", "'{rowlock.key_rotation,y}', '{k2,p}'"), "RL003"},
        {batch_with("'{x,y}', '{o,p}'", "'{x,rowlock.key_rotation}', '{o,NULL}'"), "23514"},
        {batch_with("'{2,3}'", "'[0:1]={2,3}'"), "RL004"},
        {batch_with("'{2,3}'", "'{{2},{3}}'"), "RL004"},
        {batch_with("'{2,3}'", "'{2}'"), "RL004"},
        {batch_with("'{2,3}'", "'{}'"), "RL004"},
        {batch_with("'{2,3}'", "NULL"), "RL004"},
        {batch_with("entries('A'", "entries('B'"), "42501"},
        {batch_with("entries('A'", "entries(NULL"), "42501"},
    });
    EXPECT_EQ(app("SELECT count(*) FROM rowlock.audit_log").rows, "SELECT 1:2;");
}

TEST_F(AppendFunctions, LetOneOfTwoThatSkipTheLockWinAndTellTheOther) {
    Answer late;
    std::thread other;
    app_->transact({.tenant = TenantId("A")}, [&](Transaction& transaction) {
        run(transaction, append_sql("A", 2, "01", "02"));
        other = std::thread([&] { late = app(append_sql("A", 2, "01", "09")); });
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
    });
    other.join();
    EXPECT_EQ(late.sqlstate, "RL001");
    EXPECT_EQ(app("SELECT last_seq FROM rowlock.tenant_seq").rows, "SELECT 1:2;");
    EXPECT_EQ(app(append_sql("A", 3, "02", "03")).sqlstate, "");
}

TEST_F(AppendFunctions, LetAKeyRotationIntroduceTheNextKeyWithinABatch) {
    EXPECT_EQ(
        app(replaced(batch_with("'{x,y}', '{o,p}'", "'{rowlock.key_rotation,y}', '{k2,p}'"), "'{k1,k1}'", "'{k1,k2}'"))
            .sqlstate,
        "");
    EXPECT_EQ(app("SELECT key_id FROM rowlock.tenant_seq").rows, "SELECT 1:k2;");
    EXPECT_EQ(app("SELECT key_id FROM rowlock.audit_log ORDER BY seq").rows, "SELECT 3:k1;k1;k2;");
    EXPECT_EQ(app(append_sql("A", 4, "03", "04")).sqlstate, "RL003");
    EXPECT_EQ(app(replaced(append_sql("A", 4, "03", "04"), "'k1'", "'k2'")).sqlstate, "");
}

TEST_F(AppendFunctions, KeepEveryMicrosecond) {
    for (const std::string us :
         {"0", "-1", "1", "1700000000999999", "9007199254740993", "-62135596799999999", "9000000000000000001"}) {
        EXPECT_EQ(ask(*app_, "T" + us, "INSERT INTO rowlock.tenant_seq (tenant_id) VALUES ('T" + us + "')").sqlstate,
                  "");
        EXPECT_EQ(ask(*app_, "T" + us, replaced(append_sql("T" + us, 1, "00", "01"), "1700000000123456", us)).sqlstate,
                  "");
        EXPECT_EQ(
            ask(*app_, "T" + us, "SELECT (extract(epoch FROM recorded_at) * 1000000)::bigint FROM rowlock.audit_log")
                .rows,
            "SELECT 1:" + us + ";");
    }
}

}  // namespace
}  // namespace rowlock
