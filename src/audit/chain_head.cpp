#include "audit/chain_head.hpp"

#include <algorithm>
#include <array>
#include <source_location>
#include <string_view>

#include "base/contract.hpp"
#include "postgres/advisory_namespace.hpp"
#include "postgres/binary_array.hpp"
#include "postgres/transaction_state.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

constexpr std::string_view head_lock_class = "audit head";

constexpr Statement join_queue_sql{"audit.join_queue", "SELECT pg_advisory_xact_lock($1, hashtext($2))", true};

#define ROWLOCK_LOCK_HEAD "SELECT last_seq, head_mac, key_id FROM rowlock.tenant_seq WHERE tenant_id = $1 FOR UPDATE"
constexpr Statement lock_head_sql{"audit.lock_head", ROWLOCK_LOCK_HEAD, true};
constexpr Statement lock_head_or_skip_sql{"audit.lock_head_or_skip", ROWLOCK_LOCK_HEAD " SKIP LOCKED"};

constexpr Statement make_head_sql{
    "audit.make_head", "INSERT INTO rowlock.tenant_seq (tenant_id) VALUES ($1) ON CONFLICT DO NOTHING", true};

/// On a distributed schema, where nothing is granted by column, a function of the owner's takes the same locks.
#define ROWLOCK_LOCK_HEAD_THERE "SELECT last_seq, head_mac, key_id FROM rowlock.lock_head"
constexpr Statement lock_head_there{"audit.lock_head", ROWLOCK_LOCK_HEAD_THERE "($1, false, false)", true};
constexpr Statement lock_head_or_skip_there{"audit.lock_head_or_skip", ROWLOCK_LOCK_HEAD_THERE "($1, false, true)"};
constexpr Statement make_head_there{"audit.make_head", ROWLOCK_LOCK_HEAD_THERE "($1, true, false)", true};

/// Locks: none that is not held. The functions check that the entries follow the head, move the head and insert.
constexpr Statement append_entry_sql{"audit.append_entry",
                                     "SELECT rowlock.append_entry($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)", true};
constexpr Statement append_entries_sql{
    "audit.append_entries", "SELECT rowlock.append_entries($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)", true};

std::optional<Mac> mac_of(const Row& row, std::size_t column) {
    if (row.is_null(column)) return std::nullopt;
    const auto bytes = row.bytes(column);
    Mac mac{};
    contract(bytes.size() == mac.size(), "a stored MAC has 32 bytes, as its domain says");
    std::ranges::copy(bytes, mac.begin());
    return mac;
}

std::vector<Parameter> columns_of(const TenantId& tenant, const std::vector<SignedRow>& rows) {
    using enum BinaryArray::Element;
    std::array columns{BinaryArray(bigint), BinaryArray(uuid), BinaryArray(bigint), BinaryArray(text),
                       BinaryArray(text),   BinaryArray(text), BinaryArray(json),   BinaryArray(text),
                       BinaryArray(bytea),  BinaryArray(bytea)};
    for (const SignedRow& row : rows) {
        auto column = columns.begin();
        column++->add(row.seq);
        column++->add(row.content.id.bytes());
        column++->add(row.recorded_at);
        column++->add(row.content.actor);
        column++->add(row.content.action);
        column++->add(row.content.object);
        column++->add(row.content.data);
        column++->add(row.key_id);
        column++->add(row.prev_mac);
        column++->add(row.mac);
    }
    std::vector<Parameter> parameters{tenant};
    for (const BinaryArray& column : columns) parameters.push_back(column.parameter());
    return parameters;
}

}  // namespace

void note_head_locks(Transaction& transaction, std::span<const TenantId> tenants) {
    auto& acquisitions = transaction.state().acquisitions;
    for (const Acquisition& earlier : acquisitions) {
        if (earlier.lock_class != head_lock_class) continue;
        contract(tenants.size() == 1 && tenants.front().text() == earlier.key,
                 "entries of several tenants in one transaction are one call of append_all: a tenant added later "
                 "deadlocks with a transaction that does it the other way round");
        return;
    }
    for (const TenantId& tenant : tenants) {
        acquisitions.push_back({head_lock_class, tenant.text(), std::source_location::current()});
    }
}

Query join_queue_of(const TenantId& tenant) {
    return {join_queue_sql, {audit_queue_namespace.id, tenant}};
}

Query lock_head(Transaction& transaction, const TenantId& tenant) {
    return {transaction.state().distributed() ? lock_head_there : lock_head_sql, {tenant}};
}

Query lock_head_or_skip(Transaction& transaction, const TenantId& tenant) {
    return {transaction.state().distributed() ? lock_head_or_skip_there : lock_head_or_skip_sql, {tenant}};
}

Query make_head(Transaction& transaction, const TenantId& tenant) {
    return {transaction.state().distributed() ? make_head_there : make_head_sql, {tenant}};
}

Head head_of(const Row& row) {
    return {row.integer(0), mac_of(row, 1), row.optional_text(2)};
}

void throw_head_made_meanwhile() {
    throw ServerError({.sqlstate = "40001",
                       .message = "the tenant's first entry was appended by another transaction meanwhile",
                       .statement = std::string(lock_head_sql.name)},
                      Recovery::run_again);
}

void enqueue_entries(Transaction& transaction, const TenantId& tenant, const std::vector<SignedRow>& rows) {
    if (rows.empty()) return;
    if (rows.size() > 1) return transaction.enqueue(append_entries_sql, columns_of(tenant, rows));
    const SignedRow& row = rows.front();
    transaction.enqueue(
        append_entry_sql,
        {tenant, row.seq, row.content.id, row.recorded_at, row.content.actor, row.content.action, row.content.object,
         row.content.data, row.key_id, std::span<const std::byte>(row.prev_mac), std::span<const std::byte>(row.mac)});
}

}  // namespace rowlock
