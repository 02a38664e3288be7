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

std::vector<std::string> quote_identifiers(const std::vector<std::string>& names) {
    std::vector<std::string> quoted;
    for (const std::string& name : names) quoted.push_back(quote_identifier(name));
    return quoted;
}

std::string quote_qualified_name(std::string_view schema, std::string_view table) {
    return quote_identifier(schema) + '.' + quote_identifier(table);
}

std::string quote_literal(std::string_view text) {
    std::string quoted = text.find('\\') == std::string_view::npos ? "'" : " E'";
    for (const char character : text) {
        if (character == '\'' || character == '\\') quoted += character;
        quoted += character;
    }
    return quoted + '\'';
}

}  // namespace rowlock
