// A long log for a benchmark, and how much memory reading it takes.
#pragma once

#include <cstdint>

#include "cli/output.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/database.hpp"

namespace rowlock::cli {

/// Appends so many invented entries to the tenant's log, many in a transaction.
void grow_log(Database& database, const AuditLog& log, const TenantId& tenant, std::int64_t entries,
              Progress& progress);

/// Peak resident memory of this process since reset_peak_memory, in MiB; 0 where the kernel does not tell.
[[nodiscard]] double peak_memory();
void reset_peak_memory();

}  // namespace rowlock::cli
