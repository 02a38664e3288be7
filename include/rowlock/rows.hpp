// What a statement gave back, and what one is given.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rowlock/identifiers.hpp"

namespace rowlock {

class Rows;

/// One row; valid as long as its Rows (or a copy of them) is.
class Row {
  public:
    [[nodiscard]] bool is_null(std::size_t column) const;
    /// The value as the server writes it; a NULL is a contract failure (ask `is_null`, or use `optional_text`).
    [[nodiscard]] std::string_view text(std::size_t column) const;
    [[nodiscard]] std::optional<std::string> optional_text(std::size_t column) const;
    /// Throws InvalidInput where the value is no whole number of 64 bits.
    [[nodiscard]] std::int64_t integer(std::size_t column) const;
    [[nodiscard]] bool boolean(std::size_t column) const;
    /// A bytea.
    [[nodiscard]] std::vector<std::byte> bytes(std::size_t column) const;

  private:
    friend class Rows;
    Row(const Rows& rows, std::size_t index) : rows_(&rows), index_(index) {}
    const Rows* rows_;
    std::size_t index_;
};

/// The rows of one statement, in text format, independent of the connection that they came from.
class Rows {
  public:
    [[nodiscard]] std::size_t size() const noexcept;
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }
    /// How many rows an INSERT, UPDATE or DELETE touched.
    [[nodiscard]] std::int64_t affected() const;
    [[nodiscard]] std::size_t columns() const noexcept;
    [[nodiscard]] std::string_view column_name(std::size_t column) const;
    /// The server's tag, such as "INSERT 0 1".
    [[nodiscard]] std::string_view command_tag() const noexcept;
    [[nodiscard]] Row operator[](std::size_t index) const;
    /// The only row; any other count is a contract failure.
    [[nodiscard]] Row only() const;

    class Iterator;
    [[nodiscard]] Iterator begin() const;
    [[nodiscard]] Iterator end() const;

    /// For src/postgres: wraps a result of the driver.
    explicit Rows(std::shared_ptr<void> result) : result_(std::move(result)) {}

  private:
    friend class Row;
    std::shared_ptr<void> result_;
};

class Rows::Iterator {
  public:
    Iterator(const Rows& rows, std::size_t index) : rows_(&rows), index_(index) {}
    Row operator*() const { return (*rows_)[index_]; }
    Iterator& operator++() {
        ++index_;
        return *this;
    }
    bool operator==(const Iterator& other) const { return index_ == other.index_; }

  private:
    const Rows* rows_;
    std::size_t index_;
};

inline Rows::Iterator Rows::begin() const {
    return {*this, 0};
}
inline Rows::Iterator Rows::end() const {
    return {*this, size()};
}

/// One `$n` of a statement. The server infers its type from the statement.
class Parameter {
  public:
    Parameter(std::nullopt_t) {}
    Parameter(std::string text) : text_(std::move(text)) {}
    Parameter(std::string_view text) : text_(text) {}
    Parameter(const char* text) : text_(text) {}
    Parameter(std::optional<std::string> text) : text_(std::move(text)) {}
    Parameter(const TenantId& tenant) : text_(tenant.text()) {}
    Parameter(const EntryId& id) : text_(id.text()) {}
    template <std::integral Integer>
    Parameter(Integer value) : text_(std::to_string(value)) {}
    Parameter(bool value) : text_(value ? "true" : "false") {}
    /// A bytea.
    Parameter(std::span<const std::byte> bytes);
    Parameter(const std::vector<std::byte>& bytes) : Parameter(std::span<const std::byte>(bytes)) {}
    /// A one-dimensional array of any type, its elements as text.
    static Parameter array(std::span<const std::optional<std::string>> elements);
    /// A value in the binary format of its type.
    /// Source: https://www.postgresql.org/docs/15/protocol-overview.html#PROTOCOL-FORMAT-CODES
    static Parameter binary(std::string value);

    /// What is sent: text, unless it `is_binary()`.
    [[nodiscard]] const std::optional<std::string>& text() const noexcept { return text_; }
    [[nodiscard]] bool is_binary() const noexcept { return is_binary_; }

  private:
    std::optional<std::string> text_;
    bool is_binary_ = false;
};

}  // namespace rowlock
