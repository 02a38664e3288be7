#include "rowlock/audit_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "audit/audit_log_implementation.hpp"
#include "audit/chain_head.hpp"
#include "audit/signing.hpp"
#include "base/contract.hpp"
#include "postgres/advisory_namespace.hpp"
#include "postgres/binary_array.hpp"
#include "postgres/transaction_state.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

constexpr std::string_view reserved_actions = "rowlock.";

/// Locks: one transaction-scoped advisory lock per tenant (or per hash, where two tenants' hashes meet), ascending,
/// until the transaction ends. A fair queue: a crowd waiting on the row itself wakes two waiters at each handover, this
/// queue one. What makes the numbers correct is lock_head. Calls for several tenants need the queue to be free of
/// deadlocks, too: a first use (make_head) comes when heads behind it in order may be locked already.
constexpr Statement join_queue{
    "audit.join_queue",
    "SELECT pg_advisory_xact_lock($1, queue.key)"
    "  FROM (SELECT DISTINCT hashtext(tenant) AS key FROM unnest($2::text[]) AS tenant ORDER BY key) AS queue",
    true};

/// Under row-level security only the tenant of the transaction can be written.
constexpr Statement set_tenant{"audit.set_tenant", "SELECT set_config('rowlock.tenant', $1, true)", true};
/// On a distributed schema: also on the servers that the transaction reaches.
constexpr Statement set_tenant_there{"audit.set_tenant",
                                     "SELECT rowlock.tell_nodes($1, current_setting('lock_timeout'))", true};

/// Takes no lock. A statement of its own, behind lock_head: the snapshot of lock_head itself may be older than the wait
/// in it, and would miss an entry that the holder before us committed; likewise the clock.
/// LATERAL with LIMIT, so that each id is looked up by its index, whatever the statistics say: for a tenant that they
/// do not know, the server would read its whole log and compare. Counted among those that wait, as are the rest of an
/// append's statements, so that the deadline need not be lifted and set again between them.
#define ROWLOCK_LOOK_UNDER_LOCK(wanted)                                                                           \
    "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, row_security_active('rowlock.audit_log')," \
    "       ledger.ledger_id, entry.seq, entry.entry_id, entry.actor, entry.action, entry.object, entry.data"     \
    "  FROM rowlock.ledger LEFT JOIN (" wanted                                                                    \
    "       CROSS JOIN LATERAL (SELECT seq, entry_id, actor, action, object, data FROM rowlock.audit_log"         \
    "                            WHERE tenant_id = $1 AND entry_id = wanted.id LIMIT 1) AS entry) ON true"
constexpr Statement look_for_one{"audit.look_under_lock", ROWLOCK_LOOK_UNDER_LOCK("(SELECT $2::uuid) AS wanted(id)"),
                                 true};
/// Ids that are later than the tenant's last need no look: of many that were just generated, that is nearly all, unless
/// the tenant has an id of another kind than version 7.
constexpr Statement look_for_many{
    "audit.look_under_lock",
    ROWLOCK_LOOK_UNDER_LOCK("(SELECT id FROM unnest($2::uuid[]) AS id"
                            "          WHERE id <= (SELECT entry_id FROM rowlock.audit_log WHERE tenant_id = $1"
                            "                        ORDER BY entry_id DESC LIMIT 1)) AS wanted"),
    true};

/// Takes no lock.
constexpr Statement list_entries{
    "audit.list",
    "SELECT seq, entry_id, (extract(epoch FROM recorded_at) * 1000000)::bigint, actor, action, object, data, key_id"
    "  FROM rowlock.audit_log WHERE tenant_id = $1 AND seq >= $2 ORDER BY seq LIMIT $3"};

/// Takes no lock. Tenants of the log itself as well as of the state rows: one of the two may have been tampered away.
/// The recursion steps from tenant to tenant by the primary key, and so does not read the whole log.
constexpr Statement list_tenants{
    "audit.tenants",
    "WITH RECURSIVE logged(tenant_id) AS ("
    "    (SELECT tenant_id FROM rowlock.audit_log ORDER BY tenant_id LIMIT 1)"
    "    UNION ALL"
    "    SELECT (SELECT log.tenant_id FROM rowlock.audit_log AS log WHERE log.tenant_id > logged.tenant_id"
    "             ORDER BY log.tenant_id LIMIT 1)"
    "      FROM logged WHERE logged.tenant_id IS NOT NULL)"
    " SELECT tenant_id FROM logged WHERE tenant_id IS NOT NULL"
    " UNION SELECT tenant_id FROM rowlock.tenant_seq ORDER BY tenant_id"};
/// Citus knows no recursion over several servers. Reads the primary key of the whole log, on all of them at once.
constexpr Statement list_tenants_there{"audit.tenants",
                                       "SELECT tenant_id FROM rowlock.audit_log GROUP BY tenant_id"
                                       " UNION SELECT tenant_id FROM rowlock.tenant_seq ORDER BY tenant_id"};

/// What one tenant's locked head and the look under its lock gave.
struct LockedTenant {
    LedgerId ledger{};
    SigningSituation situation;
};

