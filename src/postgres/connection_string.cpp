#include "postgres/connection_string.hpp"

#include <fmt/format.h>
#include <libpq-fe.h>

#include <memory>

#include "postgres/failure.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

using Options = std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)>;

/// libpq takes a string without "=" and without a URI's scheme for the name of a database.
bool is_database_name(const std::string& connection) {
    return connection.find('=') == std::string::npos && !connection.starts_with("postgres://") &&
           !connection.starts_with("postgresql://");
}

Options parsed(const std::string& connection) {
    char* message = nullptr;
    Options options(PQconninfoParse(connection.c_str(), &message), &PQconninfoFree);
    if (!options) {
        const std::string reason = first_line(message == nullptr ? "out of memory" : message);
        PQfreemem(message);
        throw InvalidInput(fmt::format(
            "the connection string can't be read: {}; write postgresql://user@host/database, or host=… dbname=…",
            reason));
    }
    return options;
}

std::string quoted(const std::string& value) {
    std::string text = "'";
    for (const char c : value) {
        if (c == '\'' || c == '\\') text += '\\';
        text += c;
    }
    return text + "'";
}

}  // namespace

std::string with_database(const std::string& connection, const std::string& database) {
    std::string result;
    if (!is_database_name(connection)) {
        const Options options = parsed(connection);
        for (const PQconninfoOption* option = options.get(); option->keyword != nullptr; ++option) {
            if (option->val == nullptr || std::string_view(option->keyword) == "dbname") continue;
            result += fmt::format("{}={} ", option->keyword, quoted(option->val));
        }
    }
    return result + "dbname=" + quoted(database);
}

void require_readable(const std::string& connection) {
    if (!is_database_name(connection)) static_cast<void>(parsed(connection));
}

}  // namespace rowlock
