// The lexical structure of SQL: just enough to know what is a string, a comment or a name, and what is not.
// Source: https://www.postgresql.org/docs/15/sql-syntax-lexical.html
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rowlock::race {

enum class SqlTokenKind { space, comment, string, dollar_string, quoted_identifier, word, number, symbol };

struct SqlToken {
    SqlTokenKind kind;
    std::size_t begin;
    std::size_t end;
    bool closed = true;  ///< False where a quote or a comment runs into the end of the text.

    [[nodiscard]] std::string_view in(std::string_view text) const { return text.substr(begin, end - begin); }
};

/// The token that starts at `at`, which must lie inside the text.
[[nodiscard]] SqlToken sql_token_at(std::string_view text, std::size_t at);

/// Every word of the text in lower case, those inside strings and dollar quotes too (they may be code), comments not.
[[nodiscard]] std::vector<std::string> sql_words(std::string_view text);

/// The words outside of strings and comments, in lower case, and the symbols.
[[nodiscard]] std::vector<std::string> sql_code_words(std::string_view text);

/// The statements of a script, split at top-level semicolons; empty ones are left out.
[[nodiscard]] std::vector<std::string_view> sql_statements(std::string_view text);

[[nodiscard]] bool is_word_start(char c);
[[nodiscard]] bool is_word_part(char c);
[[nodiscard]] std::string lower_case(std::string_view text);
[[nodiscard]] std::string_view trimmed(std::string_view text);

}  // namespace rowlock::race
