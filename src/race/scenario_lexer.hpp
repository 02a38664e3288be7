// The tokens of a scenario file. An SQL block is one token, so that braces in strings and comments are no braces.
#pragma once

#include <string>
#include <string_view>

#include "race/scenario.hpp"

namespace rowlock::race {

enum class TokenKind { identifier, quoted, integer, sql_block, symbol, end };

struct Token {
    TokenKind kind = TokenKind::end;
    std::string text{};          ///< Quotes removed; of a block what is between its braces, trimmed.
    std::size_t begin = 0;       ///< Where the token starts.
    std::size_t text_begin = 0;  ///< Where `text` starts in the file.
};

/// A file and the place in it where a message points.
class SourceText {
  public:
    SourceText(std::string_view text, std::string_view name) : text_(text), name_(name) {}

    [[nodiscard]] std::string_view text() const noexcept { return text_; }
    [[nodiscard]] SourcePosition position(std::size_t offset) const;
    /// Throws a ScenarioError that shows the line with a mark under the column.
    [[noreturn]] void fail(std::size_t offset, const std::string& message) const;

  private:
    std::string_view text_;
    std::string_view name_;
};

class ScenarioLexer {
  public:
    explicit ScenarioLexer(const SourceText& source) : source_(&source) { advance(); }

    [[nodiscard]] const Token& current() const noexcept { return token_; }
    Token take();

  private:
    void advance();
    void skip_space_and_comments();
    void read_quoted();
    void read_block();

    const SourceText* source_;
    std::size_t at_ = 0;
    Token token_;
};

}  // namespace rowlock::race
