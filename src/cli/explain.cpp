#include "cli/explain.hpp"

#include <fmt/format.h>

#include <limits>
#include <string_view>

#include "cli/columns.hpp"
#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

struct Advice {
    std::string_view sqlstate;
    std::string_view advice;
    std::string_view statements = {};  ///< What the names of the statements begin with that it is for.
};

/// What to do about what a server says most often, the first that fits. Anything else is passed on with the server's
/// own hint.
constexpr Advice advices[] = {
    {"28000", "check the user and pg_hba.conf"},
    {"28P01", "check the password (PGPASSWORD, ~/.pgpass)"},
    {"3D000", "check the name of the database"},
    {"53300", "wait for a connection to become free, or raise max_connections"},
    {"57P03", "wait until the server has started"},
    {"42501",
     "install as a superuser, or as a role with CREATEROLE that may CREATE in the database and, from PostgreSQL 16 on, "
     "made rowlock's roles or was given them WITH ADMIN OPTION",
     "schema.migration_"},
    {"42501", "uninstall as a superuser, or as a member of rowlock_owner", "schema.drop"},
    {"42501",
     "connect as a role that may do this: GRANT rowlock_app TO …; rowlock_auditor reads all tenants, rowlock_sealer "
     "seals"},
    {"57P02", "the server crashed: run this again when it is back"},
    {"53400", "raise the limit on the server"},
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
    {"RL001", "something else than rowlock wrote to this log: look with rowlock verify"},
    {"RL009", "rowlock retire-entries appends the entry that retires them"},
    {"22P02", "correct the input"},
    {"22003", "correct the input: PostgreSQL can't store a number of that size"},
    {"22P05", "correct the input: PostgreSQL can't store \\u0000"},
    {"54001", "correct the input: it is nested too deeply for the server"},
};

std::string advice_for(std::string_view sqlstate, std::string_view fallback, std::string_view statement = {}) {
    for (const Advice& known : advices) {
        if (known.sqlstate == sqlstate && statement.starts_with(known.statements)) return std::string(known.advice);
    }
    return std::string(fallback);
}

std::string joined(std::string_view what, std::string_view advice) {
    return advice.empty() ? std::string(what) : fmt::format("{}; {}", what, advice);
}

/// What a link says that never got as far as a SQLSTATE: libpq's own words.
std::string advice_without_code(std::string_view message) {
    if (message.find("no password supplied") != std::string_view::npos) {
        return "give the password (PGPASSWORD, ~/.pgpass)";
    }
    if (message.find("could not translate host name") != std::string_view::npos) return "check the name of the host";
    return "is the server running, and is the address right?";
}

}  // namespace

Explanation explain(const std::exception& fault) {
    Explanation explanation{fault.what(), Exit::setup};
    if (const auto* const busy = dynamic_cast<const Busy*>(&fault)) {
        explanation = {joined(joined(busy->what(), busy->report().hint), advice_for("55P03", "")), Exit::finding};
    } else if (const auto* const refused = dynamic_cast<const ServerError*>(&fault)) {
        explanation.line = joined(refused->what(),
                                  advice_for(refused->sqlstate(), refused->report().hint, refused->report().statement));
    } else if (const auto* const unreachable = dynamic_cast<const ConnectionError*>(&fault)) {
        const std::string_view code = unreachable->sqlstate();
        const std::string fallback = code.empty() ? advice_without_code(unreachable->what()) : std::string();
        explanation.line = joined(unreachable->what(), advice_for(code, fallback));
    } else if (dynamic_cast<const CommitOutcomeUnknown*>(&fault) != nullptr) {
        explanation = {joined(fault.what(),
                              "look for the entry before you send it again: with the same --entry-id it is "
                              "appended once"),
                       Exit::undetermined};
    }
    explanation.line = one_line(explanation.line, std::numeric_limits<std::size_t>::max());
    return explanation;
}

Explanation explain(const std::exception_ptr& fault) {
    try {
        std::rethrow_exception(fault);
    } catch (const std::exception& known) {
        return explain(known);
    } catch (...) {
        return {"an unknown fault", Exit::setup};
    }
}

}  // namespace rowlock::cli
