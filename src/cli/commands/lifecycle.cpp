#include <fmt/format.h>

#include <algorithm>

#include "cli/commands/commands.hpp"
#include "cli/connection.hpp"
#include "cli/interruption.hpp"
#include "cli/output.hpp"
#include "rowlock/error.hpp"
#include "rowlock/lifecycle.hpp"
#include "rowlock/lifecycle_rule.hpp"

namespace rowlock::cli {

namespace {

/// As the server reads a name: folded to lower case unless quoted, looked up in the search_path unless qualified.
constexpr Statement find_table{
    "lifecycle.find_table",
    "SELECT nspname, relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace"
    " WHERE pg_class.oid = to_regclass($1)"};

void name_table(Transaction& transaction, const std::string& name, std::string& schema, std::string& table) {
    const Rows rows = transaction.execute(find_table, {name});
    if (rows.empty()) throw SetupError(fmt::format("there is no table {}", name));
    schema = rows.only().text(0);
    table = rows.only().text(1);
}

LifecycleDescription description_of(Database& database, const LifecycleOptions& options) {
    LifecycleDescription description;
    database.transact({}, [&](Transaction& transaction) {
        name_table(transaction, options.parent, description.parent.schema, description.parent.table);
        name_table(transaction, options.child, description.child.schema, description.child.table);
    });
    description.parent.key = options.parent_key;
    description.parent.status = options.parent_status;
    description.child.key = options.child_key;
    description.child.parent = options.child_parent;
    description.child.status = options.child_status;
    description.open = options.open;
    description.retired = options.retired;
    description.retired_child = options.retired_child;
    description.live_children = options.live;
    description.tenant_column = options.tenant_column;
    return description;
}

Lifecycle lifecycle_of(Database& database, const LifecycleOptions& options) {
    return {database, description_of(database, options)};
}

void require_tenant(const LifecycleOptions& options) {
    if (options.tenant_column.empty() == !options.tenant) return;
    throw InvalidInput("--tenant-column says where the tenant stands and --tenant whose rows are meant: name both");
}

TransactionPolicy policy_of(const LifecycleOptions& options) {
    TransactionPolicy policy;
    if (options.tenant) policy.tenant = TenantId(*options.tenant);
    policy.lock_wait_max = options.no_wait ? LockWait::no_wait() : LockWait(std::chrono::milliseconds(options.wait_ms));
    return policy;
}

LifecycleRule rule_of(const LifecycleOptions& options) {
    return options.form == "trigger" ? LifecycleRule::trigger : LifecycleRule::declarative;
}

/// A key of several columns is written with commas: 7,2026.
RowKey key_of(const std::string& text, std::size_t columns) {
    if (columns == 1) return RowKey(text);
    std::vector<std::string> values;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        values.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return RowKey(std::move(values));
}

/// Those that the condition picks and that are not retired yet. It is the caller's own SQL, run as the caller.
std::vector<RowKey> parents_where(Database& database, const Lifecycle& lifecycle, const LifecycleOptions& options) {
    std::vector<RowKey> parents;
    database.transact(policy_of(options), [&](Transaction& transaction) {
        const std::string sql = open_parents_sql(lifecycle.description(), options.where);
        std::vector<Parameter> parameters{options.retired};
        if (options.tenant) parameters.emplace_back(*options.tenant);
        for (const Row row : transaction.execute({"lifecycle.parents_where", sql}, std::move(parameters))) {
            std::vector<std::string> values;
            for (std::size_t i = 0; i < lifecycle.description().parent.key.size(); ++i)
                values.emplace_back(row.text(i));
            parents.emplace_back(std::move(values));
        }
    });
    return parents;
}

std::vector<RowKey> parents_of(Database& database, const Lifecycle& lifecycle, const LifecycleOptions& options) {
    if (options.ids.empty() == options.where.empty()) {
        throw InvalidInput("name the parents by their keys, or by --where CONDITION: one of the two");
    }
    if (!options.where.empty()) return parents_where(database, lifecycle, options);
    std::vector<RowKey> parents;
    for (const std::string& id : options.ids) {
        parents.push_back(key_of(id, lifecycle.description().parent.key.size()));
    }
    return parents;
}

std::string told(const std::vector<Blocker>& blockers) {
    if (blockers.empty()) return "whoever held it is gone by now";
    std::vector<std::string> holders;
    for (const Blocker& blocker : blockers) {
        holders.push_back(fmt::format("pid {}{}{}, for {:.1f} s", blocker.pid,
                                      blocker.application_name.empty() ? "" : ", " + shown(blocker.application_name),
                                      blocker.state.empty() ? "" : ", " + blocker.state,
                                      std::chrono::duration<double>(blocker.transaction_age).count()));
    }
    return fmt::format("held by {}", fmt::join(holders, "; "));
}

std::string json_of(const std::vector<RowKey>& keys) {
    std::vector<std::string> elements;
    for (const RowKey& key : keys) elements.push_back(JsonObject().text("parent", key.text()).str());
    return json_array(elements);
}

std::string json_of(const RetireReport& report) {
    std::vector<std::string> done;
    for (const auto& one : report.done) {
        JsonObject counts;
        for (const auto& [earlier, count] : one.earlier_counts) counts.number(earlier, count);
        done.push_back(JsonObject().text("parent", one.parent.text()).raw("children", counts.str()).str());
    }
    std::vector<std::string> busy;
    for (const auto& one : report.busy) {
        std::vector<std::string> blockers;
        for (const Blocker& blocker : one.blockers) {
            JsonObject object;
            object.number("pid", blocker.pid).text("application_name", blocker.application_name);
            object.text("state", blocker.state).number("transaction_age_ms", blocker.transaction_age.count());
            blockers.push_back(object.str());
        }
        busy.push_back(JsonObject().text("parent", one.parent.text()).raw("blockers", json_array(blockers)).str());
    }
    std::vector<std::string> failed;
    for (const auto& one : report.failed) {
        failed.push_back(JsonObject().text("parent", one.parent.text()).text("reason", one.reason).str());
    }
    JsonObject object;
    object.raw("done", json_array(done)).raw("already_retired", json_of(report.already_retired));
    object.raw("missing", json_of(report.missing)).raw("busy", json_array(busy)).raw("failed", json_array(failed));
    return object.raw("not_tried", json_of(report.not_tried)).str();
}

void print_report(const RetireReport& report) {
    std::map<std::string, std::int64_t> counts;
    std::int64_t children = 0;
    for (const auto& one : report.done) {
        for (const auto& [earlier, count] : one.earlier_counts) {
            counts[earlier] += count;
            children += count;
        }
    }
    std::vector<std::string> parts;
    for (const auto& [earlier, count] : counts) parts.push_back(fmt::format("{} {}", grouped(count), shown(earlier)));
    const auto size = [](const auto& list) { return grouped(static_cast<std::int64_t>(list.size())); };
    std::string line =
        fmt::format("retired {} with {}", counted(static_cast<std::int64_t>(report.done.size()), "parent", "parents"),
                    counted(children, "child", "children"));
    if (!parts.empty()) line += fmt::format(" ({})", fmt::join(parts, ", "));
    if (!report.already_retired.empty()) line += fmt::format(", {} already retired", size(report.already_retired));
    if (!report.missing.empty()) line += fmt::format(", {} missing", size(report.missing));
    if (!report.busy.empty()) line += fmt::format(", {} busy", size(report.busy));
    if (!report.failed.empty()) line += fmt::format(", {} failed", size(report.failed));
    if (!report.not_tried.empty()) line += fmt::format(", {} not tried", size(report.not_tried));
    print_line(line);
}

void print_skipped(const RetireReport& report) {
    for (const RowKey& key : report.missing) print_note(fmt::format("rowlock: {}: there is none", shown(key.text())));
    for (const auto& one : report.busy) {
        print_note(
            fmt::format("rowlock: {}: busy, {}; run this again for it", shown(one.parent.text()), told(one.blockers)));
    }
    for (const auto& one : report.failed) {
        print_note(fmt::format("rowlock: {}: {}", shown(one.parent.text()), shown(one.reason)));
    }
}

}  // namespace

Exit lifecycle_retire(const Context& context, const LifecycleOptions& options) {
    require_tenant(options);
    const auto database = open_database(context, Access::owner);
    const Lifecycle lifecycle = lifecycle_of(*database, options);
    const std::vector<RowKey> parents = parents_of(*database, lifecycle, options);
    Progress progress(context.style);
    Interruption interruption;
    RetireBatchOptions batch;
    batch.policy = policy_of(options);
    batch.parents_per_transaction = options.together;
    batch.is_interrupted = [&] { return interruption.has_come(); };
    batch.progress = [&](std::size_t tried, const RetireReport& report) {
        progress.show(fmt::format("{} of {} parents, {} busy", tried, parents.size(), report.busy.size()));
    };
    const RetireReport report = retire_each(*database, lifecycle, parents, batch);
    progress.clear();
    if (context.globals.json) {
        print_line(json_of(report));
    } else {
        print_report(report);
        print_skipped(report);
    }
    if (!report.not_tried.empty()) {
        print_note("rowlock: interrupted: run this again for what is left");
        flush_output();
        interruption.die();
    }
    if (!report.failed.empty()) return Exit::setup;
    return report.busy.empty() && report.missing.empty() ? Exit::fine : Exit::finding;
}

Exit lifecycle_revive(const Context& context, const LifecycleOptions& options) {
    require_tenant(options);
    if (options.ids.empty()) throw InvalidInput("name the parents by their keys");
    const auto database = open_database(context, Access::owner);
    const Lifecycle lifecycle = lifecycle_of(*database, options);
    Exit exit = Exit::fine;
    for (const std::string& id : options.ids) {
        const RowKey key = key_of(id, lifecycle.description().parent.key.size());
        const ReviveOutcome outcome = database->transact(
            policy_of(options), [&](Transaction& transaction) { return lifecycle.revive(transaction, key); });
        std::string_view result = "revived";
        if (std::holds_alternative<AlreadyOpen>(outcome)) result = "already_open";
        if (std::holds_alternative<MissingParent>(outcome)) {
            result = "missing";
            exit = Exit::finding;
        }
        if (context.globals.json) {
            print_line(JsonObject().text("parent", key.text()).text("outcome", result).str());
            continue;
        }
        const std::string_view told = result == "revived"   ? "revived; its children stay as they are"
                                      : result == "missing" ? "is missing"
                                                            : "was open already";
        print_line(fmt::format("{} {}", shown(key.text()), told));
    }
    return exit;
}

Exit lifecycle_print_sql(const Context& context, const LifecycleOptions& options) {
    const auto database = open_database(context, Access::owner);
    const Lifecycle lifecycle = lifecycle_of(*database, options);
    const std::string sql = "BEGIN;\n" + lifecycle_rule_sql(lifecycle.description(), rule_of(options)) + "COMMIT;";
    print_line(context.globals.json ? JsonObject().text("sql", sql).str() : sql);
    return Exit::fine;
}

Exit lifecycle_install(const Context& context, const LifecycleOptions& options) {
    const auto database = open_database(context, Access::owner);
    const Lifecycle lifecycle = lifecycle_of(*database, options);
    const std::string sql = lifecycle_rule_sql(lifecycle.description(), rule_of(options));
    database->transact(policy_of(options),
                       [&](Transaction& transaction) { transaction.execute_script({"lifecycle.install", sql}); });
    if (context.globals.json) {
        print_line(JsonObject().text("installed", options.form).str());
    } else {
        print_line(
            fmt::format("the rule is in the database now ({}): it holds for writers in any language", options.form));
    }
    return Exit::fine;
}

Exit lifecycle_uninstall(const Context& context, const LifecycleOptions& options) {
    const auto database = open_database(context, Access::owner);
    const Lifecycle lifecycle = lifecycle_of(*database, options);
    const std::string sql = lifecycle_rule_removal_sql(lifecycle.description(), rule_of(options));
    database->transact(policy_of(options),
                       [&](Transaction& transaction) { transaction.execute_script({"lifecycle.uninstall", sql}); });
    if (context.globals.json) {
        print_line(JsonObject().text("uninstalled", options.form).str());
    } else {
        print_line(fmt::format("the rule ({}) is gone from the database", options.form));
    }
    return Exit::fine;
}

Exit lifecycle_show_status(const Context& context, const LifecycleOptions& options) {
    const auto database = open_database(context, Access::owner);
    const Lifecycle lifecycle = lifecycle_of(*database, options);
    const LifecycleStatus status = database->transact(policy_of(options), [&](Transaction& transaction) {
        return lifecycle_status(transaction, lifecycle.description());
    });
    if (context.globals.json) {
        JsonObject object;
        object.boolean("trigger", status.has_trigger).boolean("declarative", status.has_declarative);
        object.number("open_parents", status.open_parents).number("retired_parents", status.retired_parents);
        object.number("live_children", status.live_children).number("violations", status.violations);
        print_line(object.str());
    } else {
        print_line(fmt::format("{} open, {} retired; {}", counted(status.open_parents, "parent", "parents"),
                               grouped(status.retired_parents),
                               counted(status.live_children, "live child", "live children")));
        print_line(fmt::format("rule in the database: {}",
                               status.has_trigger && status.has_declarative ? "trigger and declarative"
                               : status.has_trigger                         ? "trigger"
                               : status.has_declarative                     ? "declarative"
                                                        : "none; `rowlock lifecycle install` brings it"));
        if (status.violations > 0) {
            print_line(fmt::format("BROKEN: {} under a retired parent",
                                   counted(status.violations, "live child", "live children")));
        }
    }
    return status.violations == 0 ? Exit::fine : Exit::finding;
}

}  // namespace rowlock::cli