LockedTenant look_under_lock(const Rows& head, const Rows& rows, const TenantId& tenant) {
    if (rows.empty()) throw SetupError("rowlock.ledger is empty: the schema is damaged, its one row is gone");
    if (!rows[0].boolean(1)) {
        throw SetupError(
            "row-level security does not apply to this role, so nothing keeps the tenants apart: connect as a "
            "member of rowlock_app that is neither superuser nor BYPASSRLS (or set the role rowlock_app)");
    }
    contract(head.size() == 1, "a tenant's head is one row: " + tenant.text());
    LockedTenant locked;
    locked.ledger = EntryId::parse(rows[0].text(2)).bytes();
    locked.situation.head = head_of(head[0]);
    locked.situation.clock = rows[0].integer(0);
    for (const Row row : rows) {
        if (row.is_null(3)) continue;
        AuditEntry content{EntryId::parse(row.text(4)), row.optional_text(5), row.optional_text(6),
                           row.optional_text(7), row.optional_text(8)};
        locked.situation.existing.push_back({row.integer(3), std::move(content)});
    }
    return locked;
}

/// The entries of one call, by tenant in the order of their locks.
struct TenantBatch {
    TenantId tenant;
    std::vector<std::size_t> places;  ///< In what the caller gave.
    std::vector<EntryToSign> entries;
    std::vector<EntryId> ids;
};

/// Before anything is locked or sent.
void require_callers_action(const AuditEntry& entry) {
    if (!entry.action || !entry.action->starts_with(reserved_actions)) return;
    throw InvalidInput(
        fmt::format("action \"{}\" begins with \"{}\", which is the log's own", *entry.action, reserved_actions));
}

void require_appendable(const AuditEntry& entry) {
    for (const auto* const text : {&entry.actor, &entry.action, &entry.object, &entry.data}) {
        if (*text && (*text)->find('\0') != std::string::npos) {
            throw InvalidInput("an audit entry has a NUL byte in it, which PostgreSQL's text can't hold");
        }
    }
}

std::vector<TenantBatch> by_tenant(std::span<const TenantEntry> entries) {
    std::map<std::string_view, TenantBatch> batches;
    for (std::size_t place = 0; place < entries.size(); ++place) {
        const auto& [tenant, entry] = entries[place];
        require_appendable(entry);
        auto& batch = batches.try_emplace(tenant.text(), TenantBatch{tenant, {}, {}, {}}).first->second;
        batch.places.push_back(place);
        batch.entries.push_back({&entry, {}});
        batch.ids.push_back(entry.id);
    }
    std::vector<TenantBatch> ordered;
    ordered.reserve(batches.size());
    for (auto& [text, batch] : batches) ordered.push_back(std::move(batch));
    return ordered;
}

/// One call of append_all on its transaction.
class Appending {
  public:
    Appending(Transaction& transaction, std::vector<TenantBatch> batches)
        : transaction_(transaction),
          batches_(std::move(batches)),
          switches_tenant_(!transaction.tenant()),
          switch_tenant_(transaction.state().distributed() ? set_tenant_there : set_tenant) {}

    void check_order() {
        std::vector<TenantId> tenants;
        for (const TenantBatch& batch : batches_) tenants.push_back(batch.tenant);
        note_head_locks(transaction_, tenants);
    }

    std::vector<LockedTenant> lock() {
        std::vector<Query> queries;
        if (transaction_.isolation() == IsolationLevel::read_committed) queries.push_back(queue_query());
        const std::size_t first = queries.size();
        for (const TenantBatch& batch : batches_) add_lock_queries(batch, false, queries);
        auto rows = transaction_.execute_all(queries);
        const std::size_t width = switches_tenant_ ? 3 : 2;
        std::vector<LockedTenant> locked;
        for (std::size_t i = 0; i < batches_.size(); ++i) {
            const std::size_t at = first + (i + 1) * width - 2;
            locked.push_back(rows[at].empty() ? make_and_lock(batches_[i])
                                              : look_under_lock(rows[at], rows[at + 1], batches_[i].tenant));
        }
        return locked;
    }

    void enqueue(const TenantBatch& batch, const std::vector<SignedRow>& rows) {
        if (rows.empty()) return;
        if (switches_tenant_) transaction_.enqueue(switch_tenant_, {batch.tenant});
        enqueue_entries(transaction_, batch.tenant, rows);
    }

    void finish() {
        if (switches_tenant_) transaction_.enqueue(switch_tenant_, {""});
        transaction_.state().wants_to_be_last = "an audit append";
    }

    [[nodiscard]] const std::vector<TenantBatch>& batches() const noexcept { return batches_; }

  private:
    Query queue_query() const {
        if (batches_.size() == 1) return join_queue_of(batches_[0].tenant);
        std::vector<std::optional<std::string>> tenants;
        tenants.reserve(batches_.size());
        for (const TenantBatch& batch : batches_) tenants.emplace_back(batch.tenant.text());
        return {join_queue, {audit_queue_namespace.id, Parameter::array(tenants)}};
    }

