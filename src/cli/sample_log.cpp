#include "cli/sample_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "rowlock/error.hpp"

namespace rowlock::cli {

void grow_log(Database& database, const AuditLog& log, const TenantId& tenant, std::int64_t entries,
              Progress& progress) {
    constexpr std::int64_t batch_entries = 2000;
    std::vector<TenantEntry> batch;
    for (std::int64_t written = 0; written < entries;) {
        batch.clear();
        for (std::int64_t i = 0; i < std::min(batch_entries, entries - written); ++i) {
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

}  // namespace rowlock::cli
