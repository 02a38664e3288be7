#include "race/scenario_lexer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "race/sql_tokens.hpp"

namespace rowlock::race {

namespace {

/// A message quotes no more of a line than this.
constexpr std::size_t shown_line_max = 160;

bool is_file_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

}  // namespace

SourcePosition SourceText::position(std::size_t offset) const {
    const std::string_view before = text_.substr(0, std::min(offset, text_.size()));
    const std::size_t line_begin = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    return {1 + static_cast<int>(std::ranges::count(before, '\n')), 1 + static_cast<int>(before.size() - line_begin)};
}

void SourceText::fail(std::size_t offset, const std::string& message) const {
    const SourcePosition where = position(offset);
    const std::size_t line_begin = std::min(offset, text_.size()) - static_cast<std::size_t>(where.column - 1);
    std::string_view line = text_.substr(line_begin, text_.find('\n', line_begin) - line_begin);
    line = line.substr(0, shown_line_max);
    std::string mark;
    for (std::size_t i = 0; i + 1 < static_cast<std::size_t>(where.column) && i < line.size(); ++i) {
        mark += line[i] == '\t' ? '\t' : ' ';
    }
    throw ScenarioError(
        fmt::format("{}:{}:{}: {}\n    {}\n    {}^", name_, where.line, where.column, message, line, mark), where);
}

Token ScenarioLexer::take() {
    Token taken = std::move(token_);
    advance();
    return taken;
}

void ScenarioLexer::skip_space_and_comments() {
    const std::string_view text = source_->text();
    while (at_ < text.size()) {
        if (is_file_space(text[at_])) {
            ++at_;
        } else if (text[at_] == '#') {
            at_ = std::min(text.find('\n', at_), text.size());
        } else {
            return;
        }
    }
}

void ScenarioLexer::read_quoted() {
    const std::string_view text = source_->text();
    token_.kind = TokenKind::quoted;
    token_.text_begin = at_ + 1;
    for (++at_; at_ < text.size() && text[at_] != '\n'; ++at_) {
        if (text[at_] != '"') {
            token_.text += text[at_];
        } else if (at_ + 1 < text.size() && text[at_ + 1] == '"') {
            token_.text += '"';
            ++at_;
        } else {
            ++at_;
            return;
        }
    }
    source_->fail(token_.begin, "this quoted name is not closed on its line");
}

void ScenarioLexer::read_block() {
    const std::string_view text = source_->text();
    const std::size_t begin = at_ + 1;
    for (at_ = begin; at_ < text.size();) {
        const SqlToken piece = sql_token_at(text, at_);
        if (!piece.closed) source_->fail(piece.begin, "this string, name or comment is never closed");
        if (piece.kind == SqlTokenKind::symbol && text[at_] == '{') {
            source_->fail(at_, "a '{' inside an SQL block: is a '}' missing before it?");
        }
        if (piece.kind == SqlTokenKind::symbol && text[at_] == '}') {
            const std::string_view inside = trimmed(text.substr(begin, at_ - begin));
            token_.kind = TokenKind::sql_block;
            token_.text = std::string(inside);
            token_.text_begin = inside.empty() ? begin : static_cast<std::size_t>(inside.data() - text.data());
            at_ = piece.end;
            return;
        }
        at_ = piece.end;
    }
    source_->fail(token_.begin, "this '{' has no '}'");
}

void ScenarioLexer::advance() {
    skip_space_and_comments();
    const std::string_view text = source_->text();
    token_ = Token{};
    token_.begin = at_;
    token_.text_begin = at_;
    if (at_ >= text.size()) return;
    const char c = text[at_];
    if (c == '"') return read_quoted();
    if (c == '{') return read_block();
    std::size_t end = at_ + 1;
    if (is_word_start(c)) {
        while (end < text.size() && is_word_part(text[end])) ++end;
        token_.kind = TokenKind::identifier;
    } else if (c >= '0' && c <= '9') {
        while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
        token_.kind = TokenKind::integer;
    } else {
        token_.kind = TokenKind::symbol;
    }
    token_.text = std::string(text.substr(at_, end - at_));
    at_ = end;
}

}  // namespace rowlock::race
