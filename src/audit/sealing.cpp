#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "audit/audit_log_implementation.hpp"
#include "audit/chain_head.hpp"
#include "audit/signing.hpp"
#include "postgres/binary_array.hpp"
#include "postgres/transaction_state.hpp"
#include "rowlock/error.hpp"
#include "rowlock/sealer.hpp"

namespace rowlock {

namespace {

/// Takes no lock. Behind the lock, since its snapshot must not be older than the wait.
constexpr Statement look_at_head{"audit.look_at_head",
                                 "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, ledger_id,"
                                 "       EXISTS (SELECT FROM rowlock.tenant_seq WHERE tenant_id = $1)"
                                 "  FROM rowlock.ledger",
                                 true};

/// Locks: the rows that it takes away, which nobody else wants: only who holds the tenant's head does this.
constexpr Statement take_next{"audit.take_staged", "SELECT * FROM rowlock.take_staged($1, $2, $3)"};
constexpr Statement take_more_of_one{"audit.take_staged_of_one", "SELECT * FROM rowlock.take_staged($1, $2, $3, $4)"};

/// Takes no lock. LATERAL with LIMIT, so that each id is looked up by its index, whatever the statistics say: for a
/// tenant that they do not know, the server would read its whole log and compare.
constexpr Statement look_for_same{"audit.look_for_same",
                                  "SELECT entry.* FROM unnest($2::uuid[]) AS wanted(id) CROSS JOIN LATERAL"
                                  " (SELECT seq, entry_id, actor, action, object, data FROM rowlock.audit_log"
                                  "   WHERE tenant_id = $1 AND entry_id = wanted.id LIMIT 1) AS entry"};

/// Locks: none beyond ROW EXCLUSIVE on the table, which every INSERT takes. Hours and the rest apart: see append_entry.
constexpr Statement quarantine{
    "audit.quarantine",
    "INSERT INTO rowlock.audit_quarantined"
    "       (tenant_id, transaction_id, staged_id, entry_id, staged_at, actor, action, object, data, reason)"
    " VALUES ($1, $2, $3, $4, timestamptz 'epoch' + $5::bigint / 3600000000 * interval '1 hour'"
    "                                             + $5::bigint % 3600000000 * interval '1 microsecond',"
    "         $6, $7, $8, $9, $10)"};

/// Takes no lock. Steps from tenant to tenant by the primary key.
constexpr Statement list_staged_tenants{
    "audit.staged_tenants",
    "WITH RECURSIVE staged(tenant_id) AS ("
    "    (SELECT tenant_id FROM rowlock.audit_staged ORDER BY tenant_id LIMIT 1)"
    "    UNION ALL"
    "    SELECT (SELECT next.tenant_id FROM rowlock.audit_staged AS next WHERE next.tenant_id > staged.tenant_id"
    "             ORDER BY next.tenant_id LIMIT 1)"
    "      FROM staged WHERE staged.tenant_id IS NOT NULL)"
    " SELECT tenant_id FROM staged WHERE tenant_id IS NOT NULL"};
/// Citus knows no recursion over several servers. Reads all that is staged.
constexpr Statement list_staged_tenants_there{"audit.staged_tenants",
                                              "SELECT DISTINCT tenant_id FROM rowlock.audit_staged ORDER BY tenant_id"};

constexpr Statement count_staged_sql{
    "audit.count_staged",
    "SELECT staged.number, quarantined.number,"
    "       coalesce(greatest(extract(epoch FROM clock_timestamp() - staged.oldest) * 1000, 0), 0)::bigint"
    "  FROM (SELECT count(*) AS number, min(staged_at) AS oldest FROM rowlock.audit_staged"
    "         WHERE $1::text IS NULL OR tenant_id = $1) AS staged,"
    "       (SELECT count(*) AS number FROM rowlock.audit_quarantined"
    "         WHERE $1::text IS NULL OR tenant_id = $1) AS quarantined"};

struct StagedRow {
    std::int64_t transaction;
    std::int64_t id;
    std::int64_t staged_at;
    AuditEntry content;
};

std::vector<StagedRow> staged_rows(const Rows& rows) {
    std::vector<StagedRow> staged;
    staged.reserve(rows.size());
    for (const Row row : rows) {
        AuditEntry content{EntryId::parse(row.text(2)), row.optional_text(4), row.optional_text(5),
                           row.optional_text(6), row.optional_text(7)};
        staged.push_back({row.integer(0), row.integer(1), row.integer(3), std::move(content)});
    }
    std::ranges::sort(staged, {}, [](const StagedRow& row) { return std::tie(row.transaction, row.id); });
    return staged;
}

/// What one transaction seals of one tenant, its head locked.
class Sealing {
  public:
    Sealing(Transaction& transaction, const TenantId& tenant, const SealLimits& limits)
        : transaction_(transaction), tenant_(tenant), limits_(limits) {}

    /// False: somebody else holds the head.
    bool lock() {
        const bool waits = transaction_.lock_wait_max().waits();
        std::vector<Query> queries;
        if (waits) queries.push_back(join_queue_of(tenant_));
        queries.push_back(waits ? lock_head(transaction_, tenant_) : lock_head_or_skip(transaction_, tenant_));
        if (look(queries)) return true;
        if (exists_) return false;
        if (look({make_head(transaction_, tenant_), lock_head(transaction_, tenant_)})) return true;
        throw_head_made_meanwhile();
    }

