// Text for people and JSON for programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/context.hpp"

namespace rowlock::cli {

enum class Tone { plain, good, bad, faint, strong };

/// `text` in the colour of its tone, where colours are wanted.
[[nodiscard]] std::string tinted(const Style& style, Tone tone, std::string_view text);

/// Writes a line to stdout, or ends the program quietly if nobody reads it any more.
void print_line(std::string_view line);
/// Writes a line to stderr.
void print_note(std::string_view line);

/// 1234567 as "1,234,567".
[[nodiscard]] std::string grouped(std::int64_t number);

/// Microseconds since 1970 as "2026-11-30T15:04:05.123456Z".
[[nodiscard]] std::string utc_time(std::int64_t microseconds);

/// The text on one line of at most `width` columns: control characters become spaces, the rest is cut with "…".
[[nodiscard]] std::string one_line(std::string_view text, std::size_t width);

/// A table whose columns are as wide as what is in them; numbers are set to the right.
class Table {
  public:
    explicit Table(std::vector<std::string> heads);
    void add(std::vector<std::string> cells);
    /// Lines without trailing blanks; the last column is cut where the line would be wider than the terminal.
    [[nodiscard]] std::vector<std::string> lines(const Style& style) const;

  private:
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
