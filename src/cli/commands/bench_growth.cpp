// What becomes of appends and verify as one tenant's log grows: a long log against a new one, in turn.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>

#include "cli/bars.hpp"
#include "cli/commands/commands.hpp"
#include "cli/contest.hpp"
#include "cli/output.hpp"
#include "cli/sample_log.hpp"
#include "cli/scratch_database.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

constexpr int growth_parts = 10;  ///< The log that the long one is compared with is as short as one of them.
constexpr int growth_rounds = 5;
constexpr int growth_clients_max = 128;

/// One tenant's log in a database of its own.
class GrowingLog {
  public:
    GrowingLog(const Context& context, const std::string& database_name)
        : scratch_(context, database_name), app_(scratch_.as_app(growth_clients_max)), log_(Keyring::generate()) {}

    /// Entries a second.
    double grow(std::int64_t entries, Progress& progress) {
        const double seconds = seconds_of([&] { grow_log(app_, log_, tenant_, entries, progress); });
        return static_cast<double>(entries) / seconds;
    }

    /// Appends a second, each in a transaction of its own.
    double appends(const BenchGrowthOptions& options) {
        return run_contest(options.clients, options.seconds,
                           [&](Tally& tally) {
                               app_.transact({.tenant = tenant_, .lock_wait_max = std::chrono::seconds(30)},
                                             [&](Transaction& transaction) { append_one(transaction); });
                               ++tally.done;
                           })
            .per_second;
    }

    struct Verified {
        double per_second;
        double peak_mebibytes;
    };
    Verified verify(std::int64_t entries_least) {
        Verification verification;
        reset_peak_memory();
        const double seconds = seconds_of([&] {
            verification = app_.transact({.tenant = tenant_},
                                         [&](Transaction& transaction) { return log_.verify(transaction, tenant_); });
        });
        if (verification.verdict != Verdict::intact || verification.entries < entries_least) {
            throw SetupError("the log of the benchmark is not intact");
        }
        return {static_cast<double>(verification.entries) / seconds, peak_memory()};
    }

    /// The same while another connection verifies the log over and over.
    double appends_beside_verify(const BenchGrowthOptions& options) {
        std::atomic<bool> stop = false;
        auto verifying = std::async(std::launch::async, [&] {
            while (!stop) static_cast<void>(verify(0));
        });
        const double rate = appends(options);
        stop = true;
        verifying.get();
        return rate;
    }

    [[nodiscard]] const ScratchDatabase& scratch() const { return scratch_; }

  private:
    void append_one(Transaction& transaction) const {
        const AuditEntry entry{.actor = "ann", .action = "invoice.paid", .data = R"({"total":"4711.90"})"};
        if (!std::holds_alternative<Appended>(log_.append(transaction, entry))) {
            throw InvalidInput("an entry id came twice");
        }
    }

    ScratchDatabase scratch_;
    Database app_;
    AuditLog log_;
    TenantId tenant_{"bench"};
};

struct GrowthFigures {
    double first_grown = 0;  ///< Entries a second, of the first part of the long log.
    double last_grown = 0;
    std::vector<double> append_young{}, append_old{}, append_ratios{}, beside_ratios{};
    std::vector<double> verify_young{}, verify_old{}, verify_ratios{};
    double memory_young = 0;
    double memory_old = 0;
};