    Sealed seal(ChainKeys& keys) {
        std::vector<StagedRow> rows = take(take_next, {});
        while (!rows.empty()) {
            append(keys, rows);
            if (!done_.more) break;
            // The rest of a transaction that the limit cut in two, so that nothing comes between.
            rows = take(take_more_of_one, {rows.back().transaction});
        }
        transaction_.state().wants_to_be_last = "sealing";
        return done_;
    }

    [[nodiscard]] const LedgerId& ledger() const noexcept { return ledger_; }

  private:
    bool look(std::vector<Query> queries) {
        queries.push_back({look_at_head, {tenant_}});
        const std::vector<Rows> answers = transaction_.execute_all(queries);
        const Row found = answers.back().only();
        situation_.clock = found.integer(0);
        ledger_ = EntryId::parse(found.text(1)).bytes();
        exists_ = found.boolean(2);
        const Rows& head = answers[answers.size() - 2];
        if (head.empty()) return false;
        situation_.head = head_of(head.only());
        return true;
    }

    std::vector<StagedRow> take(const Statement& statement, const std::vector<Parameter>& more) {
        std::vector<Parameter> parameters{tenant_, static_cast<std::int64_t>(limits_.entries_max),
                                          static_cast<std::int64_t>(limits_.bytes_max)};
        parameters.insert(parameters.end(), more.begin(), more.end());
        return staged_rows(transaction_.execute(statement, std::move(parameters)));
    }

    void append(ChainKeys& keys, const std::vector<StagedRow>& rows) {
        BinaryArray ids(BinaryArray::Element::uuid);
        std::vector<EntryToSign> entries;
        std::size_t bytes = 0;
        for (const StagedRow& row : rows) {
            ids.add(row.content.id.bytes());
            entries.push_back({&row.content, row.staged_at});
            bytes += row.content.data ? row.content.data->size() : 0;
        }
        done_.more = done_.more || rows.size() == limits_.entries_max || bytes >= limits_.bytes_max;
        situation_.existing.clear();
        for (const Row row : transaction_.execute(look_for_same, {tenant_, ids.parameter()})) {
            AuditEntry content{EntryId::parse(row.text(1)), row.optional_text(2), row.optional_text(3),
                               row.optional_text(4), row.optional_text(5)};
            situation_.existing.push_back({row.integer(0), std::move(content)});
        }
        const SignedBatch batch = sign_entries(keys, situation_, entries);
        enqueue_entries(transaction_, tenant_, batch.rows);
        if (!batch.rows.empty()) {
            const SignedRow& last = batch.rows.back();
            situation_.head = {last.seq, last.mac, last.key_id};
        }
        for (std::size_t i = 0; i < rows.size(); ++i) settle(rows[i], batch.outcomes[i]);
    }

    void settle(const StagedRow& row, const AppendOutcome& outcome) {
        if (std::holds_alternative<Appended>(outcome)) {
            ++done_.appended;
        } else if (std::holds_alternative<AlreadyAppended>(outcome)) {
            ++done_.already_there;
        } else {
            ++done_.quarantined;
            const std::string reason =
                fmt::format("entry {} has this entry_id with other content", std::get<EntryIdTaken>(outcome).seq);
            transaction_.enqueue(quarantine,
                                 {tenant_, row.transaction, row.id, row.content.id, row.staged_at, row.content.actor,
                                  row.content.action, row.content.object, row.content.data, reason});
        }
    }

    Transaction& transaction_;
    const TenantId& tenant_;
    const SealLimits& limits_;
    LedgerId ledger_{};
    bool exists_ = false;
    SigningSituation situation_;
    Sealed done_;
};

}  // namespace

SealOutcome seal_staged(Transaction& transaction, const AuditLog& log, const SealLimits& limits) {
    if (transaction.isolation() != IsolationLevel::read_committed) {
        throw InvalidInput("staged entries are sealed at READ COMMITTED: set it in the policy of the transaction");
    }
    if (limits.entries_max == 0 || limits.bytes_max == 0) {
        throw InvalidInput("sealing needs room for at least one entry");
    }
    const TenantId& tenant = transaction.required_tenant();
    note_head_locks(transaction, std::span(&tenant, 1));
    transaction.state().wants_to_be_last = {};
    Sealing sealing(transaction, tenant, limits);
    if (!sealing.lock()) return HeadTaken{};
    ChainKeysCache& cache = log.implementation().cache;
    auto keys = cache.take(sealing.ledger(), tenant);
    const Sealed sealed = sealing.seal(*keys);
    cache.give_back(std::move(keys));
    return sealed;
}

std::vector<TenantId> staged_tenants(Transaction& transaction) {
    std::vector<TenantId> tenants;
    const Statement& list = transaction.state().distributed() ? list_staged_tenants_there : list_staged_tenants;
    for (const Row row : transaction.execute(list)) tenants.emplace_back(std::string(row.text(0)));
    return tenants;
}

StagedCount count_staged(Transaction& transaction) {
    const Parameter tenant = transaction.tenant() ? Parameter(*transaction.tenant()) : Parameter(std::nullopt);
    const Rows rows = transaction.execute(count_staged_sql, {tenant});
    return {rows.only().integer(0), rows.only().integer(1), std::chrono::milliseconds(rows.only().integer(2))};
}

}  // namespace rowlock
