#include "postgres/failure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "postgres/sqlstate.hpp"

namespace rowlock {

namespace {

/// "28P01" out of `FATAL:  28P01: password authentication failed …`, which libpq writes at PQERRORS_VERBOSE.
std::string sqlstate_in(std::string_view line) {
    constexpr std::size_t length = 5;
    for (std::size_t at = 0; at + length + 4 <= line.size(); ++at) {
        if (line.substr(at, 3) != ":  " || line[at + 3 + length] != ':') continue;
        const std::string_view code = line.substr(at + 3, length);
        bool fits = true;
        for (const char c : code) {
            fits = fits && (std::isdigit(static_cast<unsigned char>(c)) != 0 || (c >= 'A' && c <= 'Z'));
        }
        if (fits) return std::string(code);
    }
    return {};
}

/// `… failed: FATAL:  28P01: password …` without "FATAL:  28P01: ", since the code is told as of every other fault.
std::string without_code(std::string line, std::string_view code) {
    constexpr std::size_t mark_length = 5;  // ":  " before it and ": " behind it
    const std::size_t colon = line.find(fmt::format(":  {}: ", code));
    const std::size_t begin = line.find_last_of(' ', colon == 0 ? 0 : colon - 1);
    if (begin == std::string::npos) return line;
    return line.erase(begin + 1, colon - begin - 1 + code.size() + mark_length);
}

/// Without the full stop that ends the server's sentences, since words of ours follow.
std::string_view without_stop(std::string_view sentence) {
    if (sentence.ends_with('.')) sentence.remove_suffix(1);
    return sentence;
}

/// Where several addresses were tried, the one whose server gave an answer.
std::string telling_line(std::string_view message) {
    for (std::string_view rest = message; !rest.empty();) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        if (!sqlstate_in(line).empty()) return std::string(line);
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    }
    return first_line(message);
}

std::string describe(const ServerReport& report) {
    std::string text = report.message;
    if (!report.sqlstate.empty()) text += fmt::format(" (SQLSTATE {})", report.sqlstate);
    if (!report.statement.empty()) text += fmt::format(" in {}", report.statement);
    if (!report.detail.empty()) text += fmt::format("; {}", without_stop(report.detail));
    return text;
}

}  // namespace

ServerError::ServerError(ServerReport report, Recovery recovery, std::source_location where)
    : Error(describe(report), recovery, where), report_(std::move(report)) {}

Busy::Busy(const ServerReport& report, std::chrono::milliseconds limit, std::source_location where)
    : ServerError(limit.count() == 0
                      ? fmt::format("busy: a lock was not free at once; {}", describe(report))
                      : fmt::format("busy: a lock was not free within {} ms; {}", limit.count(), describe(report)),
                  report, Recovery::run_again, where),
      limit_(limit) {}

Busy Busy::with_blockers(std::vector<Blocker> blockers) const {
    Busy named = *this;
    named.blockers_ = std::move(blockers);
    return named;
}

std::string field_of(const PGresult* result, int code) {
    const char* const value = PQresultErrorField(result, code);
    return value == nullptr ? std::string() : std::string(value);
}

ServerReport report_of(const PGresult* result, std::string_view statement) {
    ServerReport report;
    report.sqlstate = field_of(result, PG_DIAG_SQLSTATE);
    report.message = field_of(result, PG_DIAG_MESSAGE_PRIMARY);
    if (report.message.empty()) report.message = first_line(PQresultErrorMessage(result));
    report.detail = field_of(result, PG_DIAG_MESSAGE_DETAIL);
    report.hint = field_of(result, PG_DIAG_MESSAGE_HINT);
    report.constraint = field_of(result, PG_DIAG_CONSTRAINT_NAME);
    report.table = field_of(result, PG_DIAG_TABLE_NAME);
    report.column = field_of(result, PG_DIAG_COLUMN_NAME);
    report.position = static_cast<std::size_t>(std::atoll(field_of(result, PG_DIAG_STATEMENT_POSITION).c_str()));
    report.statement = std::string(statement);
    return report;
}

std::string first_line(std::string_view message) {
    return std::string(message.substr(0, message.find('\n')));
}

bool is_fatal(const PGresult* result) {
    const std::string severity = field_of(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    return severity == "FATAL" || severity == "PANIC";
}

bool is_copy(const PGresult* result) {
    const ExecStatusType status = PQresultStatus(result);
    return status == PGRES_COPY_IN || status == PGRES_COPY_OUT || status == PGRES_COPY_BOTH;
}

bool has_stale_statements(const PGresult* result) {
    const std::string code = field_of(result, PG_DIAG_SQLSTATE);
    // "cached plan must not change result type" has no code of its own; the name of the function is not translated.
    return code == "26000" || (code == "0A000" && field_of(result, PG_DIAG_SOURCE_FUNCTION) == "RevalidateCachedQuery");
}

ConnectionError connect_failure(std::string_view message, bool needs_password, std::source_location where) {
    std::string line = telling_line(message);
    const std::string code = sqlstate_in(line);
    if (code.empty() && needs_password) return {line, Recovery::give_up, {}, where};
    if (!code.empty()) line = fmt::format("{} (SQLSTATE {})", without_code(std::move(line), code), code);
    // A server that answered and said no (password, database, pg_hba) will say no again; one that never answered, or is
    // starting or full, may not.
    const Recovery recovery = code.empty() ? Recovery::reconnect_and_run_again : recovery_of(code);
    return {line, recovery, code, where};
}

}  // namespace rowlock
