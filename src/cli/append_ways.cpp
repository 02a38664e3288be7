#include "cli/append_ways.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>
#include <variant>

#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

/// What every way writes: an entry of about 250 bytes.
constexpr std::string_view sample_data =
    R"({"invoice":4711,"total":"129.90","currency":"EUR","lines":[{"sku":"A-100","quantity":3},{"sku":"B-7","quantity":1}]})";
constexpr std::string_view sample_mac = "\\x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// The peers' tables have the columns, keys and checks of ours, and neither row-level security nor triggers.
constexpr Statement make_tables{
    "bench.tables",
    "CREATE SCHEMA bench;"
    "CREATE TABLE bench.article_log (LIKE rowlock.audit_log INCLUDING ALL);"
    "CREATE TABLE bench.article_state (tenant_id text COLLATE \"C\" PRIMARY KEY, last_seq bigint NOT NULL DEFAULT 0,"
    "                                  head_mac bytea) WITH (fillfactor = 50);"
    "CREATE TABLE bench.max_log (LIKE rowlock.audit_log INCLUDING ALL);"
    "CREATE TABLE bench.lock_log (LIKE rowlock.audit_log INCLUDING ALL);"
    "CREATE TABLE bench.sequence_log (LIKE rowlock.audit_log INCLUDING ALL);"
    "CREATE TABLE bench.plain_log (LIKE rowlock.audit_log INCLUDING ALL);"
    "CREATE SEQUENCE bench.number; CREATE SEQUENCE bench.plain_number"};

#define ROWLOCK_BENCH_INSERT(table, number)                                                        \
    "INSERT INTO bench." table                                                                     \
    " (tenant_id, entry_id, data, prev_mac, mac, seq, recorded_at, actor, action, object, key_id)" \
    " VALUES ($1, $2, $3, $4, $4, " number ", clock_timestamp(), 'ann', 'invoice.paid', 'invoice 4711', 'k1')"

constexpr Statement message_db_write{"bench.message_db_write", "SELECT write_message($1, $2, 'invoice.paid', $3)"};
/// Its functions name each other without a schema. For the sessions that begin after it.
constexpr Statement message_db_path{"bench.message_db_path",
                                    "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = message_store, "
                                    "public', current_database()); END $$"};
constexpr Statement first_trip{"bench.first_trip", "SELECT"};
constexpr Statement article_first_use{"bench.article_first_use",
                                      "INSERT INTO bench.article_state (tenant_id) VALUES ($1) ON CONFLICT DO NOTHING"};
constexpr Statement article_lock{"bench.article_lock",
                                 "SELECT last_seq, head_mac FROM bench.article_state WHERE tenant_id = $1 FOR UPDATE"};
constexpr Statement article_insert{"bench.article_insert", ROWLOCK_BENCH_INSERT("article_log", "$5")};
constexpr Statement article_move{"bench.article_move",
                                 "UPDATE bench.article_state SET last_seq = $2, head_mac = $3 WHERE tenant_id = $1"};
constexpr Statement max_read{"bench.max_read",
                             "SELECT coalesce(max(seq), 0) + 1 FROM bench.max_log WHERE tenant_id = $1"};
constexpr Statement max_insert{"bench.max_insert", ROWLOCK_BENCH_INSERT("max_log", "$5")};
constexpr Statement lock_table{"bench.lock_table", "LOCK TABLE bench.lock_log IN EXCLUSIVE MODE", true};
constexpr Statement lock_read{"bench.lock_read",
                              "SELECT coalesce(max(seq), 0) + 1 FROM bench.lock_log WHERE tenant_id = $1"};
constexpr Statement lock_insert{"bench.lock_insert", ROWLOCK_BENCH_INSERT("lock_log", "$5")};
constexpr Statement sequence_read{"bench.sequence_read", "SELECT nextval('bench.number')"};
constexpr Statement sequence_insert{"bench.sequence_insert", ROWLOCK_BENCH_INSERT("sequence_log", "$5")};
constexpr Statement plain_insert{"bench.plain_insert",
                                 ROWLOCK_BENCH_INSERT("plain_log", "nextval('bench.plain_number')")};

std::vector<Parameter> values(const TenantId& tenant) {
    return {tenant, EntryId::generate(), sample_data, sample_mac};
}

std::vector<Parameter> values(const TenantId& tenant, std::int64_t number) {
    auto parameters = values(tenant);
    parameters.emplace_back(number);
    return parameters;
}

AuditEntry sample_entry() {
    return {.actor = "ann", .action = "invoice.paid", .object = "invoice 4711", .data = std::string(sample_data)};
}

