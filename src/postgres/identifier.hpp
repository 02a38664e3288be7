// Names of tables and columns that a user configures, made safe to stand in a statement.
#pragma once

#include <string>
#include <string_view>

namespace rowlock {

/// The name in double quotes, inner ones doubled: it then means exactly itself, case included.
/// Throws InvalidInput for what can't be a name: empty, with a NUL, or longer than 63 bytes (which the server would
/// cut, and so take for another name). Source:
/// https://www.postgresql.org/docs/15/sql-syntax-lexical.html#SQL-SYNTAX-IDENTIFIERS
[[nodiscard]] std::string quote_identifier(std::string_view name);

}  // namespace rowlock
