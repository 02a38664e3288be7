#include <fmt/format.h>

#include "cli/commands/commands.hpp"
#include "cli/connection.hpp"
#include "cli/output.hpp"
#include "rowlock/schema.hpp"

namespace rowlock::cli {

namespace {

std::string as_json(const std::string& name, const QuotaState& state) {
    return JsonObject().text("name", name).number("used", state.used).number("cap", state.cap).str();
}

/// A name that is wrong is the user's here, and not a schema that is missing.
std::variant<Recount, NoQuota> recounted(Transaction& transaction, const Quota& quota, const CountedTable& table) {
    try {
        return quota.recount(transaction, table);
    } catch (const ServerError& refused) {
        if (refused.sqlstate() != "42P01" && refused.sqlstate() != "42703") throw;
        throw InvalidInput(refused.report().message + ": look at --schema, --table and the columns");
    }
}

}  // namespace

Exit quota_show(const Context& context, const QuotaOptions& options) {
    const auto database = open_database(context, Access::app);
    const auto quotas = database->transact({.tenant = TenantId(options.tenant)}, Quota::list);
    Table table({"quota", "used", "cap", "free"});
    for (const Quota::Named& quota : quotas) {
        if (context.globals.json) print_line(as_json(quota.name, quota.state));
        table.add({quota.name, grouped(quota.state.used), grouped(quota.state.cap),
                   grouped(std::max<std::int64_t>(quota.state.cap - quota.state.used, 0))});
    }
    if (context.globals.json) return Exit::fine;
    if (quotas.empty()) {
        print_line(fmt::format("tenant {} has no quota; rowlock quota set makes one",
                               one_line(options.tenant, Style::unlimited)));
        return Exit::fine;
    }
    for (const std::string& line : table.lines(context.style)) print_line(line);
    return Exit::fine;
}

Exit quota_set(const Context& context, const QuotaOptions& options) {
    const Quota quota(options.name);
    const auto database = open_database(context, Access::app);
    const QuotaState state = database->transact({.tenant = TenantId(options.tenant)}, [&](Transaction& transaction) {
        return quota.set_cap(transaction, options.cap);
    });
    if (context.globals.json) {
        print_line(as_json(options.name, state));
    } else {
        print_line(fmt::format("{} of {} used", grouped(state.used), grouped(state.cap)));
    }
    return Exit::fine;
}

Exit quota_recount(const Context& context, const QuotaOptions& options) {
    const Quota quota(options.name);
    // As the login, which may read the table; rowlock_app need not.
    const auto database = open_database(context, Access::owner);
    const auto outcome = database->transact({.tenant = TenantId(options.tenant)}, [&](Transaction& transaction) {
        require_schema(transaction);
        return recounted(transaction, quota, options.table);
    });
    const auto* const recount = std::get_if<Recount>(&outcome);
    if (recount == nullptr) {
        throw SetupError(
            fmt::format("tenant {} has no quota \"{}\": rowlock quota set makes one", options.tenant, options.name));
    }
    if (context.globals.json) {
        print_line(JsonObject()
                       .text("name", options.name)
                       .number("used", recount->now.used)
                       .number("cap", recount->now.cap)
                       .number("used_before", recount->before.used)
                       .boolean("repaired", recount->repaired())
                       .str());
    } else {
        print_line(fmt::format("{} of {} used, {}", grouped(recount->now.used), grouped(recount->now.cap),
                               recount->repaired()
                                   ? fmt::format("repaired: the quota said {}", grouped(recount->before.used))
                                   : "as the quota said"));
    }
    return recount->repaired() ? Exit::finding : Exit::fine;
}

}  // namespace rowlock::cli
