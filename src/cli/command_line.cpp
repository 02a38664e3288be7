#include "cli/command_line.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "cli/command_words.hpp"
#include "cli/commands/commands.hpp"
#include "cli/explain.hpp"
#include "cli/output.hpp"
#include "rowlock/error.hpp"
#include "rowlock/schema.hpp"

namespace rowlock::cli {

namespace {

constexpr const char* description =
    "rowlock keeps relational data consistent when many writers touch it at once, on a real PostgreSQL.\n"
    "\n"
    "Without --db it works on a private PostgreSQL of its own, which it makes and starts when it is needed.\n"
    "Begin with:  rowlock demo\n";

constexpr const char* closing_words =
    "Exit codes: 0 fine; 1 a finding (tampered, busy, bad lines left out); 2 wrong usage or set-up, nothing "
    "half-done;\n"
    "3 could not tell (a key is not at hand, nothing to look at). Errors go to stderr.\n";

constexpr const char* command_closing_words = "--db, --data, --keyring and --json work here, too: see rowlock --help\n";

constexpr const char* append_closing_words =
    "One entry:   rowlock append --tenant acme --actor ann --action invoice.paid --data '{\"invoice\":1}'\n"
    "Many:        rowlock append --jsonl - --writers 8 < entries.jsonl\n"
    "A line is {\"tenant\":\"acme\",\"actor\":…,\"action\":…,\"object\":…,\"data\":…,\"entry_id\":…}; only tenant must "
    "be there.\n"
    "Lines of one tenant keep their order. A bad line stops the work, with every line before it appended.\n"
    "\n"
    "--db, --keyring and --json work here, too; the global --data goes before the word append. See rowlock --help\n";

constexpr int writers_max = 64;

/// What the words of a command line were read into. The commands point into it, so it outlives the parse.
struct Words {
    Context context;
    SchemaOptions schema;
    UninstallOptions uninstall;
    AppendOptions append;
    ListOptions list;
    VerifyCommandOptions verify;
    TrustWords trust;
    StatusOptions status;
    DemoOptions demo;
    RaceOptions race;
    BenchAppendOptions bench_append;
    BenchVerifyOptions bench_verify;
    LedgerWords ledger;
    TableWords tables;
    std::vector<std::string> psql;
    Chosen chosen;
};

void add_globals(CLI::App& app, Globals& globals) {
    app.add_option("--db", globals.db,
                   "A PostgreSQL: a libpq URI or keyword string. Default: ROWLOCK_DB, else the private server")
        ->type_name("URI");
    app.add_option("--data", globals.data, "Folder of the private server. Default: rowlock/ under XDG_STATE_HOME")
        ->type_name("DIR");
    app.add_option("--keyring", globals.keyring,
                   "Keyring file. Default: ROWLOCK_KEYRING, else rowlock/keyring.json under XDG_CONFIG_HOME")
        ->type_name("FILE");
    app.add_option("--keyring-command", globals.keyring_command,
                   "A command that prints the keyring, from a KMS for one. Default: ROWLOCK_KEYRING_COMMAND")
        ->type_name("CMD");
    app.add_flag("--json", globals.json, "Print JSON");
}

/// What is said on the command line wins over the environment, and two things that exclude each other are refused.
void complete_globals(Globals& globals) {
    if (!globals.db.empty() && !globals.data.empty()) {
        throw InvalidInput("--db names your server and --data is about the private one: leave one of them out");
    }
    if (globals.db.empty() && globals.data.empty()) globals.db = environment("ROWLOCK_DB");
    if (!globals.keyring.empty() && !globals.keyring_command.empty()) {
        throw InvalidInput("--keyring and --keyring-command both say where the keys are: leave one of them out");
    }
    if (!globals.keyring.empty() || !globals.keyring_command.empty()) return;
    globals.keyring = environment("ROWLOCK_KEYRING");
    globals.keyring_command = environment("ROWLOCK_KEYRING_COMMAND");
    if (!globals.keyring.empty() && !globals.keyring_command.empty()) {
        throw InvalidInput("ROWLOCK_KEYRING and ROWLOCK_KEYRING_COMMAND are both set: unset one of them");
    }
}

/// A whole number from 1 on; CLI11's own check for that speaks of ranges of 300 digits.
CLI::Validator from_one() {
    return CLI::Validator(
        [](std::string& text) {
            const bool digits =
                !text.empty() && text.size() <= 18 && text.find_first_not_of("0123456789") == std::string::npos;
            if (digits && text.find_first_not_of('0') != std::string::npos) return std::string();
            return "\"" + text + "\" is no whole number from 1 on";
        },
        "");
}

}  // namespace

CLI::App* add_command(CLI::App& app, Chosen& chosen, const char* name, const char* help, Chosen command) {
    CLI::App* const added = app.add_subcommand(name, help);
    added->fallthrough();
    added->footer(command_closing_words);
    added->callback([&chosen, command = std::move(command)] { chosen = command; });
    return added;
}

CLI::App* add_group(CLI::App& app, const char* name, const char* help) {
    CLI::App* const group = app.add_subcommand(name, help);
    group->fallthrough();
    group->footer(command_closing_words);
    return group;
}

namespace {

void add_server(CLI::App& app, Words& words) {
    const Context& context = words.context;
    CLI::App* const group = add_group(app, "server", "The private PostgreSQL");
    add_command(*group, words.chosen, "start", "Make it if need be, and start it",
                [&] { return server_start(context); });
    add_command(*group, words.chosen, "stop", "Stop it", [&] { return server_stop(context); });
    add_command(*group, words.chosen, "status", "Is it there, and how to connect",
                [&] { return server_status(context); });
    CLI::App* const psql = add_command(*group, words.chosen, "psql", "Open psql on it; arguments for psql after --",
                                       [&] { return server_psql(context, words.psql); });
    psql->add_option("arguments", words.psql, "Arguments for psql");
    add_command(*group, words.chosen, "destroy", "Stop it and remove it with everything in it",
                [&] { return server_destroy(context); });
}

void add_schema(CLI::App& app, Words& words) {
    const Context& context = words.context;
    CLI::App* const group = add_group(app, "schema", "The tables, functions and roles, versioned");
    const auto add_layout = [&](CLI::App* command) {
        CLI::Option* const distributed = command->add_flag("--distributed", words.schema.distributed,
                                                           "By tenant over the servers of a Citus cluster");
        command
            ->add_option("--partitions", words.schema.partitions,
                         "audit_log in so many partitions by hash of the tenant, 2 to 1024. Default: one table")
            ->check(CLI::Range(2, partitions_max).description(""))
            ->type_name("N")
            ->excludes(distributed);
    };
    add_layout(add_command(*group, words.chosen, "install", "Install it, or bring it up to date",
                           [&] { return schema_install(context, words.schema); }));
    add_command(*group, words.chosen, "status", "The installed version; exit code 1 unless it is this program's",
                [&] { return schema_show_status(context); });
    add_layout(add_command(*group, words.chosen, "sql", "Print all of it, for a DBA who installs by hand",
                           [&] { return schema_print_sql(context, words.schema); }));
    CLI::App* const uninstall =
        add_command(*group, words.chosen, "uninstall", "Drop it with every entry and number in it",
                    [&] { return schema_uninstall(context, words.uninstall); });
    uninstall->add_flag("--yes", words.uninstall.yes, "Mean it");
}

void add_keys(CLI::App& app, Words& words) {
    const Context& context = words.context;
    CLI::App* const group = add_group(app, "keys", "The HMAC keys, in a file of mode 0600");
    add_signing_keys(*group, context, words.trust, words.chosen);
    add_command(*group, words.chosen, "list", "The ids of its keys", [&] { return keys_list(context); });
    add_command(*group, words.chosen, "rotate", "Add a key that signs from now on",
                [&] { return keys_rotate(context); });
}

void add_log(CLI::App& app, Words& words) {
    const Context& context = words.context;
    CLI::App* const adding = add_command(app, words.chosen, "append", "Append one entry, or many from lines of JSON",
                                         [&] { return append(context, words.append); });
    adding->footer(append_closing_words);
    adding->add_option("--tenant", words.append.tenant, "Whose log")->type_name("NAME");
    adding->add_option("--actor", words.append.actor, "Who did it")->type_name("TEXT");
    adding->add_option("--action", words.append.action, "What was done")->type_name("TEXT");
    adding->add_option("--object", words.append.object, "To what")->type_name("TEXT");
    adding->add_option("--data", words.append.data, "JSON, kept and signed byte for byte")->type_name("JSON");
    adding->add_option("--entry-id", words.append.entry_id, "A UUID of your own: the same one is appended once")
        ->type_name("UUID");
    add_subject(*adding, words.append);
    adding->add_option("--jsonl", words.append.jsonl, "Lines of JSON, an entry each; - for stdin")->type_name("FILE");
    adding->add_option("--writers", words.append.writers, "Connections at once, for --jsonl: 1 to 64. Default: 1")
        ->check(CLI::Range(1, writers_max).description(""))
        ->type_name("N");
    adding->add_flag("--skip-bad", words.append.skip_bad, "Leave bad lines out and go on");

    CLI::App* const listing =
        add_command(app, words.chosen, "list", "Entries of a tenant", [&] { return list(context, words.list); });
    listing->add_option("--tenant", words.list.tenant, "Whose log")->required()->type_name("NAME");
    listing->add_option("--from", words.list.from, "First number. Default: 1")->check(from_one())->type_name("SEQ");
    listing->add_option("--subject-keys", words.list.subject_keys, "Decrypt with the keys in this folder")
        ->type_name("DIR");
    listing->add_option("--limit", words.list.limit, "At most so many. Default: 20")->check(from_one())->type_name("N");

    CLI::App* const verifying =
        add_command(app, words.chosen, "verify", "Check the chain: INTACT, TAMPERED, ROLLED BACK or UNVERIFIABLE",
                    [&] { return verify(context, words.verify); });
    verifying->add_option("--tenant", words.verify.tenant, "Whose log")->type_name("NAME");
    verifying->add_flag("--all", words.verify.all, "Every tenant");
    verifying->add_option("--bundle", words.verify.bundle, "A bundle, in place of a database; - for stdin")
        ->type_name("FILE");
    verifying->add_option("--jobs", words.verify.jobs, "With --all: tenants at once, 1 to 64. Default: 1")
        ->check(CLI::Range(1, 64).description(""))
        ->type_name("N");
    add_full_speed(*verifying, words.verify.full_speed);
    add_trust(*verifying, words.verify.trust);

    add_command(app, words.chosen, "status",
                "The ledger at a glance: entries, bloat, who holds locks and who waits for whom",
                [&] { return show_status(context, words.status); })
        ->add_flag("--prometheus", words.status.prometheus, "Print metrics for Prometheus");
}

void add_shows(CLI::App& app, Words& words) {
    const Context& context = words.context;
    CLI::App* const tour =
        add_command(app, words.chosen, "demo", "The tour, on real input: the commits of a git repository",
                    [&] { return demo(context, words.demo); });
    tour->add_option("--repository", words.demo.repository, "A git repository. Default: the folder you are in")
        ->type_name("DIR");
    tour->add_option("--writers", words.demo.writers, "Writers at once: 2 to 64. Default: 8")
        ->check(CLI::Range(2, writers_max).description(""))
        ->type_name("N");

    CLI::App* const bench = add_group(app, "bench", "Comparisons side by side, in one run");
    CLI::App* const appending =
        add_command(*bench, words.chosen, "append", "Ways to number and append, by clients and tenants",
                    [&] { return bench_append(context, words.bench_append); });
    appending->add_option("--clients", words.bench_append.clients, "Numbers of clients, 1 to 128. Default: 1 8 32")
        ->check(CLI::Range(1, 128).description(""))
        ->type_name("N");
    appending->add_option("--seconds", words.bench_append.seconds, "For each figure: 0.1 to 600. Default: 3")
        ->check(CLI::Range(0.1, 600.0).description(""))
        ->type_name("SECONDS");
    appending
        ->add_option("--peer-sql", words.bench_append.peer_sql, "message-db's folder `database`, to measure it, too")
        ->check(CLI::ExistingDirectory.description(""))
        ->type_name("DIR");
    add_ledger_benches(*bench, context, words.ledger, words.chosen);
    add_table_benches(*bench, context, words.tables, words.chosen);
    CLI::App* const checking = add_command(*bench, words.chosen, "verify", "verify against the same COPY thrown away",
                                           [&] { return bench_verify(context, words.bench_verify); });
    checking->add_option("--entries", words.bench_verify.entries, "Length of the log. Default: 1000000")
        ->check(from_one())
        ->type_name("N");
    checking->add_flag("--bundle", words.bench_verify.bundle, "A bundle, which needs no database");
    add_command(*bench, words.chosen, "race", "One execution of the race checker against one of isolationtester",
                [&] { return bench_race(context); });
}

void add_race(CLI::App& app, Words& words) {
    const Context& context = words.context;
    RaceOptions& race = words.race;
    CLI::App* const checking = add_command(app, words.chosen, "race",
                                           "Run sessions through every distinct interleaving; show the one that breaks",
                                           [&] { return race_check(context, race); });
    checking->add_option("files", race.files, "Scenarios: sessions of SQL steps, and what must hold")
        ->type_name("FILE");
    checking->add_option("--html", race.html, "Write a report for a browser")->type_name("FILE");
    checking->add_option("--junit", race.junit, "Write a JUnit file")->type_name("FILE");
    checking->add_option("--dot", race.dot, "Write who waited for whom, for Graphviz")->type_name("FILE");
    checking->add_option("--save-replay", race.save_replay, "Write the schedule of the first finding")
        ->type_name("FILE");
    checking->add_option("--replay", race.replay, "Do a saved schedule again; exit code 3 if it goes another way")
        ->type_name("FILE");
    checking->add_option("--save-spec", race.save_spec, "Write the scenario for PostgreSQL's isolationtester")
        ->type_name("FILE");
    checking->add_option("--session", race.sessions, "A pgbench script as a session, instead of scenario files")
        ->type_name("SQLFILE");
    checking->add_option("--setup", race.setup, "What makes the tables that the --session scripts use")
        ->type_name("SQLFILE");
    checking->add_option("--invariant", race.invariant, "A query that must return no row, for --session scripts")
        ->type_name("SQL");
    checking
        ->add_option("--allow-database", race.allow_database,
                     "With --db: play in this database, which must be empty, instead of one of its own")
        ->type_name("NAME");
    checking->add_option("--max-executions", race.executions_max, "Give up after so many")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    checking->add_option("--max-seconds", race.seconds_max, "Give up after so long, for each scenario")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    checking->add_flag("--first", race.first, "Stop at the first finding");
    checking->add_flag("--no-reduction", race.no_reduction, "Run all interleavings, not one of each kind");
    checking->add_flag("--no-symmetry", race.no_symmetry, "Take copies of a session for different ones");
}

int fail(const std::exception& fault) {
    const Explanation explanation = explain(fault);
    print_note("rowlock: " + explanation.line);
    return static_cast<int>(explanation.exit);
}

/// The command that the words have got to, such as "rowlock schema", and what it takes next.
const CLI::App& innermost(const CLI::App& app) {
    const CLI::App* at = &app;
    while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
    return *at;
}

std::string commands_of(const CLI::App& app) {
    std::string names;
    for (const CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; })) {
        names += (names.empty() ? "" : ", ") + command->get_name();
    }
    return names;
}

