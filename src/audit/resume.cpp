// The entry that lets a log go on which was put back to an older state.
#include "audit/audit_log_implementation.hpp"
#include "audit/own_entries.hpp"
#include "base/contract.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/checkpoint.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

ResumeOutcome AuditLog::resume(Transaction& transaction, const Checkpoint& checkpoint,
                               const ResumeRequest& request) const {
    const TenantId& tenant = transaction.required_tenant();
    if (request.reason.empty()) throw InvalidInput("a resumption needs a reason: it stays in the log for ever");
    VerifyOptions options;
    options.checkpoint = &checkpoint;
    Verification verification = verify(transaction, tenant, options);
    if (verification.verdict != Verdict::rolled_back) return NothingToResume{std::move(verification)};
    const ChainHead* const head = checkpoint.find(tenant);
    contract(head != nullptr, "only what a checkpoint names is found to be rolled back");
    const Resumption resumption{0, verification.findings.front().seq - 1, head->size, head->mac, 0, {}, request.reason};
    AuditEntry entry{request.id, request.actor, std::string(resume_action), std::nullopt, resumption_json(resumption)};
    return Resumed{implementation_->append_own(transaction, std::move(entry)), resumption.after};
}

}  // namespace rowlock
