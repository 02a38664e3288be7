#include "cli/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "json/json.hpp"

namespace rowlock::cli {

namespace {

/// Columns that UTF-8 text takes on a terminal, near enough: one for each code point.
std::size_t columns_of(std::string_view text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string padded(std::string_view text, std::size_t width, bool to_the_right) {
    const std::size_t used = columns_of(text);
    const std::string blanks(width > used ? width - used : 0, ' ');
    return to_the_right ? blanks + std::string(text) : std::string(text) + blanks;
}

bool looks_like_number(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789.,-×%") == std::string_view::npos;
}

}  // namespace

std::string tinted(const Style& style, Tone tone, std::string_view text) {
    if (!style.color || tone == Tone::plain) return std::string(text);
    const std::string_view code = tone == Tone::good    ? "32"
                                  : tone == Tone::bad   ? "31;1"
                                  : tone == Tone::faint ? "2"
                                                        : "1";
    return fmt::format("\033[{}m{}\033[0m", code, text);
}

void print_line(std::string_view line) {
    std::fwrite(line.data(), 1, line.size(), stdout);
    if (std::fputc('\n', stdout) == EOF) std::_Exit(static_cast<int>(Exit::setup));
}

void print_note(std::string_view line) {
    std::fflush(stdout);
    std::fwrite(line.data(), 1, line.size(), stderr);
    std::fputc('\n', stderr);
}

std::string grouped(std::int64_t number) {
    std::string digits = std::to_string(number);
    const std::ptrdiff_t first = number < 0 ? 1 : 0;
    for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > first; at -= 3) {
        digits.insert(static_cast<std::size_t>(at), 1, ',');
    }
    return digits;
}

std::string utc_time(std::int64_t microseconds) {
    constexpr std::int64_t per_second = 1000000;
    std::int64_t seconds = microseconds / per_second;
    std::int64_t rest = microseconds % per_second;
    if (rest < 0) {
        rest += per_second;
        --seconds;
    }
    const std::time_t moment = seconds;
    std::tm parts{};
    gmtime_r(&moment, &parts);
    return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                       parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, rest);
}

std::string one_line(std::string_view text, std::size_t width) {
    std::string line;
    std::size_t columns = 0;
    for (const char c : text) {
        const bool starts = (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
        if (starts && columns + 1 == width && columns_of(text) > width) return line + "…";
        if (starts) ++columns;
        line += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
    }
    return line;
}

Table::Table(std::vector<std::string> heads) : heads_(std::move(heads)) {}

void Table::add(std::vector<std::string> cells) {
    rows_.push_back(std::move(cells));
}

std::vector<std::string> Table::lines(const Style& style) const {
    std::vector<std::size_t> widths;
    std::vector<bool> numeric(heads_.size(), !rows_.empty());
    for (const auto& head : heads_) widths.push_back(columns_of(head));
    for (const auto& row : rows_) {
        for (std::size_t i = 0; i < heads_.size(); ++i) {
            widths[i] = std::max(widths[i], columns_of(row[i]));
            if (!row[i].empty() && !looks_like_number(row[i])) numeric[i] = false;
        }
    }
    const auto line_of = [&](const std::vector<std::string>& cells) {
        std::string line;
        std::size_t used = 0;
        for (std::size_t i = 0; i < cells.size(); ++i) {
            const bool last = i + 1 == cells.size();
            const std::size_t left = style.width > used + 8 ? style.width - used : 8;
            line += last && !numeric[i] ? one_line(cells[i], left) : padded(cells[i], widths[i], numeric[i]);
            if (!last) line += "  ";
            used += widths[i] + 2;
        }
        line.erase(line.find_last_not_of(' ') + 1);
        return line;
    };
    std::vector<std::string> lines{tinted(style, Tone::strong, line_of(heads_))};
    for (const auto& row : rows_) lines.push_back(line_of(row));
    return lines;
}

void JsonObject::key(std::string_view name) {
    if (!body_.empty()) body_ += ',';
    body_ += quote_json(name);
    body_ += ':';
}

JsonObject& JsonObject::text(std::string_view name, std::string_view value) {
    return raw(name, quote_json(value));
}

JsonObject& JsonObject::optional_text(std::string_view name, const std::optional<std::string>& value) {
    return raw(name, value ? quote_json(*value) : "null");
}

JsonObject& JsonObject::number(std::string_view name, std::int64_t value) {
    return raw(name, std::to_string(value));
}

JsonObject& JsonObject::real(std::string_view name, double value) {
    return raw(name, fmt::format("{:.3f}", value));
}

JsonObject& JsonObject::boolean(std::string_view name, bool value) {
    return raw(name, value ? "true" : "false");
}

JsonObject& JsonObject::raw(std::string_view name, std::string_view json) {
    key(name);
    body_ += json;
    return *this;
}

std::string JsonObject::str() const {
    return "{" + body_ + "}";
}

std::string json_array(const std::vector<std::string>& elements) {
    return fmt::format("[{}]", fmt::join(elements, ","));
}

void Progress::show(std::string_view text) {
    if (!on_) return;
    const auto now =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
            .count();
    if (shown_ && now - last_shown_ < 100) return;
    last_shown_ = now;
    shown_ = true;
    std::fprintf(stderr, "\r\033[K%.*s", static_cast<int>(text.size()), text.data());
    std::fflush(stderr);
}

void Progress::clear() {
    if (!shown_) return;
    shown_ = false;
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
}

}  // namespace rowlock::cli