    void add_lock_queries(const TenantBatch& batch, bool first_use, std::vector<Query>& queries) const {
        if (switches_tenant_) queries.push_back({switch_tenant_, {batch.tenant}});
        if (first_use) queries.push_back(make_head(transaction_, batch.tenant));
        queries.push_back(lock_head(transaction_, batch.tenant));
        if (batch.ids.size() == 1) {
            queries.push_back({look_for_one, {batch.tenant, batch.ids.front()}});
        } else {
            BinaryArray ids(BinaryArray::Element::uuid);
            for (const EntryId& id : batch.ids) ids.add(id.bytes());
            queries.push_back({look_for_many, {batch.tenant, ids.parameter()}});
        }
    }

    /// The tenant's first use, or at least it was: any number of first users may be doing the same.
    LockedTenant make_and_lock(const TenantBatch& batch) {
        std::vector<Query> queries;
        add_lock_queries(batch, true, queries);
        const auto rows = transaction_.execute_all(queries);
        const Rows& head = rows[rows.size() - 2];
        if (head.empty()) {
            throw_head_made_meanwhile();
        }
        return look_under_lock(head, rows.back(), batch.tenant);
    }

    Transaction& transaction_;
    std::vector<TenantBatch> batches_;
    bool switches_tenant_;
    const Statement& switch_tenant_;
};

}  // namespace

AuditLog::AuditLog(Keyring keyring) : implementation_(std::make_unique<Implementation>(std::move(keyring))) {}
AuditLog::~AuditLog() = default;
AuditLog::AuditLog(AuditLog&&) noexcept = default;
AuditLog& AuditLog::operator=(AuditLog&&) noexcept = default;

AppendOutcome AuditLog::append(Transaction& transaction, const AuditEntry& entry) const {
    const TenantEntry one{transaction.required_tenant(), entry};
    return append_all(transaction, std::span(&one, 1)).front();
}

std::vector<AppendOutcome> AuditLog::append_all(Transaction& transaction, std::span<const TenantEntry> entries) const {
    for (const TenantEntry& each : entries) require_callers_action(each.entry);
    return implementation_->append_all(transaction, entries);
}

std::int64_t AuditLog::Implementation::append_own(Transaction& transaction, AuditEntry entry) const {
    const TenantEntry one{transaction.required_tenant(), std::move(entry)};
    const AppendOutcome outcome = append_all(transaction, std::span(&one, 1)).front();
    const auto* const appended = std::get_if<Appended>(&outcome);
    if (appended == nullptr) {
        throw InvalidInput(fmt::format("the id given for {} is that of another entry", one.entry.action.value_or("")));
    }
    return appended->seq;
}

std::vector<AppendOutcome> AuditLog::Implementation::append_all(Transaction& transaction,
                                                                std::span<const TenantEntry> entries) const {
    if (entries.empty()) return {};
    Appending appending(transaction, by_tenant(entries));
    for (const TenantBatch& batch : appending.batches()) {
        if (transaction.tenant() && batch.tenant != *transaction.tenant()) {
            throw InvalidInput(
                fmt::format("an entry is for tenant {}, the transaction for tenant {}: leave the tenant out "
                            "of the policy to append for several",
                            batch.tenant.text(), transaction.tenant()->text()));
        }
    }
    appending.check_order();
    transaction.state().wants_to_be_last = {};
    const auto locked = appending.lock();
    std::vector<std::optional<AppendOutcome>> outcomes(entries.size());
    for (std::size_t i = 0; i < locked.size(); ++i) {
        const TenantBatch& batch = appending.batches()[i];
        auto keys = cache.take(locked[i].ledger, batch.tenant);
        const SignedBatch signed_batch = sign_entries(*keys, locked[i].situation, batch.entries);
        cache.give_back(std::move(keys));
        appending.enqueue(batch, signed_batch.rows);
        for (std::size_t j = 0; j < batch.places.size(); ++j) outcomes[batch.places[j]] = signed_batch.outcomes[j];
    }
    appending.finish();
    std::vector<AppendOutcome> result;
    result.reserve(outcomes.size());
    for (const auto& outcome : outcomes) result.push_back(*outcome);
    return result;
}

std::vector<StoredEntry> AuditLog::list(Transaction& transaction, std::int64_t first_seq, std::int64_t count_max) {
    const Rows rows = transaction.execute(
        list_entries, {transaction.required_tenant(), first_seq, std::max<std::int64_t>(count_max, 0)});
    std::vector<StoredEntry> entries;
    for (const Row row : rows) {
        entries.push_back({row.integer(0), EntryId::parse(row.text(1)), row.integer(2), row.optional_text(3),
                           row.optional_text(4), row.optional_text(5), row.optional_text(6), std::string(row.text(7))});
    }
    return entries;
}

std::vector<TenantId> AuditLog::tenants(Transaction& transaction) {
    std::vector<TenantId> tenants;
    const Statement& list = transaction.state().distributed() ? list_tenants_there : list_tenants;
    for (const Row row : transaction.execute(list)) tenants.emplace_back(std::string(row.text(0)));
    return tenants;
}

}  // namespace rowlock
