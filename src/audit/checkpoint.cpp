#include "rowlock/checkpoint.hpp"

#include <algorithm>

#include "base/contract.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

/// Takes no lock. One statement, so one snapshot at every isolation level; the clock is read in it, and so is not
/// before any entry that the snapshot shows.
constexpr Statement read_heads{"audit.read_heads",
                               "SELECT ledger.ledger_id, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,"
                               "       head.tenant_id, head.last_seq, head.head_mac, head.key_id"
                               "  FROM rowlock.ledger LEFT JOIN rowlock.tenant_seq AS head ON head.last_seq <> 0"
                               " ORDER BY head.tenant_id"};

/// Takes no lock.
constexpr Statement may_note{
    "audit.may_note_checkpoint",
    "SELECT has_function_privilege('rowlock.note_checkpoint(bigint, bigint, bigint)', 'EXECUTE')"
    "   AND current_setting('transaction_read_only') = 'off'"};

/// Locks: the one row of checkpoint_noted, until the transaction ends.
constexpr Statement note_made{"audit.note_checkpoint", "SELECT rowlock.note_checkpoint($1, $2, $3)", true};

/// Takes no lock.
constexpr Statement read_noted{
    "audit.read_noted",
    "SELECT (extract(epoch FROM made_at) * 1000000)::bigint,"
    "       (extract(epoch FROM clock_timestamp() - made_at) * 1000)::bigint, tenants, entries"
    "  FROM rowlock.checkpoint_noted"};

ChainHead head_of_row(const Row& row) {
    ChainHead head{TenantId(std::string(row.text(2))), row.integer(3), {}, row.optional_text(5).value_or("")};
    if (head.size < 1 || row.is_null(4) || head.key_id.empty()) {
        throw SetupError("the state row of tenant " + head.tenant.text() +
                         " is damaged (last_seq, head_mac or key_id): rowlock verify tells more");
    }
    const auto mac = row.bytes(4);
    contract(mac.size() == head.mac.size(), "a stored MAC has 32 bytes, as its domain says");
    std::ranges::copy(mac, head.mac.begin());
    return head;
}

}  // namespace

Checkpoint read_checkpoint(Transaction& transaction) {
    const Rows rows = transaction.execute(read_heads);
    if (rows.empty()) throw SetupError("rowlock.ledger is empty: the schema is damaged, its one row is gone");
    Checkpoint checkpoint;
    checkpoint.ledger = EntryId::parse(rows[0].text(0)).bytes();
    checkpoint.made_at = rows[0].integer(1);
    for (const Row row : rows) {
        checkpoint.made_at = std::min(checkpoint.made_at, row.integer(1));
        if (!row.is_null(2)) checkpoint.heads.push_back(head_of_row(row));
    }
    return checkpoint;
}

bool note_checkpoint(Transaction& transaction, const Checkpoint& checkpoint) {
    if (!transaction.execute(may_note).only().boolean(0)) return false;
    std::int64_t entries = 0;
    for (const ChainHead& head : checkpoint.heads) entries += head.size;
    const auto tenants = static_cast<std::int64_t>(checkpoint.heads.size());
    transaction.execute(note_made, {checkpoint.made_at, tenants, entries});
    return true;
}

std::optional<NotedCheckpoint> last_noted_checkpoint(Transaction& transaction) {
    const Rows rows = transaction.execute(read_noted);
    if (rows.empty()) return std::nullopt;
    const Row row = rows[0];
    return NotedCheckpoint{row.integer(0), std::chrono::milliseconds(row.integer(1)), row.integer(2), row.integer(3)};
}

}  // namespace rowlock
