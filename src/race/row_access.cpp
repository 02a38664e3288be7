#include "race/row_access.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <vector>

#include "race/sql_tokens.hpp"

namespace rowlock::race {

namespace {

/// A token of code, words in lower case.
struct Piece {
    SqlTokenKind kind;
    std::string text;
};

std::vector<Piece> pieces_of(std::string_view statement) {
    std::vector<Piece> pieces;
    for (std::size_t at = 0; at < statement.size();) {
        const SqlToken token = sql_token_at(statement, at);
        at = token.end;
        if (token.kind == SqlTokenKind::space || token.kind == SqlTokenKind::comment) continue;
        const std::string_view text = token.in(statement);
        pieces.push_back({token.kind, token.kind == SqlTokenKind::word ? lower_case(text) : std::string(text)});
    }
    if (!pieces.empty() && pieces.back().text == ";") pieces.pop_back();
    return pieces;
}

std::optional<std::string> whole_number(std::string_view digits) {
    std::int64_t value = 0;
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (fault != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    return std::to_string(value);
}

std::optional<std::string> canonical_uuid(std::string_view text) {
    constexpr std::string_view shape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    constexpr std::string_view hex_digits = "0123456789abcdef";
    std::string lower = lower_case(text);
    const bool fits = std::ranges::equal(lower, shape, [&](char c, char wanted) {
        return wanted == '-' ? c == '-' : hex_digits.find(c) != std::string_view::npos;
    });
    return fits ? std::optional(std::move(lower)) : std::nullopt;
}

/// Reads one statement for the value of the key that it names.
class RowReader {
  public:
    RowReader(std::string_view statement, const Relation& relation)
        : pieces_(pieces_of(statement)), table_(lower_case(relation.name)), key_(*relation.row_key) {}

    std::optional<std::string> read() const {
        if (is(0, "select")) {
            const std::size_t from = next_outside("from", 1);
            return is(from + 1, table_) && is(from + 2, "where") ? condition(from + 3) : std::nullopt;
        }
        if (is(0, "delete")) return is(1, "from") && is(2, table_) && is(3, "where") ? condition(4) : std::nullopt;
        if (is(0, "update") && is(1, table_) && is(2, "set")) return update();
        if (is(0, "insert") && is(1, "into") && is(2, table_)) return insert();
        return std::nullopt;
    }

  private:
    [[nodiscard]] bool is(std::size_t at, std::string_view text) const {
        const bool is_code =
            at < pieces_.size() && (pieces_[at].kind == SqlTokenKind::word || pieces_[at].kind == SqlTokenKind::symbol);
        return is_code && pieces_[at].text == text;
    }
    [[nodiscard]] bool opens(std::size_t at) const { return is(at, "(") || is(at, "["); }
    [[nodiscard]] bool closes(std::size_t at) const { return is(at, ")") || is(at, "]"); }

    /// Outside of parentheses, from `at` on; the end where there is none.
    [[nodiscard]] std::size_t next_outside(std::string_view word, std::size_t at) const {
        int depth = 0;
        for (; at < pieces_.size() && depth >= 0; ++at) {
            if (depth == 0 && is(at, word)) return at;
            depth += opens(at) ? 1 : closes(at) ? -1 : 0;
        }
        return pieces_.size();
    }
    [[nodiscard]] bool has_key_between(std::size_t at, std::size_t end) const {
        for (; at < end; ++at) {
            const bool is_quoted = at < pieces_.size() && pieces_[at].kind == SqlTokenKind::quoted_identifier;
            if (is(at, key_.column) || is_quoted) return true;
        }
        return false;
    }

    std::optional<std::string> update() const {
        const std::size_t where = next_outside("where", 3);
        if (has_key_between(3, where) || next_outside("from", 3) < where) return std::nullopt;
        return condition(where + 1);
    }

    /// `key = value`, alone or with more that only narrows it.
    std::optional<std::string> condition(std::size_t at) const {
        constexpr std::array<std::string_view, 5> more{"and", "for", "returning", "order", "limit"};
        if (!is(at, key_.column) || !is(at + 1, "=")) return std::nullopt;
        at += 2;
        auto value = literal(at);
        const bool ends =
            at >= pieces_.size() || std::ranges::any_of(more, [&](std::string_view word) { return is(at, word); });
        if (!ends || next_outside("or", at) < pieces_.size()) return std::nullopt;
        return value;
    }

    std::optional<std::string> insert() const {
        std::size_t at = 3;
        if (is(at, "as")) at += 2;
        std::size_t place = key_.place;
        if (is(at, "(")) {
            const std::size_t close = next_outside(")", at + 1);
            place = 0;
            for (std::size_t column = at + 1; column < close; column += 2) {
                if (is(column, key_.column)) place = (column - at + 1) / 2;
                if (pieces_[column].kind != SqlTokenKind::word) return std::nullopt;
            }
            at = close + 1;
        }
        if (place == 0 || !is(at, "values") || !is(at + 1, "(")) return std::nullopt;
        at += 2;
        const std::size_t close = next_outside(")", at);
        for (std::size_t i = 1; i < place; ++i) at = next_outside(",", at) + 1;
        if (at >= close) return std::nullopt;
        const auto value = literal(at);
        const bool is_alone = is(at, ",") || at == close;
        const bool is_one_row = close + 1 == pieces_.size() || is(close + 1, "on") || is(close + 1, "returning");
        const std::size_t set = next_outside("set", close + 1);
        return is_alone && is_one_row && !has_key_between(set, pieces_.size()) ? value : std::nullopt;
    }

    /// A value in its one spelling; `at` is moved behind it.
    std::optional<std::string> literal(std::size_t& at) const {
        const bool is_negative = is(at, "-");
        if (is_negative) ++at;
        if (at >= pieces_.size()) return std::nullopt;
        const Piece& piece = pieces_[at++];
        const bool is_whole = key_.type.starts_with("int");
        if (piece.kind == SqlTokenKind::number && is_whole) return whole_number((is_negative ? "-" : "") + piece.text);
        const bool is_plain = piece.kind == SqlTokenKind::string && piece.text.starts_with('\'') &&
                              piece.text.find('\\') == std::string::npos && !is_negative;
        if (!is_plain) return std::nullopt;
        const std::string_view text = std::string_view(piece.text).substr(1, piece.text.size() - 2);
        if (is_whole) return whole_number(text);
        return key_.type == "uuid" ? canonical_uuid(text) : std::optional(std::string(text));
    }

    std::vector<Piece> pieces_;
    std::string table_;
    const RowKey& key_;
};

}  // namespace

std::optional<RowAccess> row_access(std::string_view statement, const Reach& reach, const Catalog& catalog) {
    if (reach.named.size() != 1 || reach.named.begin()->second != 1) return std::nullopt;
    const Relation& relation = catalog.relations.at(reach.named.begin()->first);
    if (!relation.row_key) return std::nullopt;
    const auto value = RowReader(statement, relation).read();
    if (!value) return std::nullopt;
    return RowAccess{relation.id, resource_named(std::to_string(relation.id) + "." + *value)};
}

}  // namespace rowlock::race
