// The words of the commands on the user's own tables.
#include <CLI/CLI.hpp>

#include "cli/command_words.hpp"

namespace rowlock::cli {

namespace {

constexpr std::int64_t quota_max = 1'000'000'000'000'000'000;
constexpr std::int64_t rows_max = 1'000'000'000;

constexpr const char* lifecycle_closing_words =
    "rowlock lifecycle retire --parent document --child claim --retired rejected --live confirmed,candidate 7 8 9\n"
    "Tables are named as in SQL (shop.\"Document\"), columns as they are. Keys and the foreign key are read from the\n"
    "catalog. A key of several columns is written 7,2026.\n"
    "--db and --json work here, too: see rowlock --help\n";

constexpr const char* track_closing_words =
    "rowlock track shop.invoice --tenant-column tenant_id --exclude updated_at --mask iban\n"
    "The table needs a primary key. Again with other options: they replace the ones before. After ALTER TABLE: run it\n"
    "again. Columns are named as they are, without quotes.\n"
    "--db and --json work here, too: see rowlock --help\n";

/// Which tables, columns and words are meant.
void describe_lifecycle(CLI::App& command, LifecycleOptions& options) {
    command.footer(lifecycle_closing_words);
    command.add_option("--parent", options.parent, "The parents' table")->required()->type_name("TABLE");
    command.add_option("--child", options.child, "The children's table")->required()->type_name("TABLE");
    command.add_option("--retired", options.retired, "The status of a retired parent")->required()->type_name("WORD");
    command.add_option("--live", options.live, "The statuses of a live child")
        ->required()
        ->delimiter(',')
        ->allow_extra_args(false)
        ->type_name("WORD,…");
    command.add_option("--retired-child", options.retired_child, "What a live child becomes. Default: as --retired")
        ->type_name("WORD");
    command.add_option("--open", options.open, "The status of a revived parent. Default: open")->type_name("WORD");
    const auto add_columns = [&](const char* option, std::vector<std::string>& columns, const char* what) {
        command.add_option(option, columns, what)->delimiter(',')->allow_extra_args(false)->type_name("COLUMN,…");
    };
    add_columns("--parent-key", options.parent_key, "Default: the primary key");
    add_columns("--child-key", options.child_key, "Default: the primary key");
    add_columns("--child-parent", options.child_parent, "The child's columns that name the parent");
    command.add_option("--parent-status", options.parent_status, "Default: status")->type_name("COLUMN");
    command.add_option("--child-status", options.child_status, "Default: status")->type_name("COLUMN");
    command.add_option("--tenant-column", options.tenant_column, "In both tables, if there is one")
        ->type_name("COLUMN");
    command.add_option("--tenant", options.tenant, "Whose rows")->type_name("NAME");
    command.add_option("--wait-ms", options.wait_ms, "The longest wait for a lock. Default: 3000")
        ->check(CLI::Range(1, 86'400'000).description(""))
        ->type_name("MS");
}

void add_lifecycle_commands(CLI::App& app, const Context& context, LifecycleOptions& options, Chosen& chosen) {
    CLI::App* const group = add_group(app, "lifecycle", "Parents, and children that live under an open one alone");
    const auto add = [&](const char* name, const char* help, Exit (*command)(const Context&, const LifecycleOptions&)) {
        CLI::App* const added = add_command(*group, chosen, name, help,
                                            [&context, &options, command] { return command(context, options); });
        describe_lifecycle(*added, options);
        return added;
    };
    CLI::App* const retire =
        add("retire", "Retire parents with their live children; a busy one is skipped", lifecycle_retire);
    retire->add_option("ids", options.ids, "Keys of parents")->type_name("KEY");
    retire->add_option("--where", options.where, "Or those that a condition picks, in SQL")->type_name("CONDITION");
    retire->add_flag("--no-wait", options.no_wait, "Skip a parent that is locked at once");
    retire->add_option("--together", options.together, "Parents in one transaction, for fewer commits. Default: 1")
        ->check(CLI::Range(1, 10'000).description(""))
        ->type_name("N");
    add("revive", "Open retired parents again, without their children", lifecycle_revive)
        ->add_option("ids", options.ids, "Keys of parents")
        ->type_name("KEY");
    add("status", "What there is, and whether the rule holds", lifecycle_show_status);
    for (CLI::App* const command : {add("sql", "Print the rule for the database", lifecycle_print_sql),
                                    add("install", "Put the rule into the database", lifecycle_install),
                                    add("uninstall", "Take it away again", lifecycle_uninstall)}) {
        command->add_option("--form", options.form, "trigger or declarative. Default: trigger")
            ->check(CLI::IsMember({"trigger", "declarative"}).description(""))
            ->type_name("FORM");
    }
}

void add_quota_commands(CLI::App& app, const Context& context, QuotaOptions& quota, Chosen& chosen) {
    CLI::App* const group = add_group(app, "quota", "Totals with a cap, one row for each");
    const auto add = [&](const char* name, const char* help, Chosen command) {
        CLI::App* const added = add_command(*group, chosen, name, help, std::move(command));
        added->add_option("--tenant", quota.tenant, "Whose quotas")->required()->type_name("NAME");
        return added;
    };
    add("show", "What is used of each, and its cap", [&] { return quota_show(context, quota); });
    CLI::App* const set = add("set", "Make a quota, or change its cap", [&] { return quota_set(context, quota); });
    set->add_option("--name", quota.name, "Of the quota")->required()->type_name("NAME");
    set->add_option("--cap", quota.cap, "At most so many; may be below what is used")
        ->required()
        ->check(CLI::Range(std::int64_t{0}, quota_max).description(""))
        ->type_name("N");
    CLI::App* const recount = add("recount", "Count the rows of a table; exit code 1 if the quota was wrong",
                                  [&] { return quota_recount(context, quota); });
    recount->add_option("--name", quota.name, "Of the quota")->required()->type_name("NAME");
    recount->add_option("--schema", quota.table.schema, "Of the table. Default: public")->type_name("NAME");
    recount->add_option("--table", quota.table.table, "Whose rows count")->required()->type_name("NAME");
    recount->add_option("--tenant-column", quota.table.tenant_column, "Default: tenant_id")
        ->default_str("tenant_id")
        ->type_name("NAME");
    recount->add_option("--amount-column", quota.table.amount_column, "Sum it up; without it rows are counted")
        ->type_name("NAME");
    CLI::Option* const column = recount->add_option("--status-column", quota.table.status_column,
                                                    "Count only rows whose status is one of --status");
    column->type_name("NAME");
    CLI::Option* const statuses = recount->add_option("--status", quota.table.statuses, "May be given several times");
    statuses->type_name("WORD")->needs(column);
    column->needs(statuses);
}

void add_claim_commands(CLI::App& app, const Context& context, ClaimCommandOptions& claim, Chosen& chosen) {
    CLI::App* const group = add_group(app, "claim", "Claims on rows by key, and the keys that were used");
    const auto add = [&](const char* name, const char* help, Chosen command) {
        CLI::App* const added = add_command(*group, chosen, name, help, std::move(command));
        added->add_option("--schema", claim.table.schema, "Of both tables. Default: public")->type_name("NAME");
        added->add_option("--table", claim.table.table, "Whose rows are claimed")->required()->type_name("NAME");
        added->add_option("--id", claim.table.id, "Column that names a row; several times for several columns")
            ->required()
            ->type_name("NAME");
        added->add_option("--key", claim.table.key, "Column of the key")->required()->type_name("NAME");
        added->add_option("--used-keys", claim.table.used_keys, "Table of the used keys")
            ->required()
            ->type_name("NAME");
        CLI::Option* const column = added->add_option("--tenant-column", claim.table.tenant, "Where there are tenants");
        CLI::Option* const tenant = added->add_option("--tenant", claim.tenant, "Whose rows");
        tenant->type_name("NAME")->needs(column);
        column->type_name("NAME");
        return added;
    };
    CLI::App* const status =
        add("status", "Open claims; exit code 1 if some have expired", [&] { return claim_status(context, claim); });
    status->add_option("--limit", claim.limit, "List at most so many. Default: 20")
        ->check(CLI::Range(std::int64_t{1}, rows_max).description(""))
        ->type_name("N");
    CLI::App* const sweep = add("sweep", "Remove used keys that are neither current nor leased",
                                [&] { return claim_sweep(context, claim); });
    sweep->add_option("--older-than", claim.older_than, "Seconds since they were done with. Default: 86400")
        ->check(CLI::Range(0.001, 1e9).description(""))
        ->type_name("SECONDS");
    sweep->add_option("--lease-max", claim.lease_max, "The longest lease that is in use, in seconds. Default: 60")
        ->check(CLI::Range(0.001, 1e9).description(""))
        ->type_name("SECONDS");
    sweep->add_option("--batch", claim.batch, "Rows in one transaction. Default: 1000")
        ->check(CLI::Range(std::int64_t{1}, rows_max).description(""))
        ->type_name("N");
    add("sql", "Print SQL that makes the table of used keys", [&] { return claim_print_sql(context, claim); });
}

void add_track_commands(CLI::App& app, const Context& context, TrackOptions& options, Chosen& chosen) {
    CLI::App* const tracking = add_command(app, chosen, "track", "Stage an entry for every changed row of a table",
                                           [&] { return track_table(context, options); });
    tracking->footer(track_closing_words);
    tracking->add_option("--tenant-column", options.table.tenant_column, "Says whose entry it is")
        ->required()
        ->type_name("COLUMN");
    const auto add_columns = [&](const char* option, std::vector<std::string>& columns, const char* what) {
        tracking->add_option(option, columns, what)->delimiter(',')->allow_extra_args(false)->type_name("COLUMN,…");
    };
    add_columns("--exclude", options.table.excluded, "Leave out: a change in these alone leaves no entry");
    add_columns("--mask", options.table.masked, "Show that it changed, but not the values");
    tracking
        ->add_option("--actor-setting", options.table.actor_setting,
                     "The setting that names who acts. Default: rowlock.actor; not set: the login")
        ->type_name("NAME");
    tracking->add_flag("--sql", options.sql, "Print it for a migration, and do nothing");
    CLI::App* const untracking = add_command(app, chosen, "untrack", "Take the triggers away; entries stay",
                                             [&] { return untrack_table(context, options); });
    for (CLI::App* const command : {tracking, untracking}) {
        command->add_option("table", options.table.table, "As in SQL: shop.invoice, shop.\"Invoice\"")
            ->required()
            ->type_name("TABLE");
        command->add_option("--wait-ms", options.wait_ms, "The longest wait for a lock. Default: 3000")
            ->check(CLI::Range(1, 86'400'000).description(""))
            ->type_name("MS");
    }
    add_command(app, chosen, "tracked", "The tracked tables; exit code 1 if one has changed since it was tracked",
                [&] { return list_tracked(context); });
}

}  // namespace

void add_table_commands(CLI::App& app, const Context& context, TableWords& words, Chosen& chosen) {
    add_lifecycle_commands(app, context, words.lifecycle, chosen);
    add_quota_commands(app, context, words.quota, chosen);
    add_claim_commands(app, context, words.claim, chosen);
    add_track_commands(app, context, words.track, chosen);
}

void add_table_benches(CLI::App& bench, const Context& context, TableWords& words, Chosen& chosen) {
    const auto seconds = [](CLI::App* command, double& value) {
        command->add_option("--seconds", value, "For each figure: 0.1 to 600. Default: 3")
            ->check(CLI::Range(0.1, 600.0).description(""))
            ->type_name("SECONDS");
    };
    CLI::App* const retiring =
        add_command(bench, chosen, "lifecycle", "Guarded inserts against bare ones, retire against the same by hand",
                    [&] { return bench_lifecycle(context, words.bench_lifecycle); });
    retiring->add_option("--children", words.bench_lifecycle.children, "Of each parent. Default: 100000")
        ->check(CLI::Range(std::int64_t{1}, rows_max).description(""))
        ->type_name("N");
    retiring->add_option("--seconds", words.bench_lifecycle.seconds, "For each round of inserts. Default: 0.5")
        ->check(CLI::Range(0.1, 600.0).description(""))
        ->type_name("SECONDS");
    CLI::App* const claims = add_command(bench, chosen, "claim", "Key claims against row locks and version columns",
                                         [&] { return bench_claim(context, words.bench_claim); });
    claims->add_option("--contenders", words.bench_claim.contenders, "Numbers of them, 1 to 128. Default: 2 32")
        ->check(CLI::Range(1, 128).description(""))
        ->type_name("N");
    claims->add_option("--work", words.bench_claim.work, "Milliseconds that a winner has the row. Default: 2")
        ->check(CLI::Range(0.0, 10000.0).description(""))
        ->type_name("MS");
    seconds(claims, words.bench_claim.seconds);
    CLI::App* const quotas = add_command(bench, chosen, "quota", "The three homes of a cap on a total, and none",
                                         [&] { return bench_quota(context, words.bench_quota); });
    quotas->add_option("--clients", words.bench_quota.clients, "Numbers of clients, 1 to 128. Default: 1 4 16")
        ->check(CLI::Range(1, 128).description(""))
        ->type_name("N");
    seconds(quotas, words.bench_quota.seconds);
    BenchTrackOptions& track = words.bench_track;
    CLI::App* const tracking =
        add_command(bench, chosen, "track", "Updates of a tracked table against an untracked one",
                    [&] { return bench_track(context, track); });
    tracking->add_option("--clients", track.clients, "1 to 128. Default: 16")
        ->check(CLI::Range(1, 128).description(""))
        ->type_name("N");
    tracking->add_option("--rounds", track.rounds, "Each way in turn, 1 to 100 times. Default: 3")
        ->check(CLI::Range(1, 100).description(""))
        ->type_name("N");
    tracking
        ->add_option("--peer-sql", track.peer_sql,
                     "supa_audit's folder, or a script that puts a peer's capture on public.peer")
        ->check(CLI::ExistingPath.description(""))
        ->type_name("DIR|FILE");
    seconds(tracking, track.seconds);
}

}  // namespace rowlock::cli
