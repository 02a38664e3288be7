// Appends whose commit is in doubt.
#pragma once

#include <functional>
#include <vector>

#include "rowlock/audit_log.hpp"

namespace rowlock {

/// Calls `append`, a transaction of its own, again while its commit is in doubt: the entry ids find what was committed,
/// and what was not is appended. What is found there after a doubt counts as Appended: the transaction in doubt put it
/// there. Throws what `append` throws; CommitOutcomeUnknown where the doubt can't be settled, also for a lost
/// connection.
[[nodiscard]] std::vector<AppendOutcome> append_past_doubts(const std::function<std::vector<AppendOutcome>()>& append);

}  // namespace rowlock
