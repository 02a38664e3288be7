// The words of the commands on the log that need more than command_line.cpp has room for.
#include <CLI/CLI.hpp>

#include "cli/command_words.hpp"

namespace rowlock::cli {

namespace {

constexpr const char* seal_closing_words =
    "An application, in any language, stages entries in its own transaction and waits for nobody:\n"
    "  SELECT set_config('rowlock.tenant', 'acme', true);\n"
    "  SELECT rowlock.stage('acme', 'invoice.paid', 'invoice 17', '{\"total\": 5}', 'ann');\n"
    "This command gives them their numbers and MACs. Any number of it may run: they share the tenants.\n"
    "\n"
    "--db, --data, --keyring and --json work here, too: see rowlock --help\n";

}  // namespace

void add_ledger_commands(CLI::App& app, const Context& context, LedgerWords& words, Chosen& chosen) {
    CLI::App* const sealing = add_command(app, chosen, "seal", "Number and sign staged entries, until it is stopped",
                                          [&] { return seal(context, words.seal); });
    sealing->footer(seal_closing_words);
    sealing->add_flag("--once", words.seal.once, "Stop when nothing is staged any more");
    sealing->add_option("--writers", words.seal.writers, "Tenants at once, 1 to 64. Default: 2")
        ->check(CLI::Range(1, 64).description(""))
        ->type_name("N");
    sealing->add_option("--batch", words.seal.batch, "Entries in a transaction, 1 to 100000. Default: 4096")
        ->check(CLI::Range(1, 100000).description(""))
        ->type_name("N");
    sealing->add_option("--poll", words.seal.poll_ms, "The longest pause with nothing to do. Default: 500")
        ->check(CLI::Range(5, 60000).description(""))
        ->type_name("MS");
}

void add_ledger_benches(CLI::App& bench, const Context& context, LedgerWords& words, Chosen& chosen) {
    CLI::App* const staging = add_command(bench, chosen, "stage", "Staged entries against plain INSERT, and sealing",
                                          [&] { return bench_stage(context, words.bench_stage); });
    staging->add_option("--clients", words.bench_stage.clients, "At once, 1 to 128. Default: 16")
        ->check(CLI::Range(1, 128).description(""))
        ->type_name("N");
    staging->add_option("--seconds", words.bench_stage.seconds, "For each figure: 0.1 to 600. Default: 3")
        ->check(CLI::Range(0.1, 600.0).description(""))
        ->type_name("SECONDS");
    staging->add_option("--backlog", words.bench_stage.backlog, "Entries to seal. Default: 200000")
        ->check(CLI::Range(std::int64_t{2}, std::int64_t{100000000}).description(""))
        ->type_name("N");
    CLI::App* const growing = add_command(bench, chosen, "growth", "Appends and verify on a long log against a new one",
                                          [&] { return bench_growth(context, words.bench_growth); });
    growing->add_option("--entries", words.bench_growth.entries, "Length of the long log. Default: 10000000")
        ->check(CLI::Range(std::int64_t{1000}, std::int64_t{1000000000}).description(""))
        ->type_name("N");
    growing->add_option("--clients", words.bench_growth.clients, "That append at once, 1 to 128. Default: 8")
        ->check(CLI::Range(1, 128).description(""))
        ->type_name("N");
    growing->add_option("--seconds", words.bench_growth.seconds, "Of appends a round: 0.1 to 600. Default: 3")
        ->check(CLI::Range(0.1, 600.0).description(""))
        ->type_name("SECONDS");
    CLI::App* const charting =
        add_command(bench, chosen, "chart", "Draw what the benchmarks printed with --json, as SVG",
                    [&] { return bench_chart(words.bench_chart); });
    charting->add_option("results", words.bench_chart.results, "Their lines, one file; - for stdin")
        ->required()
        ->type_name("FILE");
    charting->add_flag("--table", words.bench_chart.table, "A table in Markdown instead");
}

}  // namespace rowlock::cli
