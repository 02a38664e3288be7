#include <fmt/format.h>

#include "cli/commands/commands.hpp"
#include "cli/connection.hpp"
#include "cli/output.hpp"
#include "cli/trust.hpp"
#include "cli/verdicts.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

/// Entries dropped in one transaction: some tenths of a second.
constexpr std::int64_t drop_batch = 20000;

Exit tell_not_retired(const Context& context, const TenantId& tenant, const EntriesNotRetired& refused) {
    print_verification(context, tenant, refused.verification);
    print_note(fmt::format("rowlock: nothing was retired: {}", refused.reason));
    return is_good(refused.verification.verdict) ? Exit::setup : exit_of(refused.verification.verdict);
}

std::int64_t drop_all(const Context& context, Database& database, const TenantId& tenant, std::int64_t retired_by) {
    Progress progress(context.style);
    std::int64_t dropped = 0;
    while (true) {
        const std::int64_t batch = database.transact({.tenant = tenant}, [&](Transaction& transaction) {
            return AuditLog::drop_retired(transaction, retired_by, drop_batch);
        });
        if (batch == 0) return dropped;
        dropped += batch;
        progress.show(fmt::format("{} entries dropped", grouped(dropped)));
    }
}

}  // namespace

Exit retire_entries(const Context& context, const RetireEntriesOptions& options) {
    const TenantId tenant(options.tenant);
    const auto opened = read_checkpoint_file(options.trust);
    if (const auto* const forged = std::get_if<Forged>(&opened)) return tell_forged(*forged);
    const auto database = open_database(context, Access::log_owner);
    const AuditLog log(open_keyring(context));
    const RetirementRequest request{.through = options.through, .reason = options.reason, .actor = options.actor};
    const RetirementOutcome outcome = database->transact({.tenant = tenant}, [&](Transaction& transaction) {
        return log.retire(transaction, std::get<Checkpoint>(opened), request);
    });
    const auto* const refused = std::get_if<EntriesNotRetired>(&outcome);
    // A run before this one may have been ended between the two steps.
    const bool dropping_goes_on = refused != nullptr && is_good(refused->verification.verdict) &&
                                  refused->verification.retired_through > 0 &&
                                  options.through == refused->verification.retired_through;
    if (refused != nullptr && !dropping_goes_on) return tell_not_retired(context, tenant, *refused);
    const std::int64_t seq =
        refused == nullptr ? std::get<EntriesRetired>(outcome).seq : refused->verification.retired_by;
    const std::int64_t dropped = drop_all(context, *database, tenant, seq);
    if (context.globals.json) {
        JsonObject object;
        object.text("tenant", tenant.text()).number("seq", seq).number("through", options.through);
        print_line(object.number("dropped", dropped).str());
    } else {
        print_line(fmt::format("{} {}  entries 1 to {} retired, {} dropped", shown(tenant.text()), seq, options.through,
                               grouped(dropped)));
    }
    return Exit::fine;
}

}  // namespace rowlock::cli
