#include "cli/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/utc_time.hpp"
#include "json/json.hpp"

namespace rowlock::cli {

namespace {

std::string padded(std::string_view text, std::size_t width, bool to_the_right) {
    const std::size_t used = columns_of(text);
    const std::string blanks(width > used ? width - used : 0, ' ');
    return to_the_right ? blanks + std::string(text) : std::string(text) + blanks;
}

bool looks_like_number(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789.,-×%") == std::string_view::npos;
}

bool looks_like_time(std::string_view text) {
    return text.size() >= 10 && text[4] == '-' && text.find_first_not_of("0123456789-:.TZ") == std::string_view::npos;
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

namespace {

/// What was printed is not all there, so the exit code must not say that all is well.
[[noreturn]] void stop_unwritten(int reason) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): the text is used at once
    std::fprintf(stderr, "rowlock: standard output can't be written: %s\n", std::strerror(reason));
    std::_Exit(static_cast<int>(Exit::setup));
}

}  // namespace

void print_line(std::string_view line) {
    const bool written = std::fwrite(line.data(), 1, line.size(), stdout) == line.size();
    if (!written || std::fputc('\n', stdout) == EOF) stop_unwritten(errno);
}

void flush_output() {
    if (std::fflush(stdout) != 0) stop_unwritten(errno);
}

void print_note(std::string_view line) {
    std::fflush(stdout);
    std::fwrite(line.data(), 1, line.size(), stderr);
    std::fputc('\n', stderr);
}

std::string counted(std::int64_t count, std::string_view one, std::string_view many) {
    return fmt::format("{} {}", grouped(count), count == 1 ? one : many);
}

std::string shown(std::string_view text) {
    return one_line(text, Style::unlimited);
}

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::int64_t per_second(std::int64_t count, double seconds) {
    constexpr double seconds_min = 1e-6;
    return static_cast<std::int64_t>(static_cast<double>(count) / std::max(seconds, seconds_min));
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
    return utc_time_text(microseconds);
}

Table::Table(std::vector<std::string> heads) : heads_(std::move(heads)) {}

void Table::add(std::vector<std::string> cells) {
    for (std::string& cell : cells) cell = one_line(cell, std::numeric_limits<std::size_t>::max());
    rows_.push_back(std::move(cells));
}

/// The widest columns give way until a line fits, none below `narrowest` and none with a time, which would be misread;
/// then the terminal breaks the line.
void Table::narrow(std::vector<std::size_t>& widths, const std::vector<bool>& with_times, std::size_t line_width) {
    constexpr std::size_t narrowest = 8;
    const std::size_t gaps = 2 * (widths.size() - 1);
    std::size_t total = std::accumulate(widths.begin(), widths.end(), gaps);
    while (total > line_width) {
        std::size_t* widest = nullptr;
        for (std::size_t i = 0; i < widths.size(); ++i) {
            if (!with_times[i] && (widest == nullptr || widths[i] > *widest)) widest = &widths[i];
        }
        if (widest == nullptr || *widest <= narrowest) return;
        --*widest;
        --total;
    }
}

std::vector<std::string> Table::lines(const Style& style) const {
    std::vector<std::size_t> widths;
    std::vector<bool> numeric(heads_.size(), !rows_.empty());
    std::vector<bool> with_times(heads_.size(), !rows_.empty());
    for (const auto& head : heads_) widths.push_back(columns_of(head));
    for (const auto& row : rows_) {
        for (std::size_t i = 0; i < heads_.size(); ++i) {
            widths[i] = std::max(widths[i], columns_of(row[i]));
            if (!row[i].empty() && !looks_like_number(row[i])) numeric[i] = false;
            if (!row[i].empty() && row[i] != "-" && !looks_like_time(row[i])) with_times[i] = false;
        }
    }
    narrow(widths, with_times, style.width);
    const auto line_of = [&](const std::vector<std::string>& cells) {
        std::string line;
        for (std::size_t i = 0; i < cells.size(); ++i) {
            if (i > 0) line += "  ";
            line += padded(one_line(cells[i], widths[i]), widths[i], numeric[i]);
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
