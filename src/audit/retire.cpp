// Retention: the entry that retires a prefix of a chain, and the dropping of what it retires.
#include <algorithm>

#include "audit/audit_log_implementation.hpp"
#include "audit/own_entries.hpp"
#include "base/contract.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/checkpoint.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

/// Takes no lock.
constexpr Statement read_cut{"audit.read_cut",
                             "SELECT mac, CASE WHEN action = 'rowlock.key_rotation' THEN object ELSE key_id END"
                             "  FROM rowlock.audit_log WHERE tenant_id = $1 AND seq = $2"};

/// Locks: the dropped entries, until the transaction ends.
constexpr Statement drop_retired_entries{"audit.drop_retired", "SELECT rowlock.drop_retired_entries($1, $2, $3)", true};

std::optional<std::string> reason_against(const Verification& verification, const ChainHead* head,
                                          std::int64_t through) {
    if (!is_good(verification.verdict)) return "the log is not intact";
    const auto breaks_cut = [&](const Acknowledgement& each) {
        return each.found && each.first_seq <= through + 1 && each.last_seq >= through;
    };
    if (std::ranges::any_of(verification.acknowledgements, breaks_cut)) {
        return "a break is acknowledged where the cut would be: nothing true would be left to begin with, so choose "
               "another";
    }
    if (through <= verification.retired_through) return "these entries have been retired already";
    if (head == nullptr) return "the checkpoint says nothing of this tenant";
    if (head->size < through) return "the checkpoint covers entries up to " + std::to_string(head->size) + " only";
    if (verification.checkpoint != Comparison::agrees) return "the checkpoint is older than the last resumption";
    return std::nullopt;
}

}  // namespace

RetirementOutcome AuditLog::retire(Transaction& transaction, const Checkpoint& checkpoint,
                                   const RetirementRequest& request) const {
    const TenantId& tenant = transaction.required_tenant();
    if (request.through < 1) throw InvalidInput("the entries to retire are 1 up to a number from 1 on");
    if (request.reason.empty()) throw InvalidInput("a retirement needs a reason: it stays in the log");
    VerifyOptions options;
    options.checkpoint = &checkpoint;
    Verification verification = verify(transaction, tenant, options);
    if (auto against = reason_against(verification, checkpoint.find(tenant), request.through)) {
        return EntriesNotRetired{std::move(*against), std::move(verification)};
    }
    const Rows rows = transaction.execute(read_cut, {tenant, request.through});
    if (rows.empty())
        return EntriesNotRetired{"entry " + std::to_string(request.through) + " is gone", std::move(verification)};
    Retirement retirement{0, request.through, {}, rows[0].optional_text(1).value_or(""), request.reason};
    const auto mac = rows[0].bytes(0);
    contract(mac.size() == retirement.mac.size(), "a stored MAC has 32 bytes, as its domain says");
    std::ranges::copy(mac, retirement.mac.begin());
    AuditEntry entry{request.id, request.actor, std::string(retirement_action), std::nullopt,
                     retirement_json(retirement)};
    return EntriesRetired{implementation_->append_own(transaction, std::move(entry))};
}

std::int64_t AuditLog::drop_retired(Transaction& transaction, std::int64_t retired_by, std::int64_t entries_max) {
    contract(entries_max >= 1, "at least one entry is dropped at a time");
    return transaction.execute(drop_retired_entries, {transaction.required_tenant(), retired_by, entries_max})
        .only()
        .integer(0);
}

}  // namespace rowlock