std::string path_of(const CLI::App& app) {
    return app.get_parent() == nullptr ? app.get_name() : path_of(*app.get_parent()) + " " + app.get_name();
}

/// In one line: what is wrong with the words, and where to look.
std::string complaint(const CLI::App& app, const CLI::ParseError* wrong) {
    const CLI::App& at = innermost(app);
    const std::string path = path_of(at);
    const std::string commands = commands_of(at);
    const std::string see = "; see " + path + " --help";
    const std::vector<std::string> extra = app.remaining(true);
    if (wrong == nullptr) return path + " needs a command: " + commands + see;
    // What is not known comes before what is missing.
    const bool about_extra = dynamic_cast<const CLI::ExtrasError*>(wrong) != nullptr ||
                             dynamic_cast<const CLI::RequiredError*>(wrong) != nullptr;
    if (!about_extra || extra.empty()) return wrong->what() + see;
    const std::string& word = extra.front();
    if (!commands.empty() && !word.starts_with('-')) {
        return "\"" + word + "\" is no command of " + path + ", which has: " + commands + see;
    }
    if (at.get_name() == "psql") return "\"" + word + "\" is not known: arguments for psql go after --" + see;
    return "\"" + word + "\" is not known here" + see;
}

int wrong_usage(const std::string& what) {
    print_note("rowlock: " + one_line(what, Style::unlimited));
    return static_cast<int>(Exit::setup);
}