void append_ours(AppendClient& client, const TenantId& tenant) {
    client.app.transact({.tenant = tenant, .lock_wait_max = std::chrono::seconds(30)}, [&](Transaction& transaction) {
        if (!std::holds_alternative<Appended>(client.log.append(transaction, sample_entry()))) {
            throw InvalidInput("an entry id came twice");
        }
    });
}

/// As a caller that waits for its number.
void append_gathered(AppendClient& client, const TenantId& tenant) {
    static_cast<void>(client.appender.append(tenant, sample_entry()).get());
}

/// As a caller that has many under way and waits for the oldest of them.
void append_under_way(AppendClient& client, const TenantId& tenant) {
    client.under_way.push_back(client.appender.append(tenant, sample_entry()));
    if (client.under_way.size() < appends_under_way) return;
    static_cast<void>(client.under_way.front().get());
    client.under_way.pop_front();
}

/// The flow of the source article, a round trip for each of its statements: BEGIN, first use, lock, insert, move,
/// COMMIT.
void append_article(AppendClient& client, const TenantId& tenant) {
    client.owner.transact({.tenant = tenant, .lock_wait_max = std::chrono::seconds(30)}, [&](Transaction& transaction) {
        transaction.execute(first_trip);
        transaction.execute(article_first_use, {tenant});
        const std::int64_t next = transaction.execute(article_lock, {tenant}).only().integer(0) + 1;
        transaction.execute(article_insert, values(tenant, next));
        transaction.execute(article_move, {tenant, next, sample_mac});
    });
}

void append_max(AppendClient& client, const TenantId& tenant) {
    constexpr int tries_max = 10000;
    for (int i = 0; i < tries_max; ++i) {
        try {
            client.owner.transact({}, [&](Transaction& transaction) {
                const std::int64_t next = transaction.execute(max_read, {tenant}).only().integer(0);
                transaction.enqueue(max_insert, values(tenant, next));
            });
            return;
        } catch (const ServerError& error) {
            if (error.sqlstate() != "23505") throw;  // somebody else took the number: read again
        }
    }
}

void append_lock_table(AppendClient& client, const TenantId& tenant) {
    client.owner.transact({.lock_wait_max = std::chrono::seconds(30)}, [&](Transaction& transaction) {
        transaction.enqueue(lock_table);
        const std::int64_t next = transaction.execute(lock_read, {tenant}).only().integer(0);
        transaction.enqueue(lock_insert, values(tenant, next));
    });
}

void append_sequence(AppendClient& client, const TenantId& tenant) {
    client.owner.transact({}, [&](Transaction& transaction) {
        const std::int64_t next = transaction.execute(sequence_read).only().integer(0);
        transaction.enqueue(sequence_insert, values(tenant, next));
    });
}

void run_bare(Session& bare, const Statement& statement, const std::vector<Parameter>& parameters) {
    bare.queue(statement, parameters);
    bare.flush().rows_or_throw();
}

void append_plain(AppendClient& client, const TenantId& tenant) {
    run_bare(client.bare, plain_insert, values(tenant));
}

/// One category, which message-db locks as a whole; a stream of it for each tenant.
void append_message_db(AppendClient& client, const TenantId& tenant) {
    run_bare(client.bare, message_db_write,
             {EntryId::generate().text(), fmt::format("audit-{}", tenant.text()), sample_data});
}

}  // namespace

void make_append_tables(Database& owner, const std::string& message_db) {
    owner.transact({}, [&](Transaction& transaction) {
        transaction.execute_script(make_tables);
        if (message_db.empty()) return;
        transaction.execute(message_db_path);
        transaction.execute_script({"bench.message_db", "SET LOCAL search_path = message_store, public;" + message_db});
    });
}

std::vector<AppendWay> append_ways(bool with_message_db) {
    std::vector<AppendWay> all{{"plain INSERT (no order, no chain)", append_plain},
                               {"global SEQUENCE (holes, no chain)", append_sequence},
                               {"rowlock (gapless, chained, RLS)", append_ours},
                               {"rowlock's Appender", append_gathered},
                               {"the article's six round trips", append_article},
                               {"MAX+1 with retries", append_max},
                               {"LOCK TABLE", append_lock_table},
                               {"rowlock's Appender, 64 under way each", append_under_way, false}};
    if (with_message_db) all.push_back({"message-db, one category", append_message_db});
    return all;
}

void finish_appends(AppendClient& client) {
    for (auto& append : client.under_way) static_cast<void>(append.get());
    client.under_way.clear();
}

}  // namespace rowlock::cli
