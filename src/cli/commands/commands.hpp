// The commands: each is a function from its options to an exit code. What goes wrong is thrown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/context.hpp"
#include "rowlock/change_capture.hpp"
#include "rowlock/key_claim.hpp"
#include "rowlock/quota.hpp"

namespace rowlock::cli {

Exit server_start(const Context& context);
Exit server_stop(const Context& context);
Exit server_status(const Context& context);
Exit server_destroy(const Context& context);
/// Becomes psql on the private server.
Exit server_psql(const Context& context, const std::vector<std::string>& arguments);

struct SchemaOptions {
    int partitions = 0;
    bool distributed = false;
};
Exit schema_install(const Context& context, const SchemaOptions& options);
Exit schema_show_status(const Context& context);
Exit schema_print_sql(const Context& context, const SchemaOptions& options);
struct UninstallOptions {
    bool yes = false;
};
Exit schema_uninstall(const Context& context, const UninstallOptions& options);

struct SigningKeyOptions {
    std::string file;  ///< --signing-key; empty: ROWLOCK_SIGNING_KEY, else the default place.
    std::string name = "rowlock";
    bool named = false;  ///< --signing-key was there.
};
/// Makes a keyring, or with `named` a signing key.
Exit keys_new(const Context& context, const SigningKeyOptions& signing);
Exit keys_public(const Context& context, const SigningKeyOptions& signing);
Exit keys_list(const Context& context);
Exit keys_rotate(const Context& context);

struct AppendOptions {
    std::optional<std::string> tenant;
    std::optional<std::string> actor;
    std::optional<std::string> action;
    std::optional<std::string> object;
    std::optional<std::string> data;
    std::optional<std::string> entry_id;
    std::optional<std::string> jsonl;    ///< A file, or "-".
    std::optional<std::string> subject;  ///< Whose key encrypts the data.
    std::string subject_keys;
    int writers = 1;
    bool skip_bad = false;
};
Exit append(const Context& context, const AppendOptions& options);

struct EraseOptions {
    std::string subject;
    std::string subject_keys;  ///< A folder; empty: ROWLOCK_SUBJECT_KEYS, else the default place.
};
Exit erase(const Context& context, const EraseOptions& options);

struct ListOptions {
    std::string tenant;
    std::string subject_keys;  ///< Decrypts with them; empty: shows what is stored.
    std::int64_t from = 1;
    std::int64_t limit = 20;
};
Exit list(const Context& context, const ListOptions& options);

struct CheckpointOptions {
    std::string out;
    std::string signing_key;
};
Exit make_checkpoint(const Context& context, const CheckpointOptions& options);

/// A checkpoint to compare with, and whom to believe.
struct TrustOptions {
    std::string checkpoint;             ///< A file.
    std::vector<std::string> pin_keys;  ///< Public keys, or files with one.
};

struct ResumeOptions {
    std::string tenant;
    bool all = false;
    std::string reason;
    std::optional<std::string> actor;
    TrustOptions trust;
};
Exit resume(const Context& context, const ResumeOptions& options);

struct AcknowledgeOptions {
    std::string tenant;
    std::int64_t seq = 0;
    std::string kind;  ///< Empty: whatever is found there.
    std::string reason;
    std::optional<std::string> actor;
};
Exit acknowledge(const Context& context, const AcknowledgeOptions& options);

struct RetireEntriesOptions {
    std::string tenant;
    std::int64_t through = 0;
    std::string reason;
    std::optional<std::string> actor;
    TrustOptions trust;
};
Exit retire_entries(const Context& context, const RetireEntriesOptions& options);

struct ExportCommandOptions {
    std::string tenant;
    bool all = false;
    std::string out;
    std::string signing_key;
    bool full_speed = false;  ///< Do not give way to writers.
    TrustOptions trust;
};
Exit export_entries(const Context& context, const ExportCommandOptions& options);

struct VerifyCommandOptions {
    std::string tenant;
    bool all = false;
    std::string bundle;       ///< A file to verify in place of a database; `-` is stdin.
    bool full_speed = false;  ///< Do not give way to writers.
    std::size_t jobs = 1;     ///< Tenants at once.
    TrustOptions trust;
};
Exit verify(const Context& context, const VerifyCommandOptions& options);
Exit verify_bundle_file(const Context& context, const VerifyCommandOptions& options);

struct SealCommandOptions {
    bool once = false;
    int writers = 2;
    std::size_t batch = 4096;
    int poll_ms = 500;
};
Exit seal(const Context& context, const SealCommandOptions& options);

struct StatusOptions {
    bool prometheus = false;
};
Exit show_status(const Context& context, const StatusOptions& options);

struct DemoOptions {
    std::string repository = ".";
    int writers = 8;
};
Exit demo(const Context& context, const DemoOptions& options);

struct RaceOptions {
    std::vector<std::string> files;
    std::string replay;
    std::string save_replay;
    std::string html;
    std::string junit;
    std::string dot;
    std::size_t executions_max = 20000;
    double seconds_max = 60.0;
    bool no_reduction = false;
    bool no_symmetry = false;
    bool first = false;
    std::string allow_database;
    std::string save_spec;
    std::vector<std::string> sessions;  ///< pgbench scripts, each one session.
    std::string setup;                  ///< SQL for them.
    std::string invariant;
};
Exit race_check(const Context& context, const RaceOptions& options);

struct LifecycleOptions {
    std::string parent;
    std::string child;
    std::vector<std::string> parent_key;
    std::vector<std::string> child_key;
    std::vector<std::string> child_parent;
    std::string parent_status = "status";
    std::string child_status = "status";
    std::string open = "open";
    std::string retired;
    std::string retired_child;
    std::vector<std::string> live;
    std::string tenant_column;
    std::optional<std::string> tenant;
    std::string form = "trigger";
    std::vector<std::string> ids;
    std::string where;
    int wait_ms = 3000;
    bool no_wait = false;
    std::size_t together = 1;
};
Exit lifecycle_print_sql(const Context& context, const LifecycleOptions& options);
Exit lifecycle_install(const Context& context, const LifecycleOptions& options);
Exit lifecycle_uninstall(const Context& context, const LifecycleOptions& options);
Exit lifecycle_retire(const Context& context, const LifecycleOptions& options);
Exit lifecycle_revive(const Context& context, const LifecycleOptions& options);
Exit lifecycle_show_status(const Context& context, const LifecycleOptions& options);

struct QuotaOptions {
    std::string tenant;
    std::string name;
    std::int64_t cap = 0;
    CountedTable table{.tenant_column = "tenant_id"};
};
Exit quota_show(const Context& context, const QuotaOptions& options);
Exit quota_set(const Context& context, const QuotaOptions& options);
Exit quota_recount(const Context& context, const QuotaOptions& options);

struct ClaimCommandOptions {
    ClaimedTable table;
    std::string tenant;
    std::int64_t limit = 20;
    double older_than = 86400;
    double lease_max = 60;
    std::int64_t batch = 1000;
};
Exit claim_status(const Context& context, const ClaimCommandOptions& options);
Exit claim_sweep(const Context& context, const ClaimCommandOptions& options);
Exit claim_print_sql(const Context& context, const ClaimCommandOptions& options);

struct TrackOptions {
    TrackedTable table;
    bool sql = false;  ///< Print it only.
    int wait_ms = 3000;
};
Exit track_table(const Context& context, const TrackOptions& options);
Exit untrack_table(const Context& context, const TrackOptions& options);
Exit list_tracked(const Context& context);

struct BenchTrackOptions {
    int clients = 16;
    int rounds = 3;
    double seconds = 3.0;
    std::string peer_sql;  ///< The folder of supa_audit's SQL, or a file that puts a peer's capture on public.peer.
};
Exit bench_track(const Context& context, const BenchTrackOptions& options);

struct BenchAppendOptions {
    std::vector<int> clients;
    double seconds = 3.0;
    std::string peer_sql;  ///< The folder of message-db's SQL; empty for none.
};
Exit bench_append(const Context& context, const BenchAppendOptions& options);

struct BenchStageOptions {
    int clients = 16;
    double seconds = 3.0;
    std::int64_t backlog = 200000;
};
Exit bench_stage(const Context& context, const BenchStageOptions& options);

struct BenchClaimOptions {
    std::vector<int> contenders;
    double seconds = 3.0;
    double work = 2.0;  ///< Milliseconds that the winner has the row.
};
Exit bench_claim(const Context& context, const BenchClaimOptions& options);

struct BenchQuotaOptions {
    std::vector<int> clients;
    double seconds = 3.0;
};
Exit bench_quota(const Context& context, const BenchQuotaOptions& options);

struct BenchVerifyOptions {
    std::int64_t entries = 1000000;
    bool bundle = false;  ///< A bundle, without a database.
};
Exit bench_verify(const Context& context, const BenchVerifyOptions& options);

struct BenchGrowthOptions {
    std::int64_t entries = 10000000;
    int clients = 8;
    double seconds = 3.0;
};
Exit bench_growth(const Context& context, const BenchGrowthOptions& options);
Exit bench_race(const Context& context);

struct BenchChartOptions {
    std::string results;  ///< A file of what benchmarks print with --json, or `-`.
    bool table = false;   ///< Markdown instead of SVG.
};
Exit bench_chart(const BenchChartOptions& options);

struct BenchLifecycleOptions {
    std::int64_t children = 100000;
    double seconds = 0.5;
};
Exit bench_lifecycle(const Context& context, const BenchLifecycleOptions& options);

}  // namespace rowlock::cli
