// Text for people and JSON for programs.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/columns.hpp"
#include "cli/context.hpp"

namespace rowlock::cli {

enum class Tone { plain, good, bad, faint, strong };

/// `text` in the colour of its tone, where colours are wanted.
[[nodiscard]] std::string tinted(const Style& style, Tone tone, std::string_view text);

/// Writes a line to stdout. Where that can't be written (a full disk, a closed stream) the program ends with a word on
/// stderr and Exit::setup; a reader that went away ends it by SIGPIPE, as everywhere.
void print_line(std::string_view line);
/// Brings out what was printed; ends the program in the same way if that fails.
void flush_output();
/// Text of others, on one line, with nothing in it that a terminal would obey.
[[nodiscard]] std::string shown(std::string_view text);
/// Writes a line to stderr.
void print_note(std::string_view line);

/// 1234567 as "1,234,567".
[[nodiscard]] std::string grouped(std::int64_t number);

/// Microseconds since 1970 as "2026-11-30T15:04:05.123456Z".
[[nodiscard]] std::string utc_time(std::int64_t microseconds);

/// "1 entry", "2,000 entries".
[[nodiscard]] std::string counted(std::int64_t count, std::string_view one, std::string_view many);

[[nodiscard]] double seconds_since(std::chrono::steady_clock::time_point start);
/// A rate, also where next to no time has passed.
[[nodiscard]] std::int64_t per_second(std::int64_t count, double seconds);

/// A table whose columns are as wide as what is in them; numbers are set to the right.
class Table {
  public:
    explicit Table(std::vector<std::string> heads);
    void add(std::vector<std::string> cells);
    /// Lines without trailing blanks. Where they would be wider than the terminal, the widest columns are cut.
    [[nodiscard]] std::vector<std::string> lines(const Style& style) const;

  private:
    static void narrow(std::vector<std::size_t>& widths, const std::vector<bool>& with_times, std::size_t line_width);

    std::vector<std::string> heads_;
    std::vector<std::vector<std::string>> rows_;
};

/// Builds one JSON object on one line.
class JsonObject {
  public:
    JsonObject& text(std::string_view name, std::string_view value);
    JsonObject& optional_text(std::string_view name, const std::optional<std::string>& value);
    JsonObject& number(std::string_view name, std::int64_t value);
    JsonObject& real(std::string_view name, double value);
    JsonObject& boolean(std::string_view name, bool value);
    /// JSON text, as it is.
    JsonObject& raw(std::string_view name, std::string_view json);
    [[nodiscard]] std::string str() const;

  private:
    void key(std::string_view name);
    std::string body_;
};

/// A JSON array of what is JSON already.
[[nodiscard]] std::string json_array(const std::vector<std::string>& elements);

/// A line on stderr that is written over as work goes on; silent where stderr is no terminal.
class Progress {
  public:
    explicit Progress(const Style& style) : on_(style.progress) {}
    ~Progress() { clear(); }
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;
    /// At most ten times a second, whatever the number of calls.
    void show(std::string_view text);
    void clear();

  private:
    bool on_;
    bool shown_ = false;
    std::int64_t last_shown_ = 0;
};

}  // namespace rowlock::cli
