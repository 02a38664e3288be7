#include "cli/scratch_database.hpp"

#include <fmt/format.h>

#include <exception>

#include "cli/connection.hpp"
#include "postgres/connection_string.hpp"
#include "postgres/identifier.hpp"
#include "postgres/session.hpp"
#include "rowlock/error.hpp"
#include "rowlock/schema.hpp"

namespace rowlock::cli {

namespace {

/// CREATE and DROP DATABASE don't run inside a transaction, so not through `transact`.
void run_alone(const DatabaseOptions& options, const std::string& sql) {
    Session session(options, std::source_location::current());
    session.run_script({"scratch.database", sql}).rows_or_throw();
}

std::string drop_statement(const std::string& name) {
    return fmt::format("DROP DATABASE IF EXISTS {} WITH (FORCE)", quote_identifier(name));
}

}  // namespace

ScratchDatabase::ScratchDatabase(const Context& context, const std::string& name)
    : server_(server_connection(context)), name_(name) {
    const DatabaseOptions maintenance{.connection = server_};
    run_alone(maintenance, drop_statement(name_));
    run_alone(maintenance,
              fmt::format("CREATE DATABASE {} ENCODING 'UTF8' TEMPLATE template0", quote_identifier(name_)));
    Database database(as_owner());
    database.transact({}, [](Transaction& transaction) { install_schema(transaction); });
}

ScratchDatabase::~ScratchDatabase() {
    try {
        run_alone({.connection = server_}, drop_statement(name_));
    } catch (const std::exception&) {
        // The server is gone, perhaps; the next run drops it.
    }
}

DatabaseOptions ScratchDatabase::as_owner(std::size_t connections_max) const {
    return {.connection = with_database(server_, name_), .connections_max = connections_max};
}

DatabaseOptions ScratchDatabase::as_app(std::size_t connections_max) const {
    DatabaseOptions options = as_owner(connections_max);
    options.role = "rowlock_app";
    return options;
}

}  // namespace rowlock::cli
