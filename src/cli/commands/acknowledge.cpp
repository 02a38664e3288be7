#include <fmt/format.h>

#include "cli/commands/commands.hpp"
#include "cli/connection.hpp"
#include "cli/output.hpp"
#include "cli/verdicts.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

Exit tell_not_acknowledged(const Context& context, const TenantId& tenant, const NotAcknowledged& refused) {
    print_verification(context, tenant, refused.verification);
    print_note(fmt::format("rowlock: nothing was acknowledged: {}", refused.reason));
    return exit_of(refused.verification.verdict) == Exit::finding ? Exit::finding : Exit::setup;
}

}  // namespace

Exit acknowledge(const Context& context, const AcknowledgeOptions& options) {
    const TenantId tenant(options.tenant);
    AcknowledgeRequest request{.seq = options.seq, .reason = options.reason, .actor = options.actor};
    if (!options.kind.empty()) {
        request.kind = finding_kind_of(options.kind);
        if (!request.kind) {
            throw InvalidInput(
                fmt::format("\"{}\" is no kind of finding: verify tells it behind the entry's number", options.kind));
        }
    }
    const auto database = open_database(context, Access::app);
    const AuditLog log(open_keyring(context));
    const AcknowledgeOutcome outcome = database->transact(
        {.tenant = tenant}, [&](Transaction& transaction) { return log.acknowledge(transaction, request); });
    if (const auto* const refused = std::get_if<NotAcknowledged>(&outcome)) {
        return tell_not_acknowledged(context, tenant, *refused);
    }
    const auto& [seq, finding] = std::get<Acknowledged>(outcome);
    if (context.globals.json) {
        JsonObject object;
        object.text("tenant", tenant.text()).number("seq", seq).raw("finding", finding_json(finding));
        print_line(object.str());
    } else {
        print_line(fmt::format("{} {}  acknowledged: {}", shown(tenant.text()), seq, finding_line(finding)));
    }
    return Exit::fine;
}

}  // namespace rowlock::cli
