#include "audit/head_list.hpp"

#include <algorithm>
#include <charconv>

#include "base/base64.hpp"
#include "base/bytes.hpp"
#include "base/hex.hpp"
#include "base/lines.hpp"
#include "base/utc_time.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

constexpr std::size_t words_max = 8;
constexpr std::size_t start_lines = 4;

bool stays_as_it_is(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_' || c == '~';
}

/// More than `words_max` words come back as so many and one more.
std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    while (words.size() <= words_max) {
        const std::size_t end = line.find(' ');
        words.push_back(line.substr(0, end));
        if (end == std::string_view::npos) break;
        line.remove_prefix(end + 1);
    }
    return words;
}

std::optional<std::string_view> value_of(std::string_view line, std::string_view name) {
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ' ') return std::nullopt;
    return line.substr(name.size() + 1);
}

std::optional<LedgerId> ledger_of(std::string_view text) {
    try {
        return EntryId::parse(text).bytes();
    } catch (const InvalidInput&) {
        return std::nullopt;
    }
}

}  // namespace

std::string head_list_start(std::string_view kind, const HeadListStart& start, std::size_t tenants) {
    std::string text(kind);
    (text += "\nledger ") += EntryId(start.ledger).text();
    (text += "\ntime ") += utc_time_text(start.time);
    (text += "\ntenants ") += std::to_string(tenants);
    return text += '\n';
}

std::string note_word(std::string_view text) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string word;
    word.reserve(text.size());
    for (const char c : text) {
        if (stays_as_it_is(c)) {
            word += c;
            continue;
        }
        const auto byte = static_cast<unsigned char>(c);
        ((word += '%') += digits[byte >> 4U]) += digits[byte & 15U];
    }
    return word;
}

std::optional<std::string> from_note_word(std::string_view word) {
    std::string text;
    while (!word.empty()) {
        if (word.front() != '%') {
            text += word.front();
            word.remove_prefix(1);
            continue;
        }
        const auto byte = from_hex(word.substr(1, 2));
        if (!byte || byte->size() != 1) return std::nullopt;
        text += static_cast<char>(byte->front());
        word.remove_prefix(3);
    }
    return text;
}

std::optional<std::int64_t> number_of_word(std::string_view word) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc{} || end != word.data() + word.size() || std::to_string(number) != word || number < 0) {
        return std::nullopt;
    }
    return number;
}

std::optional<Mac> digest_of_word(std::string_view word) {
    const auto bytes = from_base64(word);
    Mac digest{};
    if (!bytes || bytes->size() != digest.size()) return std::nullopt;
    std::copy(bytes->begin(), bytes->end(), digest.begin());
    return digest;
}

std::optional<std::string> read_head_list(std::string_view text, std::string_view kind, HeadListStart& start,
                                          const std::function<bool(std::span<const std::string_view>)>& head) {
    const auto lines = lines_of(text);
    if (lines.empty() || lines[0] != kind) return "it does not begin with " + std::string(kind);
    if (lines.size() < start_lines) return "it ends before the tenants";
    const auto ledger = value_of(lines[1], "ledger");
    const auto ledger_id = ledger ? ledger_of(*ledger) : std::nullopt;
    if (!ledger_id) return "its second line is not: ledger and a UUID";
    const auto time = value_of(lines[2], "time");
    const auto moment = time ? parse_utc_time(*time) : std::nullopt;
    if (!moment) return "its third line is not: time and a moment such as 2026-11-30T15:04:05.123456Z";
    const auto count = value_of(lines[3], "tenants");
    if (!count || number_of_word(*count) != static_cast<std::int64_t>(lines.size() - start_lines)) {
        return "its fourth line does not count the tenants' lines";
    }
    start = {*ledger_id, *moment};
    for (std::size_t i = start_lines; i < lines.size(); ++i) {
        if (!head(words_of(lines[i]))) return "line " + std::to_string(i + 1) + " is not that of a tenant";
    }
    return std::nullopt;
}

}  // namespace rowlock