void measure(GrowingLog& young, GrowingLog& old, const BenchGrowthOptions& options, GrowthFigures& figures,
             Progress& progress) {
    const std::int64_t part = options.entries / growth_parts;
    for (int i = 0; i < growth_parts; ++i) {
        figures.last_grown = old.grow(i + 1 < growth_parts ? part : options.entries - i * part, progress);
        if (i == 0) figures.first_grown = figures.last_grown;
    }
    for (int round = 1; round <= growth_rounds; ++round) {
        progress.show(fmt::format("appends: round {} of {}", round, growth_rounds));
        figures.append_young.push_back(young.appends(options));
        figures.append_old.push_back(old.appends(options));
        figures.append_ratios.push_back(figures.append_old.back() / figures.append_young.back());
    }
    young.grow(part, progress);
    for (int round = 1; round <= growth_rounds; ++round) {
        progress.show(fmt::format("appends beside verify: round {} of {}", round, growth_rounds));
        const double alone = young.appends(options);
        figures.beside_ratios.push_back(young.appends_beside_verify(options) / alone);
    }
    for (int round = 1; round <= growth_rounds; ++round) {
        progress.show(fmt::format("verify: round {} of {}", round, growth_rounds));
        const auto [young_rate, young_memory] = young.verify(part);
        const auto [old_rate, old_memory] = old.verify(options.entries);
        figures.verify_young.push_back(young_rate);
        figures.verify_old.push_back(old_rate);
        figures.verify_ratios.push_back(old_rate / young_rate);
        figures.memory_young = std::max(figures.memory_young, young_memory);
        figures.memory_old = std::max(figures.memory_old, old_memory);
    }
}

void tell(const Context& context, const BenchGrowthOptions& options, const GrowthFigures& figures) {
    const std::int64_t part = options.entries / growth_parts;
    const auto rate = [](double value) { return grouped(static_cast<std::int64_t>(value)); };
    if (context.globals.json) {
        JsonObject object;
        object.number("entries", options.entries).number("clients", options.clients);
        object.real("grown_first_per_second", figures.first_grown).real("grown_last_per_second", figures.last_grown);
        object.real("append_young_per_second", median(figures.append_young));
        object.real("append_old_per_second", median(figures.append_old));
        object.real("verify_young_per_second", median(figures.verify_young));
        object.real("verify_old_per_second", median(figures.verify_old));
        object.real("verify_young_mebibytes", figures.memory_young);
        object.real("verify_old_mebibytes", figures.memory_old);
        print_line(object.str());
    } else {
        Table table({"one tenant's log", "grown/s", "appends/s", "entries verified/s", "peak MiB"});
        table.add({"new, then " + grouped(part) + " entries", rate(figures.first_grown),
                   rate(median(figures.append_young)), rate(median(figures.verify_young)),
                   fmt::format("{:.0f}", figures.memory_young)});
        table.add({grouped(options.entries) + " entries", rate(figures.last_grown), rate(median(figures.append_old)),
                   rate(median(figures.verify_old)), fmt::format("{:.0f}", figures.memory_old)});
        for (const std::string& line : table.lines(context.style)) print_line(line);
        print_line(
            fmt::format("Medians of {} rounds in turn; {} clients append, each entry a commit. Grown: the log's "
                        "first and last tenth, 2,000 entries a commit.",
                        growth_rounds, options.clients));
    }
    const std::string length = grouped(options.entries) + " entries";
    tell_bar(context, {"append to a log of " + length + ": × a new log", median(figures.append_ratios), 0.8});
    tell_bar(context, {"verify of " + length + ": × the rate of a tenth", median(figures.verify_ratios), 0.8});
    tell_bar(context, {"append while the log is verified: × alone", median(figures.beside_ratios), 0.8});
    tell_bar(context, {"verify of " + length + ": MiB of memory", figures.memory_old, 64, true});
    tell_bar(context, {"verify of " + length + ": × the memory of a tenth",
                       figures.memory_old / std::max(figures.memory_young, 1.0), 1.2, true});
}

}  // namespace

Exit bench_growth(const Context& context, const BenchGrowthOptions& options) {
    GrowingLog young(context, "rowlock_bench_young");
    GrowingLog old(context, "rowlock_bench");
    GrowthFigures figures;
    Progress progress(context.style);
    measure(young, old, options, figures, progress);
    progress.clear();
    tell(context, options, figures);
    tell_machine(context, old.scratch());
    return Exit::fine;
}

}  // namespace rowlock::cli
