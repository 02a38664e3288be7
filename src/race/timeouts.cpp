#include "race/timeouts.hpp"

#include <cstdlib>

#include "race/sql_tokens.hpp"

namespace rowlock::race {

namespace {

bool is_timeout(std::string_view word) {
    const std::string lower = lower_case(word);
    return lower == "lock_timeout" || lower == "statement_timeout" || lower == "deadlock_timeout" ||
           lower == "idle_in_transaction_session_timeout" || lower == "idle_session_timeout";
}

/// All that a session sends, setup first.
std::string text_of(const SessionScript& session) {
    std::string text = session.setup;
    for (const Step& step : session.steps) text += "\n" + step.sql;
    return lower_case(text);
}

/// "'100s'", "= 10ms", "to 500": the first number behind the name, in milliseconds.
std::chrono::milliseconds duration_behind(std::string_view text, std::size_t at) {
    while (at < text.size() && (text[at] < '0' || text[at] > '9')) ++at;
    std::size_t end = at;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    const long long number = end > at ? std::atoll(std::string(text.substr(at, end - at)).c_str()) : 1000;
    while (end < text.size() && text[end] == ' ') ++end;
    const std::string_view unit = text.substr(end, 3);
    if (unit.starts_with("ms")) return std::chrono::milliseconds(number);
    if (unit.starts_with("min")) return std::chrono::minutes(number);
    if (unit.starts_with("s")) return std::chrono::seconds(number);
    if (unit.starts_with("h")) return std::chrono::hours(number);
    return std::chrono::milliseconds(number);
}

}  // namespace

std::string without_timeouts(std::string_view sql) {
    std::string text;
    std::size_t at = 0;
    while (at < sql.size()) {
        if (!is_word_start(sql[at])) {
            text += sql[at++];
            continue;
        }
        const std::size_t begin = at;
        while (at < sql.size() && is_word_part(sql[at])) ++at;
        const std::string_view word = sql.substr(begin, at - begin);
        const bool has_prefix = begin > 0 && sql[begin - 1] == '.';
        if (is_timeout(word) && !has_prefix) text += "rowlock.";
        text += word;
    }
    return text;
}

OwnTimeout own_timeout_of(const SessionScript& session) {
    const std::string text = text_of(session);
    if (text.find("statement_timeout") != std::string::npos) return OwnTimeout::statement;
    for (const std::string& word : sql_words(text)) {
        if (word == "lock_timeout") return OwnTimeout::lock;
    }
    return OwnTimeout::none;
}

std::chrono::milliseconds deadlock_timeout_of(const SessionScript& session) {
    const std::string text = text_of(session);
    const std::size_t at = text.find("deadlock_timeout");
    return at == std::string::npos ? std::chrono::seconds(1) : duration_behind(text, at);
}

}  // namespace rowlock::race
