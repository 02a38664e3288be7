// The commands: each is a function from its options to an exit code. What goes wrong is thrown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/context.hpp"

namespace rowlock::cli {

Exit server_start(const Context& context);
Exit server_stop(const Context& context);
Exit server_status(const Context& context);
Exit server_destroy(const Context& context);
/// Becomes psql on the private server.
Exit server_psql(const Context& context, const std::vector<std::string>& arguments);

Exit schema_install(const Context& context);
Exit schema_show_status(const Context& context);
Exit schema_print_sql(const Context& context);
struct UninstallOptions {
    bool yes = false;
};
Exit schema_uninstall(const Context& context, const UninstallOptions& options);

Exit keys_new(const Context& context);
Exit keys_list(const Context& context);
Exit keys_rotate(const Context& context);

struct AppendOptions {
    std::optional<std::string> tenant;
    std::optional<std::string> actor;
    std::optional<std::string> action;
    std::optional<std::string> object;
    std::optional<std::string> data;
    std::optional<std::string> entry_id;
    std::optional<std::string> jsonl;  ///< A file, or "-".
    int writers = 1;
    bool skip_bad = false;
};
Exit append(const Context& context, const AppendOptions& options);

struct ListOptions {
    std::string tenant;
    std::int64_t from = 1;
    std::int64_t limit = 20;
};
Exit list(const Context& context, const ListOptions& options);

struct VerifyCommandOptions {
    std::string tenant;
    bool all = false;
};
Exit verify(const Context& context, const VerifyCommandOptions& options);

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
};
Exit race_check(const Context& context, const RaceOptions& options);

struct BenchAppendOptions {
    std::vector<int> clients;
    double seconds = 3.0;
};
Exit bench_append(const Context& context, const BenchAppendOptions& options);

struct BenchVerifyOptions {
    std::int64_t entries = 1000000;
};
Exit bench_verify(const Context& context, const BenchVerifyOptions& options);
Exit bench_race(const Context& context);

}  // namespace rowlock::cli
