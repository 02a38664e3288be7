#include "rowlock/rows.hpp"

#include <libpq-fe.h>

#include <charconv>

#include "base/contract.hpp"
#include "base/hex.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

const PGresult* driver(const std::shared_ptr<void>& result) {
    return static_cast<const PGresult*>(result.get());
}

template <class Number>
Number whole_number(std::string_view text, std::string_view what) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) {
        throw InvalidInput(std::string(what) + " is not a whole number: " + std::string(text));
    }
    return value;
}

}  // namespace

bool Row::is_null(std::size_t column) const {
    contract(index_ < rows_->size() && column < rows_->columns(), "a row is asked for a column that it has");
    return PQgetisnull(driver(rows_->result_), static_cast<int>(index_), static_cast<int>(column)) == 1;
}

std::string_view Row::text(std::size_t column) const {
    contract(!is_null(column), "text() is not asked of a NULL");
    const auto row = static_cast<int>(index_);
    const auto position = static_cast<int>(column);
    return {PQgetvalue(driver(rows_->result_), row, position),
            static_cast<std::size_t>(PQgetlength(driver(rows_->result_), row, position))};
}

std::optional<std::string> Row::optional_text(std::size_t column) const {
    if (is_null(column)) return std::nullopt;
    return std::string(text(column));
}

std::int64_t Row::integer(std::size_t column) const {
    return whole_number<std::int64_t>(text(column), rows_->column_name(column));
}

bool Row::boolean(std::size_t column) const {
    return text(column) == "t";
}

std::vector<std::byte> Row::bytes(std::size_t column) const {
    const std::string_view value = text(column);
    // bytea_output is pinned to hex by src/postgres for every connection.
    auto bytes = value.starts_with("\\x") ? from_hex(value.substr(2)) : std::nullopt;
    if (!bytes) throw InvalidInput(std::string(rows_->column_name(column)) + " is not a bytea");
    return std::move(*bytes);
}

std::size_t Rows::size() const noexcept {
    return static_cast<std::size_t>(PQntuples(driver(result_)));
}

std::int64_t Rows::affected() const {
    const std::string_view count = PQcmdTuples(static_cast<PGresult*>(result_.get()));
    return count.empty() ? 0 : whole_number<std::int64_t>(count, "the number of rows touched");
}

std::size_t Rows::columns() const noexcept {
    return static_cast<std::size_t>(PQnfields(driver(result_)));
}

std::string_view Rows::column_name(std::size_t column) const {
    const char* const name = PQfname(driver(result_), static_cast<int>(column));
    return name == nullptr ? std::string_view() : std::string_view(name);
}

std::string_view Rows::command_tag() const noexcept {
    return PQcmdStatus(static_cast<PGresult*>(result_.get()));
}

Row Rows::operator[](std::size_t index) const {
    contract(index < size(), "a result is asked for a row that it has");
    return {*this, index};
}

Row Rows::only() const {
    contract(size() == 1, "only() is asked of a result with exactly one row");
    return (*this)[0];
}

Parameter::Parameter(std::span<const std::byte> bytes) : text_("\\x" + to_hex(bytes)) {}

Parameter Parameter::array(std::span<const std::optional<std::string>> elements) {
    std::string text = "{";
    for (const auto& element : elements) {
        if (text.size() > 1) text += ',';
        if (!element) {
            text += "NULL";
            continue;
        }
        text += '"';
        for (const char c : *element) {
            if (c == '"' || c == '\\') text += '\\';
            text += c;
        }
        text += '"';
    }
    return Parameter(text + "}");
}

Parameter Parameter::binary(std::string value) {
    Parameter parameter(std::move(value));
    parameter.is_binary_ = true;
    return parameter;
}

}  // namespace rowlock
