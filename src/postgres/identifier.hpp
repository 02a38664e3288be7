// Names and words that a user configures, made safe to stand in a statement.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rowlock {

/// The name in double quotes, inner ones doubled: it then means exactly itself, case included.
/// Throws InvalidInput for what can't be a name: empty, with a NUL, or longer than 63 bytes (which the server would
/// cut, and so take for another name). Source:
/// https://www.postgresql.org/docs/15/sql-syntax-lexical.html#SQL-SYNTAX-IDENTIFIERS
[[nodiscard]] std::string quote_identifier(std::string_view name);
[[nodiscard]] std::vector<std::string> quote_identifiers(const std::vector<std::string>& names);
/// "schema"."table"
[[nodiscard]] std::string quote_qualified_name(std::string_view schema, std::string_view table);

/// The text as a string constant that means itself whatever standard_conforming_strings is.
/// Source: https://www.postgresql.org/docs/15/sql-syntax-lexical.html#SQL-SYNTAX-STRINGS-ESCAPE
[[nodiscard]] std::string quote_literal(std::string_view text);

}  // namespace rowlock
