#include "postgres/identifier.hpp"

#include "rowlock/error.hpp"

namespace rowlock {

namespace {

/// NAMEDATALEN - 1 of every server that was not compiled otherwise.
constexpr std::size_t identifier_bytes_max = 63;

}  // namespace

std::string quote_identifier(std::string_view name) {
    if (name.empty()) throw InvalidInput("the name of a table, schema or column is empty");
    if (name.find('\0') != std::string_view::npos) {
        throw InvalidInput("the name of a table, schema or column has a NUL in it");
    }
    if (name.size() > identifier_bytes_max) {
        throw InvalidInput("the name \"" + std::string(name) + "\" is longer than the 63 bytes that PostgreSQL keeps");
    }
    std::string quoted = "\"";
    for (const char character : name) {
        if (character == '"') quoted += '"';
        quoted += character;
    }
    quoted += '"';
    return quoted;
}

}  // namespace rowlock
