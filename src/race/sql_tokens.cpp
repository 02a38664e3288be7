#include "race/sql_tokens.hpp"

#include <algorithm>

namespace rowlock::race {

namespace {

bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

SqlToken quoted(std::string_view text, std::size_t begin, std::size_t at, SqlTokenKind kind, bool backslashes) {
    const char quote = text[at];
    for (++at; at < text.size(); ++at) {
        if (backslashes && text[at] == '\\') {
            ++at;
        } else if (text[at] == quote) {
            if (at + 1 < text.size() && text[at + 1] == quote) {
                ++at;
            } else {
                return {kind, begin, at + 1, true};
            }
        }
    }
    return {kind, begin, text.size(), false};
}

SqlToken line_comment(std::string_view text, std::size_t begin) {
    const std::size_t end = text.find('\n', begin);
    return {SqlTokenKind::comment, begin, end == std::string_view::npos ? text.size() : end, true};
}

SqlToken block_comment(std::string_view text, std::size_t begin) {
    int depth = 0;
    for (std::size_t at = begin; at + 1 < text.size(); ++at) {
        if (text[at] == '/' && text[at + 1] == '*') {
            ++depth;
            ++at;
        } else if (text[at] == '*' && text[at + 1] == '/') {
            ++at;
            if (--depth == 0) return {SqlTokenKind::comment, begin, at + 1, true};
        }
    }
    return {SqlTokenKind::comment, begin, text.size(), false};
}

/// A dollar sign opens a quote only as "$$" or "$tag$"; "$1" is a parameter.
SqlToken dollar(std::string_view text, std::size_t begin) {
    std::size_t at = begin + 1;
    if (at < text.size() && is_word_start(text[at])) {
        while (at < text.size() && is_word_part(text[at]) && text[at] != '$') ++at;
    }
    if (at >= text.size() || text[at] != '$') return {SqlTokenKind::symbol, begin, begin + 1, true};
    const std::string_view tag = text.substr(begin, at + 1 - begin);
    const std::size_t close = text.find(tag, at + 1);
    if (close == std::string_view::npos) return {SqlTokenKind::dollar_string, begin, text.size(), false};
    return {SqlTokenKind::dollar_string, begin, close + tag.size(), true};
}

void collect_words(std::string_view text, std::vector<std::string>& words) {
    std::size_t at = 0;
    while (at < text.size()) {
        if (!is_word_start(text[at])) {
            ++at;
            continue;
        }
        const std::size_t begin = at;
        while (at < text.size() && is_word_part(text[at])) ++at;
        words.push_back(lower_case(text.substr(begin, at - begin)));
    }
}

}  // namespace

bool is_word_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (static_cast<unsigned char>(c) & 0x80U) != 0;
}

bool is_word_part(char c) {
    return is_word_start(c) || is_digit(c) || c == '$';
}

std::string lower_case(std::string_view text) {
    std::string lower(text);
    std::ranges::transform(lower, lower.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; });
    return lower;
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
    return text;
}

SqlToken sql_token_at(std::string_view text, std::size_t at) {
    const char c = text[at];
    const char next = at + 1 < text.size() ? text[at + 1] : '\0';
    std::size_t end = at + 1;
    if (is_space(c)) {
        while (end < text.size() && is_space(text[end])) ++end;
        return {SqlTokenKind::space, at, end, true};
    }
    if (c == '-' && next == '-') return line_comment(text, at);
    if (c == '/' && next == '*') return block_comment(text, at);
    if (c == '\'') return quoted(text, at, at, SqlTokenKind::string, false);
    if (c == '"') return quoted(text, at, at, SqlTokenKind::quoted_identifier, false);
    if (c == '$') return dollar(text, at);
    if ((c == 'e' || c == 'E') && next == '\'') return quoted(text, at, at + 1, SqlTokenKind::string, true);
    if (is_word_start(c)) {
        while (end < text.size() && is_word_part(text[end])) ++end;
        return {SqlTokenKind::word, at, end, true};
    }
    if (is_digit(c)) {
        while (end < text.size() && (is_digit(text[end]) || text[end] == '.')) ++end;
        return {SqlTokenKind::number, at, end, true};
    }
    return {SqlTokenKind::symbol, at, end, true};
}

std::vector<std::string> sql_words(std::string_view text) {
    std::vector<std::string> words;
    for (std::size_t at = 0; at < text.size();) {
        const SqlToken token = sql_token_at(text, at);
        if (token.kind != SqlTokenKind::comment) collect_words(token.in(text), words);
        at = token.end;
    }
    return words;
}

std::vector<std::string> sql_code_words(std::string_view text) {
    std::vector<std::string> words;
    for (std::size_t at = 0; at < text.size();) {
        const SqlToken token = sql_token_at(text, at);
        const bool is_name = token.kind == SqlTokenKind::word || token.kind == SqlTokenKind::symbol;
        if (is_name) words.push_back(lower_case(token.in(text)));
        at = token.end;
    }
    return words;
}

std::vector<std::string_view> sql_statements(std::string_view text) {
    std::vector<std::string_view> statements;
    std::size_t begin = 0;
    bool has_code = false;
    const auto close = [&](std::size_t end) {
        if (has_code) statements.push_back(trimmed(text.substr(begin, end - begin)));
        has_code = false;
    };
    for (std::size_t at = 0; at < text.size();) {
        const SqlToken token = sql_token_at(text, at);
        if (token.kind == SqlTokenKind::symbol && text[at] == ';') {
            close(at);
            begin = token.end;
        } else if (token.kind != SqlTokenKind::space && token.kind != SqlTokenKind::comment) {
            has_code = true;
        }
        at = token.end;
    }
    close(text.size());
    return statements;
}

}  // namespace rowlock::race
