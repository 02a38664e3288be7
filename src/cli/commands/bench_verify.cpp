#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>

#include "audit/log_reader.hpp"
#include "cli/commands/commands.hpp"
#include "cli/contest.hpp"
#include "cli/output.hpp"
#include "cli/scratch_database.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

constexpr std::int64_t fill_batch = 2000;
constexpr int verify_rounds = 3;

/// Peak resident memory of this process since reset_peak_memory, in MiB; 0 where the kernel does not tell.
double peak_memory() {
    std::ifstream status("/proc/self/status");
    std::string word;
    double kibibytes = 0;
    while (status >> word) {
        if (word == "VmHWM:") status >> kibibytes;
    }
    return kibibytes / 1024;
}

void reset_peak_memory() {
    std::ofstream("/proc/self/clear_refs") << "5";
}

void fill(Database& database, const AuditLog& log, const TenantId& tenant, std::int64_t entries, Progress& progress) {
    std::vector<TenantEntry> batch;
    for (std::int64_t written = 0; written < entries;) {
        batch.clear();
        for (std::int64_t i = 0; i < std::min(fill_batch, entries - written); ++i) {
            AuditEntry entry;
            entry.actor = "ann";
            entry.action = "invoice.paid";
            entry.object = fmt::format("invoice {}", written + i);
            entry.data = fmt::format(R"({{"total":"{}.90","currency":"EUR"}})", written + i);
            batch.push_back({tenant, std::move(entry)});
        }
        database.transact({.tenant = tenant}, [&](Transaction& transaction) {
            for (const auto& outcome : log.append_all(transaction, batch)) {
                if (!std::holds_alternative<Appended>(outcome)) throw InvalidInput("an entry id came twice");
            }
        });
        written += static_cast<std::int64_t>(batch.size());
        progress.show(fmt::format("making the log: {} of {}", grouped(written), grouped(entries)));
    }
}

}  // namespace

Exit bench_verify(const Context& context, const BenchVerifyOptions& options) {
    const ScratchDatabase scratch(context, "rowlock_bench");
    Database app(scratch.as_app(2));
    const AuditLog log(Keyring::generate());
    const TenantId tenant("bench");
    Progress progress(context.style);
    fill(app, log, tenant, options.entries, progress);
    const TransactionPolicy policy{.tenant = tenant};
    const auto copy = [&](Transaction& transaction) {
        LogRange range;
        read_range(transaction, tenant, range);
        read_pieces(transaction, tenant, range,
                    {VerifyOptions{}.chunk_entries, [](std::int64_t) {}, [](std::span<const std::byte>) {}});
    };
    std::vector<double> copy_seconds;
    std::vector<double> verify_seconds;
    std::vector<double> ratios;
    double memory = 0;
    app.transact(policy, copy);  // once, so that both find the pages in memory
    for (int round = 0; round < verify_rounds; ++round) {
        progress.show(fmt::format("round {} of {}", round + 1, verify_rounds));
        copy_seconds.push_back(seconds_of([&] { app.transact(policy, copy); }));
        reset_peak_memory();
        verify_seconds.push_back(seconds_of([&] {
            const Verification verification =
                app.transact(policy, [&](Transaction& transaction) { return log.verify(transaction, tenant); });
            if (verification.verdict != Verdict::intact || verification.entries != options.entries) {
                throw SetupError("the log of the benchmark is not intact");
            }
        }));
        memory = std::max(memory, peak_memory());
        ratios.push_back(copy_seconds.back() / verify_seconds.back());
    }
    progress.clear();
    const auto rate = [&](const std::vector<double>& seconds) {
        return static_cast<std::int64_t>(static_cast<double>(options.entries) / median(seconds));
    };
    if (context.globals.json) {
        JsonObject object;
        object.number("entries", options.entries).number("copy_per_second", rate(copy_seconds));
        object.number("verify_per_second", rate(verify_seconds)).real("of_copy", median(ratios));
        print_line(object.real("peak_memory_mib", memory).str());
    } else {
        print_line(fmt::format("{} entries, medians of {} rounds in turn", grouped(options.entries), verify_rounds));
        print_line(fmt::format("COPY thrown away  {}/s", grouped(rate(copy_seconds))));
        print_line(
            fmt::format("verify            {}/s, {:.2f} × the COPY (bar 0.85: {}), peak memory {:.0f} MiB (bar 64: {})",
                        grouped(rate(verify_seconds)), median(ratios), median(ratios) >= 0.85 ? "met" : "missed",
                        memory, memory < 64 ? "met" : "missed"));
    }
    return Exit::fine;
}

}  // namespace rowlock::cli
