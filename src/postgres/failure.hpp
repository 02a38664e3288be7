// A failed result of libpq as the fault that it is.
#pragma once

#include <libpq-fe.h>

#include <source_location>
#include <string>
#include <string_view>

#include "rowlock/error.hpp"

namespace rowlock {

/// What the server said in a failed result, for the statement of this name.
[[nodiscard]] ServerReport report_of(const PGresult* result, std::string_view statement);

/// One of PG_DIAG_…; empty where the server did not say it.
[[nodiscard]] std::string field_of(const PGresult* result, int code);

/// The first line of libpq's own message, without the line break.
[[nodiscard]] std::string first_line(std::string_view message);

/// The server ends the session with this error or notice.
[[nodiscard]] bool is_fatal(const PGresult* result);

/// A COPY that nobody is there to feed or to read.
[[nodiscard]] bool is_copy(const PGresult* result);

/// A prepared statement is gone (DEALLOCATE, DISCARD), or its plan gives other columns than before (ALTER TABLE). It
/// would fail again and again on this session, and never on a new one.
[[nodiscard]] bool has_stale_statements(const PGresult* result);

/// A connection attempt that failed: PostgreSQL's SQLSTATE is only in the text there ("FATAL:  28P01: …").
[[nodiscard]] ConnectionError connect_failure(std::string_view message, bool needs_password,
                                              std::source_location where);

}  // namespace rowlock
