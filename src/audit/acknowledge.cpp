// The entry that acknowledges a break.
#include <algorithm>

#include "audit/audit_log_implementation.hpp"
#include "audit/chain_findings.hpp"
#include "audit/own_entries.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

std::string why_not(FindingKind kind) {
    switch (kind) {
        case FindingKind::rolled_back:
        case FindingKind::chain_missing:
            return "rowlock resume lets a log go on that was put back";
        case FindingKind::diverged:
            return "history was written anew, and no entry of it can be believed";
        case FindingKind::state_changed:
            return "put the tenant's row of rowlock.tenant_seq right, by the last entry";
        case FindingKind::duplicate:
            return "remove the entry that is there a second time";
        default:
            return "too much of it was found to name it in an entry";
    }
}

using Choice = std::variant<const Finding*, std::string>;

Choice choose(const Verification& verification, const AcknowledgeRequest& request) {
    const std::string at = "at entry " + std::to_string(request.seq);
    std::vector<const Finding*> fitting;
    std::string kinds;
    for (const Finding& finding : verification.findings) {
        // What is appended to a wrong head is itself a break.
        if (finding.kind == FindingKind::state_changed) return "the state row was changed: " + why_not(finding.kind);
        if (request.seq < finding.seq || request.seq > finding.last_seq) continue;
        if (request.kind && finding.kind != *request.kind) continue;
        (kinds += kinds.empty() ? "" : ", ") += name_of(finding.kind);
        fitting.push_back(&finding);
    }
    if (fitting.empty()) {
        return "nothing " + (request.kind ? "of kind " + std::string(name_of(*request.kind)) + " " : std::string()) +
               "is found " + at + ", or it is acknowledged already";
    }
    if (fitting.size() > 1) return "several things are found " + at + ": name one of " + kinds;
    const Finding& finding = *fitting.front();
    if (!finding.evidence) return std::string(name_of(finding.kind)) + ": " + why_not(finding.kind);
    return &finding;
}

}  // namespace

AcknowledgeOutcome AuditLog::acknowledge(Transaction& transaction, const AcknowledgeRequest& request) const {
    const TenantId& tenant = transaction.required_tenant();
    if (request.reason.empty()) throw InvalidInput("an acknowledgement needs a reason: it stays in the log for ever");
    Verification verification = verify(transaction, tenant);
    Choice choice = choose(verification, request);
    if (auto* const reason = std::get_if<std::string>(&choice)) {
        return NotAcknowledged{std::move(*reason), std::move(verification)};
    }
    Finding finding = *std::get<const Finding*>(choice);
    // Once the entry stands behind it, a tail is a gap.
    if (finding.kind == FindingKind::tail_missing) finding.kind = FindingKind::missing;
    const Acknowledgement acknowledgement{0,  finding.kind,   finding.seq, finding.last_seq, *finding.evidence, 0,
                                          {}, request.reason, false};
    AuditEntry entry{request.id, request.actor, std::string(acknowledge_action), std::nullopt,
                     acknowledgement_json(acknowledgement)};
    return Acknowledged{implementation_->append_own(transaction, std::move(entry)), std::move(finding)};
}

}  // namespace rowlock
