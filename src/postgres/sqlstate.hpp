// What each SQLSTATE of PostgreSQL means for the caller.
#pragma once

#include <span>
#include <string_view>

#include "rowlock/error.hpp"

namespace rowlock {

struct SqlState {
    std::string_view code;
    std::string_view condition;
    Recovery recovery;
};

/// Every code of PostgreSQL 15, ordered by code; a test holds it against the server's own errcodes.txt.
/// Source: https://www.postgresql.org/docs/15/errcodes-appendix.html
[[nodiscard]] std::span<const SqlState> sqlstates();

/// What may be done after this code. A code that the table lacks (a newer server, an extension, RAISE … ERRCODE) goes
/// by its class.
[[nodiscard]] Recovery recovery_of(std::string_view code);

/// True where the server says that this input can't be stored: data exceptions, CHECK constraints, limits.
[[nodiscard]] bool is_about_the_input(std::string_view code);

}  // namespace rowlock