/// A stream that the caller closed would lend its number to the next file or socket, and what is printed would go
/// there. Opened the wrong way round, its first use fails, as it should.
void hold_standard_streams() {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
        static_cast<void>(open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY));
    }
}

}  // namespace

int run(int argument_count, char** arguments) {
    hold_standard_streams();
    Words words;
    words.context.style = Style::of_this_process();
    CLI::App app(description, "rowlock");
    app.footer(closing_words);
    app.set_version_flag("--version", std::string("rowlock ") + ROWLOCK_VERSION);
    add_globals(app, words.context.globals);
    add_shows(app, words);
    add_race(app, words);
    add_log(app, words);
    add_ledger_commands(app, words.context, words.ledger, words.chosen);
    add_trust_commands(app, words.context, words.trust, words.chosen);
    add_table_commands(app, words.context, words.tables, words.chosen);
    add_keys(app, words);
    add_schema(app, words);
    add_server(app, words);
    try {
        app.parse(argument_count, arguments);
    } catch (const CLI::Success& asked) {
        app.exit(asked);
        flush_output();
        return static_cast<int>(Exit::fine);
    } catch (const CLI::ParseError& wrong) {
        return wrong_usage(complaint(app, &wrong));
    }
    if (!words.chosen) return wrong_usage(complaint(app, nullptr));
    try {
        complete_globals(words.context.globals);
        const Exit exit = words.chosen();
        flush_output();
        return static_cast<int>(exit);
    } catch (const std::exception& fault) {
        return fail(fault);
    }
}

}  // namespace rowlock::cli
