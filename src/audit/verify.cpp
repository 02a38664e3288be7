#include <algorithm>

#include "audit/audit_log_implementation.hpp"
#include "audit/chain.hpp"
#include "audit/copy_reader.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

/// Takes no lock. One snapshot for the state row and the entries' ends: appends move them together.
constexpr Statement fix_the_end{
    "audit.fix_the_end",
    "SELECT ledger.ledger_id, head.last_seq, head.head_mac, head.key_id,"
    "       (SELECT min(seq) FROM rowlock.audit_log WHERE tenant_id = $1),"
    "       (SELECT max(seq) FROM rowlock.audit_log WHERE tenant_id = $1)"
    "  FROM rowlock.ledger LEFT JOIN rowlock.tenant_seq AS head ON head.tenant_id = $1"};

/// COPY takes no parameters: it reads these settings, which end with the transaction.
constexpr Statement choose_chunk{
    "audit.choose_chunk",
    "SELECT set_config('rowlock.verify_tenant', $1, true), set_config('rowlock.verify_from', $2, true),"
    "       set_config('rowlock.verify_to', $3, true)"};

/// Takes no lock.
constexpr Statement read_chunk{
    "audit.read_chunk",
    "COPY (SELECT " ROWLOCK_COPY_COLUMNS " FROM rowlock.audit_log"
    "       WHERE tenant_id = current_setting('rowlock.verify_tenant')"
    "         AND seq BETWEEN current_setting('rowlock.verify_from')::bigint"
    "                     AND current_setting('rowlock.verify_to')::bigint"
    "       ORDER BY seq) TO STDOUT (FORMAT binary)"};

/// Takes no lock. Steps over a hole, however wide it was made.
constexpr Statement next_entry{"audit.next_entry",
                               "SELECT min(seq) FROM rowlock.audit_log WHERE tenant_id = $1 AND seq BETWEEN $2 AND $3"};

/// Takes no lock.
constexpr Statement other_tenants{"audit.other_tenants",
                                  "SELECT tenant_id FROM rowlock.tenant_seq WHERE tenant_id <> $1 LIMIT 1000"};

/// What there is to read, fixed before the first entry is read: what is appended meanwhile is not looked at.
struct Range {
    LedgerId ledger{};
    std::optional<StateRow> state;
    std::vector<std::byte> head_mac;  ///< state points into these two
    std::string key_id;
    std::int64_t first = 1;
    std::int64_t last = 0;
};

void read_range(Transaction& transaction, const TenantId& tenant, Range& range) {
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

/// Feeds the entries of the range to the verifier, chunk by chunk, each with a snapshot of its own at READ COMMITTED.
void read_entries(Transaction& transaction, const TenantId& tenant, const VerifyOptions& options, const Range& range,
                  ChainVerifier& verifier) {
    std::int64_t from = range.first;
    while (from <= range.last) {
        const std::int64_t to = range.last - from < options.chunk_entries ? range.last : from + options.chunk_entries - 1;
        const std::int64_t before = verifier.entries();
        CopyReader reader([&](const SignedEntry& entry) { verifier.feed(entry); });
        transaction.execute(choose_chunk, {tenant, from, to});
        transaction.copy_out(read_chunk, [&](std::span<const std::byte> piece) { reader.take(piece); });
        if (options.progress) options.progress(verifier.entries(), std::max(range.last, verifier.entries()));
        if (to == range.last) return;
        from = to + 1;
        if (verifier.entries() > before) continue;
        const Row next = transaction.execute(next_entry, {tenant, from, range.last}).only();
        if (next.is_null(0)) return;
        from = next.integer(0);
    }
}

bool has_changed_entries(const Verification& verification) {
    return std::ranges::any_of(verification.findings,
                               [](const Finding& finding) { return finding.kind == FindingKind::changed; });
}

}  // namespace

Verification AuditLog::verify(Transaction& transaction, const TenantId& tenant, const VerifyOptions& options) const {
    const auto run = [&](ChainVerifierOptions chain_options) {
        Range range;
        read_range(transaction, tenant, range);
        ChainVerifier verifier(implementation_->cache.keyring(), range.ledger, tenant, std::move(chain_options));
        read_entries(transaction, tenant, options, range, verifier);
        return verifier.finish(range.state);
    };
    const Verification verification = run({});
    if (!has_changed_entries(verification)) return verification;
    // Changed, or another tenant's? A second reading tells, with the other tenants' keys to try: rare, and worth it.
    ChainVerifierOptions chain_options;
    for (const Row row : transaction.execute(other_tenants, {tenant})) {
        chain_options.other_tenants.emplace_back(std::string(row.text(0)));
    }
    return chain_options.other_tenants.empty() ? verification : run(std::move(chain_options));
}

}  // namespace rowlock
