#include "audit/log_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "audit/copy_reader.hpp"
#include "base/contract.hpp"
#include "postgres/identifier.hpp"
#include "postgres/transaction_state.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

/// Takes no lock.
constexpr Statement fix_the_end{"audit.fix_the_end",
                                "SELECT ledger.ledger_id, head.last_seq, head.head_mac, head.key_id,"
                                "       (SELECT min(seq) FROM rowlock.audit_log WHERE tenant_id = $1),"
                                "       (SELECT max(seq) FROM rowlock.audit_log WHERE tenant_id = $1)"
                                "  FROM rowlock.ledger LEFT JOIN rowlock.tenant_seq AS head ON head.tenant_id = $1"};

/// Takes no lock.
constexpr Statement begins_later{
    "audit.begins_later", "SELECT coalesce(min(seq) > $2::bigint, false) FROM rowlock.audit_log WHERE tenant_id = $1"};

/// Takes no lock. Grows whenever a transaction that wrote ends, anywhere on the server. On a standby nobody writes.
constexpr Statement count_writers{"audit.count_writers",
                                  "SELECT CASE WHEN pg_is_in_recovery() THEN 0"
                                  "            ELSE pg_snapshot_xmax(pg_current_snapshot())::text::bigint END"};

/// COPY takes no parameters: it reads these settings, which end with the transaction. Steps over a hole, however wide.
/// Takes no lock. numeric, since whoever tampers may number an entry at either end of bigint.
constexpr Statement choose_chunk{
    "audit.choose_chunk",
    "SELECT begins, set_config('rowlock.chunk_tenant', $1, true), set_config('rowlock.chunk_from', begins::text, true),"
    "       set_config('rowlock.chunk_to', least($3::bigint, begins::numeric - 1 + $4::bigint)::text, true)"
    "  FROM (SELECT min(seq) AS begins FROM rowlock.audit_log"
    "         WHERE tenant_id = $1 AND seq BETWEEN $2::bigint AND $3::bigint) AS entry"
    " WHERE begins IS NOT NULL"};

/// Takes no lock.
constexpr Statement read_chunk{"audit.read_chunk",
                               "COPY (SELECT " ROWLOCK_COPY_COLUMNS
                               " FROM rowlock.audit_log"
                               "       WHERE tenant_id = current_setting('rowlock.chunk_tenant')"
                               "         AND seq BETWEEN current_setting('rowlock.chunk_from')::bigint"
                               "                     AND current_setting('rowlock.chunk_to')::bigint"
                               "       ORDER BY seq) TO STDOUT (FORMAT binary)"};

/// On a distributed schema the other servers do not have these settings, so the values stand in the text. Takes no
/// lock.
constexpr std::string_view read_chunk_there =
    "COPY (SELECT " ROWLOCK_COPY_COLUMNS
    " FROM rowlock.audit_log"
    "       WHERE tenant_id = {} AND seq BETWEEN {} AND {} ORDER BY seq) TO STDOUT (FORMAT binary)";

using Clock = std::chrono::steady_clock;

/// How long to rest after a chunk, so that reading takes a third of the time. Never so long that the server would
/// take the session for a forgotten one.
Clock::duration rest_after(Clock::duration chunk, const TransactionPolicy& policy) {
    return std::min<Clock::duration>(chunk * 2, policy.idle_max / 2);
}

}  // namespace

void read_range(Transaction& transaction, const TenantId& tenant, LogRange& range) {
    const Rows rows = transaction.execute(fix_the_end, {tenant});
    if (rows.empty()) throw SetupError("rowlock.ledger is empty: the schema is damaged, its one row is gone");
    const Row row = rows[0];
    range.ledger = EntryId::parse(row.text(0)).bytes();
    if (!row.is_null(1)) {
        if (!row.is_null(2)) range.head_mac = row.bytes(2);
        range.key_id = row.optional_text(3).value_or("");
        range.state = StateRow{row.integer(1), range.head_mac, range.key_id};
    }
    if (row.is_null(4)) return;
    range.first = row.integer(4);
    range.last = row.integer(5);
}

bool begins_later_than(Transaction& transaction, const TenantId& tenant, std::int64_t first) {
    return transaction.execute(begins_later, {tenant, first}).only().boolean(0);
}

Rest rest_for_writers(bool gives_way) {
    if (!gives_way) return {};
    return [](std::chrono::nanoseconds duration) { std::this_thread::sleep_for(duration); };
}

void read_pieces(Transaction& transaction, const TenantId& tenant, const LogRange& range, const PieceReader& reader) {
    contract(reader.chunk_entries >= 1, "a chunk has at least one entry");
    std::int64_t from = range.first;
    while (from <= range.last) {
        const auto started = Clock::now();
        const auto answers = transaction.execute_all(
            {{count_writers, {}}, {choose_chunk, {tenant, from, range.last, reader.chunk_entries}}});
        const std::int64_t writers_before = answers.front().only().integer(0);
        const Rows& chosen = answers.back();
        if (chosen.empty()) return;
        reader.next_chunk(chosen[0].integer(0));
        const std::int64_t ends = chosen[0].integer(3);
        if (transaction.state().distributed()) {
            const std::string text =
                fmt::format(read_chunk_there, quote_literal(tenant.text()), chosen[0].integer(0), ends);
            transaction.copy_out({read_chunk.name, text}, reader.piece);
        } else {
            transaction.copy_out(read_chunk, reader.piece);
        }
        if (reader.rest) {
            const Clock::duration took = Clock::now() - started;
            const std::int64_t writers = transaction.execute(count_writers).only().integer(0);
            if (writers != writers_before) reader.rest(rest_after(took, transaction.state().policy));
        }
        if (ends >= range.last) return;
        from = ends + 1;
    }
}

}  // namespace rowlock
