#include <fmt/format.h>

#include "cli/commands/commands.hpp"
#include "cli/connection.hpp"
#include "cli/output.hpp"

namespace rowlock::cli {

namespace {

TransactionPolicy policy_of(const ClaimCommandOptions& options) {
    if (!options.table.tenant.empty() && options.tenant.empty()) {
        throw InvalidInput("--tenant-column needs --tenant: claims are looked at one tenant at a time");
    }
    TransactionPolicy policy;
    if (!options.tenant.empty()) policy.tenant = TenantId(options.tenant);
    return policy;
}

std::chrono::milliseconds from_seconds(double seconds) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

std::string as_json(const OpenClaim& claim) {
    return JsonObject()
        .text("row", claim.row)
        .text("owner", claim.owner)
        .number("epoch", claim.epoch)
        .text("claimed_at", utc_time(claim.claimed_at))
        .text("leased_until", utc_time(claim.leased_until))
        .boolean("expired", claim.expired)
        .str();
}

void print_claims(const Context& context, const ClaimCounts& counts, const std::vector<OpenClaim>& claims) {
    if (context.globals.json) {
        std::vector<std::string> listed;
        for (const OpenClaim& claim : claims) listed.push_back(as_json(claim));
        print_line(JsonObject()
                       .number("open", counts.open)
                       .number("expired", counts.expired)
                       .number("used", counts.used)
                       .raw("claims", json_array(listed))
                       .str());
        return;
    }
    print_line(fmt::format("{}, {} expired; {} to be swept",
                           counted(counts.open + counts.expired, "open claim", "open claims"), grouped(counts.expired),
                           counted(counts.used, "used key", "used keys")));
    Table table({"row", "owner", "epoch", "claimed at", "leased until"});
    for (const OpenClaim& claim : claims) {
        table.add({claim.row, claim.owner, std::to_string(claim.epoch), utc_time(claim.claimed_at),
                   utc_time(claim.leased_until) + (claim.expired ? " (over)" : "")});
    }
    if (claims.empty()) return;
    for (const std::string& line : table.lines(context.style)) print_line(line);
}

}  // namespace

Exit claim_status(const Context& context, const ClaimCommandOptions& options) {
    const KeyClaim claims(options.table);
    const TransactionPolicy policy = policy_of(options);
    // As the login: the tables are the user's own.
    const auto database = open_database(context, Access::owner);
    ClaimCounts counts;
    const auto open = database->transact(policy, [&](Transaction& transaction) {
        counts = claims.count(transaction);
        return claims.list_open(transaction, options.limit);
    });
    print_claims(context, counts, open);
    return counts.expired > 0 ? Exit::finding : Exit::fine;
}

Exit claim_sweep(const Context& context, const ClaimCommandOptions& options) {
    ClaimedTable table = options.table;
    table.lease_max = from_seconds(options.lease_max);
    const KeyClaim claims(table);
    const TransactionPolicy policy = policy_of(options);
    const auto database = open_database(context, Access::owner);
    Progress progress(context.style);
    std::int64_t swept = 0;
    // Ends with the first batch that is not full. A table that grows faster than this is not one of used keys.
    for (std::int64_t last = options.batch; last == options.batch;) {
        last = database->transact(policy, [&](Transaction& transaction) {
            return claims.sweep(transaction, from_seconds(options.older_than), options.batch);
        });
        swept += last;
        progress.show(fmt::format("{} swept", grouped(swept)));
    }
    progress.clear();
    if (context.globals.json) {
        print_line(JsonObject().number("swept", swept).str());
    } else {
        print_line(fmt::format("swept {}", counted(swept, "used key", "used keys")));
    }
    return Exit::fine;
}

Exit claim_print_sql(const Context& context, const ClaimCommandOptions& options) {
    const std::string sql = KeyClaim(options.table).used_keys_sql();
    if (context.globals.json) {
        print_line(JsonObject().text("sql", sql).str());
    } else {
        print_line(sql);
    }
    return Exit::fine;
}

}  // namespace rowlock::cli
