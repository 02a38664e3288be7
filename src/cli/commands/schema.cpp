#include <fmt/format.h>

#include "cli/commands/commands.hpp"
#include "cli/connection.hpp"
#include "cli/output.hpp"
#include "rowlock/error.hpp"
#include "rowlock/schema.hpp"

namespace rowlock::cli {

Exit schema_install(const Context& context, const SchemaOptions& options) {
    const auto database = open_database(context, Access::owner);
    // Ten seconds: another installer may be at work, and it will be done soon.
    const TransactionPolicy policy{.lock_wait_max = std::chrono::seconds(10)};
    SchemaStatus before;
    const SchemaStatus after = database->transact(policy, [&](Transaction& transaction) {
        before = schema_status(transaction);
        if (options.distributed) return install_distributed_schema(transaction);
        return options.partitions == 0 ? install_schema(transaction)
                                       : install_partitioned_schema(transaction, options.partitions);
    });
    if (context.globals.json) {
        print_line(JsonObject().number("before", before.installed).number("installed", after.installed).str());
    } else if (before.installed == after.installed) {
        print_line(fmt::format("the schema is there already, at version {}", after.installed));
    } else {
        print_line(fmt::format("schema rowlock is at version {} now (was {})", after.installed,
                               before.installed == 0 ? "not installed" : std::to_string(before.installed)));
        print_line("next: GRANT rowlock_app TO the role that your application logs in as");
    }
    return Exit::fine;
}

Exit schema_show_status(const Context& context) {
    const auto database = open_database(context, Access::owner);
    const SchemaStatus status =
        database->transact({}, [](Transaction& transaction) { return schema_status(transaction); });
    if (context.globals.json) {
        print_line(JsonObject().number("installed", status.installed).number("current", status.current).str());
    } else if (status.installed == 0) {
        print_line(fmt::format("not installed; `rowlock schema install` brings version {}", status.current));
    } else if (status.installed < status.current) {
        print_line(
            fmt::format("version {}; `rowlock schema install` brings version {}", status.installed, status.current));
    } else if (status.installed > status.current) {
        print_line(fmt::format("version {}, newer than this program's {}: use a newer rowlock", status.installed,
                               status.current));
    } else {
        print_line(fmt::format("version {}, up to date", status.installed));
    }
    return status.installed == status.current ? Exit::fine : Exit::finding;
}

Exit schema_print_sql(const Context& context, const SchemaOptions& options) {
    const std::string sql = options.distributed       ? distributed_schema_sql()
                            : options.partitions == 0 ? schema_sql()
                                                      : partitioned_schema_sql(options.partitions);
    if (context.globals.json) {
        print_line(JsonObject().text("sql", sql).str());
    } else {
        print_line(sql);
    }
    return Exit::fine;
}

Exit schema_uninstall(const Context& context, const UninstallOptions& options) {
    if (!options.yes) {
        throw InvalidInput("this drops the schema rowlock with every entry and number in it: say --yes to mean it");
    }
    const auto database = open_database(context, Access::owner);
    bool was_there = false;
    database->transact({}, [&](Transaction& transaction) {
        was_there = schema_status(transaction).installed > 0;
        uninstall_schema(transaction);
    });
    if (context.globals.json) {
        print_line(JsonObject().boolean("uninstalled", was_there).str());
    } else {
        print_line(was_there ? "schema rowlock is gone; its roles stay" : "there was no schema rowlock");
    }
    return Exit::fine;
}

}  // namespace rowlock::cli
