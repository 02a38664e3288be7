#include "cli/explain.hpp"

#include <fmt/format.h>

#include <string_view>
#include <system_error>

#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

struct Advice {
    std::string_view sqlstate;
    std::string_view advice;
};

/// What to do about what a server says most often. Anything else is passed on with the server's own hint.
constexpr Advice advices[] = {
    {"28000", "check the user and pg_hba.conf"},
    {"28P01", "check the password (PGPASSWORD, ~/.pgpass)"},
    {"3D000", "check the name of the database"},
    {"53300", "wait for a connection to become free, or raise max_connections"},
    {"57P03", "wait until the server has started"},
    {"42501", "connect as a role that may do this: GRANT rowlock_app TO …, or rowlock_auditor to read all tenants"},
    {"3F000", "install the schema: rowlock schema install"},
    {"42P01", "install the schema: rowlock schema install"},
    {"42883", "bring the schema up to date: rowlock schema install"},
    {"53100", "free space on the server's disk, then run this again"},
    {"53200", "the server is out of memory: run this again later"},
    {"57014", "the statement was cancelled: run this again"},
    {"57P01", "the server is shutting down: run this again when it is back"},
    {"25006", "this server is read-only, a standby perhaps: connect to the primary"},
    {"55P03", "somebody else holds the lock: try again; pg_blocking_pids() on the server tells who"},
    {"40001", "too many writers at this isolation level: try again, or use READ COMMITTED"},
    {"22P02", "correct the input"},
    {"22P05", "correct the input: PostgreSQL can't store \\u0000"},
    {"54001", "correct the input: it is nested too deeply for the server"},
};

std::string advice_for(std::string_view sqlstate, std::string_view fallback) {
    for (const Advice& known : advices) {
        if (known.sqlstate == sqlstate) return std::string(known.advice);
    }
    return std::string(fallback);
}

std::string joined(std::string_view what, std::string_view advice) {
    return advice.empty() ? std::string(what) : fmt::format("{}; {}", what, advice);
}

std::string without_breaks(std::string text) {
    for (char& c : text) {
        if (c == '\n' || c == '\r' || c == '\t') c = ' ';
    }
    return text;
}

}  // namespace

Explanation explain(const std::exception& fault) {
    Explanation explanation{fault.what(), Exit::setup};
    if (const auto* const busy = dynamic_cast<const Busy*>(&fault)) {
        explanation = {joined(busy->what(), advice_for("55P03", "")), Exit::finding};
    } else if (const auto* const refused = dynamic_cast<const ServerError*>(&fault)) {
        explanation.line = joined(refused->what(), advice_for(refused->sqlstate(), refused->report().hint));
    } else if (const auto* const unreachable = dynamic_cast<const ConnectionError*>(&fault)) {
        explanation.line = joined(unreachable->what(), advice_for(unreachable->sqlstate(),
                                                                  "is the server running, and is the address right?"));
    } else if (dynamic_cast<const CommitOutcomeUnknown*>(&fault) != nullptr) {
        explanation = {joined(fault.what(),
                              "look for the entry before you send it again: with the same --entry-id it is "
                              "appended once"),
                       Exit::undetermined};
    }
    explanation.line = without_breaks(std::move(explanation.line));
    return explanation;
}

}  // namespace rowlock::cli
