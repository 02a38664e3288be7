// How the words of a command line are declared: what command_line.cpp and the files beside it share. CLI11 stays in
// them.
#pragma once

#include <functional>

#include "cli/commands/commands.hpp"
#include "cli/context.hpp"

namespace CLI {
class App;
}

namespace rowlock::cli {

/// The command that the words turn out to mean.
using Chosen = std::function<Exit()>;

/// Adds a command to `app`, or to a group of commands; `chosen` is the command once it is named.
CLI::App* add_command(CLI::App& app, Chosen& chosen, const char* name, const char* help, Chosen command);
CLI::App* add_group(CLI::App& app, const char* name, const char* help);

struct LedgerWords {
    SealCommandOptions seal;
    BenchStageOptions bench_stage;
    BenchGrowthOptions bench_growth;
    BenchChartOptions bench_chart;
};
void add_ledger_commands(CLI::App& app, const Context& context, LedgerWords& words, Chosen& chosen);
void add_ledger_benches(CLI::App& bench, const Context& context, LedgerWords& words, Chosen& chosen);

/// Options of the commands on the user's own tables. They are read into by the parse, so they outlive it.
struct TableWords {
    LifecycleOptions lifecycle;
    QuotaOptions quota;
    ClaimCommandOptions claim;
    TrackOptions track;
    BenchTrackOptions bench_track;
    BenchLifecycleOptions bench_lifecycle;
    BenchClaimOptions bench_claim;
    BenchQuotaOptions bench_quota;
};
void add_table_commands(CLI::App& app, const Context& context, TableWords& words, Chosen& chosen);
void add_table_benches(CLI::App& bench, const Context& context, TableWords& words, Chosen& chosen);

/// Options of what is for those who trust nothing: signing keys, checkpoints and what is verified with them.
struct TrustWords {
    SigningKeyOptions signing;
    CheckpointOptions checkpoint;
    ResumeOptions resume;
    AcknowledgeOptions acknowledge;
    ExportCommandOptions export_entries;
    RetireEntriesOptions retire_entries;
    EraseOptions erase;
};
void add_trust_commands(CLI::App& app, const Context& context, TrustWords& words, Chosen& chosen);
/// `keys new`, which makes keys of either kind, and `keys public`.
void add_signing_keys(CLI::App& keys, const Context& context, TrustWords& words, Chosen& chosen);
/// --subject and --subject-keys.
void add_subject(CLI::App& command, AppendOptions& options);
/// --checkpoint and --pin-key.
void add_trust(CLI::App& command, TrustOptions& trust);
void add_full_speed(CLI::App& command, bool& full_speed);

}  // namespace rowlock::cli
