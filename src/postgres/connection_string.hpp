// Connection strings of libpq.
#pragma once

#include <string>

namespace rowlock {

/// The same connection string for another database of the same server. Throws InvalidInput if it can't be read.
[[nodiscard]] std::string with_database(const std::string& connection, const std::string& database);

/// Throws InvalidInput, with libpq's reason, for a string that can't be read. A plain database name can.
void require_readable(const std::string& connection);

}  // namespace rowlock
