#include "race/timeline_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace rowlock::race {

namespace {

/// "12 ● " before the columns.
constexpr std::size_t number_width = 5;
/// What is drawn before a cell's text: the bar of a wait.
constexpr std::size_t gutter = 2;
/// A column narrower than this holds no SQL; then that goes under the names.
constexpr std::size_t cell_min = 24;
/// Beside a step's name there is room for SQL if so many characters are left.
constexpr std::size_t beside_min = 20;
constexpr std::size_t sql_lines_max = 5;

/// The first `width` characters.
std::size_t bytes_of(std::string_view text, std::size_t width) {
    std::size_t at = 0;
    for (std::size_t characters = 0; at < text.size(); ++at) {
        const bool begins = (static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80U;
        if (begins && ++characters > width) break;
    }
    return at;
}

/// One line of a cell in pieces of one ink each; they are padded before they are coloured.
struct CellLine {
    std::string mark = "  ";
    std::string name{};
    std::string text{};
    Ink ink = Ink::plain;
};

class TimelineText {
  public:
    TimelineText(const Scenario& scenario, const std::vector<TimelineRow>& rows, const TextStyle& style)
        : scenario_(scenario), rows_(rows), style_(style) {
        const std::size_t sessions = std::max<std::size_t>(scenario.sessions.size(), 1);
        const std::size_t width = std::max(style.width, TextStyle::width_min) - number_width;
        column_ = width / sessions;
        for (const TimelineRow& row : rows) name_width_ = std::max(name_width_, text_width(row.step));
        is_beside_ = column_ >= gutter + name_width_ + 2 + beside_min;
        is_narrow_ = column_ < cell_min;
        if (is_narrow_) column_ = std::clamp(column_, gutter + 4, gutter + name_width_ + 2);
    }

    std::vector<std::string> lines() {
        std::string head(number_width, ' ');
        for (const SessionScript& session : scenario_.sessions) {
            head += padded("  " + on_one_line(session.name, column_ - gutter - 1), column_);
        }
        add(inked(style_, Ink::strong, without_end_blanks(head)));
        for (std::size_t i = 0; i < rows_.size(); ++i) add_row(rows_[i], i + 1);
        return std::move(lines_);
    }

  private:
    static std::string without_end_blanks(std::string line) {
        while (line.ends_with(' ')) line.pop_back();
        return line;
    }
    void add(std::string line) { lines_.push_back(std::move(line)); }

    static std::pair<std::string_view, Ink> mark_of(TimelineRow::Kind kind) {
        switch (kind) {
            case TimelineRow::Kind::waits:
                return {"┌ ", Ink::wait};
            case TimelineRow::Kind::goes_on:
            case TimelineRow::Kind::deadlock_check:
                return {"└ ", Ink::wait};
            case TimelineRow::Kind::fails:
                return {"✗ ", Ink::bad};
            case TimelineRow::Kind::step:
                break;
        }
        return {"  ", Ink::plain};
    }

    static Ink remark_ink(TimelineRow::Kind kind) {
        if (kind == TimelineRow::Kind::waits) return Ink::wait;
        return kind == TimelineRow::Kind::fails ? Ink::bad : Ink::plain;
    }

    /// The texts under or beside a step's name, in a column of `width`.
    std::vector<CellLine> texts_of(const TimelineRow& row, std::size_t width) const {
        std::vector<CellLine> texts;
        std::vector<std::string> sql = wrapped(tells_more_than_name(row) ? row.sql : "", width);
        if (sql.size() > sql_lines_max) {
            sql.resize(sql_lines_max);
            sql.back() = on_one_line(sql.back(), width - 1) + "…";
        }
        for (std::string& line : sql) texts.push_back({"  ", "", std::move(line), Ink::plain});
        const auto add_all = [&](const std::string& lead, const std::string& text, Ink ink) {
            const std::size_t indent = text_width(lead);
            bool first = true;
            for (const std::string& line : wrapped(text, width - indent)) {
                texts.push_back({"  ", "", (first ? lead : std::string(indent, ' ')) + line, ink});
                first = false;
            }
        };
        if (!row.remark.empty()) add_all("→ ", row.remark, remark_ink(row.kind));
        if (!row.locks.empty()) add_all("locks ", fmt::format("{}", fmt::join(row.locks, "; ")), Ink::faint);
        return texts;
    }

    std::vector<CellLine> cell_of(const TimelineRow& row) const {
        const std::size_t indent = is_beside_ ? name_width_ + 2 : 1;
        std::vector<CellLine> cell = texts_of(row, column_ - gutter - indent - 1);
        for (CellLine& line : cell) line.name = std::string(indent, ' ');
        const std::string name = on_one_line(row.step, column_ - gutter - 1);
        if (!is_beside_ || cell.empty()) cell.insert(cell.begin(), CellLine{});
        cell.front().name = is_beside_ ? padded(name, indent) : name;
        cell.front().mark = mark_of(row.kind).first;
        for (std::size_t i = 1; i < cell.size(); ++i) {
            if (row.kind == TimelineRow::Kind::waits) cell[i].mark = "│ ";
        }
        return cell;
    }

    std::string drawn(const CellLine& line, const TimelineRow& row) const {
        const std::size_t used = gutter + text_width(line.name) + text_width(line.text);
        return inked(style_, mark_of(row.kind).second, line.mark) + inked(style_, Ink::strong, line.name) +
               inked(style_, line.ink, line.text) + std::string(used < column_ ? column_ - used : 0, ' ');
    }

    std::string start_of(const TimelineRow& row, std::size_t number, bool first) const {
        if (!first) return std::string(number_width, ' ');
        const std::string text = fmt::format("{:>2} {} ", number, row.matters ? "●" : " ");
        return inked(style_, row.matters ? Ink::bad : Ink::faint, text);
    }

    std::string other_columns(const TimelineRow& row, std::size_t session) const {
        const std::string bar = row.waiting[session] ? "│" : "";
        return inked(style_, Ink::wait, padded(bar, column_));
    }

    void add_row(const TimelineRow& row, std::size_t number) {
        std::vector<CellLine> cell = is_narrow_ ? std::vector<CellLine>{} : cell_of(row);
        if (is_narrow_) {
            const std::string name = on_one_line(row.step, column_ - gutter - 1);
            cell.push_back({std::string(mark_of(row.kind).first), name, "", Ink::plain});
        }
        for (std::size_t i = 0; i < cell.size(); ++i) {
            std::string line = start_of(row, number, i == 0);
            for (std::size_t session = 0; session < row.waiting.size(); ++session) {
                line += session == row.session ? drawn(cell[i], row) : other_columns(row, session);
            }
            add(without_end_blanks(line));
        }
        if (!is_narrow_) return;
        const std::size_t indent = number_width + 2;
        for (const CellLine& text : texts_of(row, std::max(style_.width, TextStyle::width_min) - indent)) {
            add(std::string(indent, ' ') + inked(style_, text.ink, text.text));
        }
    }

    const Scenario& scenario_;
    const std::vector<TimelineRow>& rows_;
    const TextStyle& style_;
    std::size_t column_ = 0;
    std::size_t name_width_ = 0;
    bool is_beside_ = false;
    bool is_narrow_ = false;
    std::vector<std::string> lines_;
};

}  // namespace

std::string inked(const TextStyle& style, Ink ink, std::string_view text) {
    static constexpr std::array<std::string_view, 6> codes{"", "1", "2", "32", "31;1", "33"};
    const bool is_blank = text.find_first_not_of(' ') == std::string_view::npos;
    if (!style.color || ink == Ink::plain || is_blank) return std::string(text);
    return fmt::format("\033[{}m{}\033[0m", codes.at(static_cast<std::size_t>(ink)), text);
}

std::string padded(std::string_view text, std::size_t width) {
    const std::size_t has = text_width(text);
    return std::string(text) + std::string(has < width ? width - has : 0, ' ');
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
    std::vector<std::string> lines;
    width = std::max<std::size_t>(width, 1);
    while (!text.empty()) {
        std::size_t end = bytes_of(text, width);
        if (end < text.size() && text[end] != ' ') {
            const std::size_t blank = text.rfind(' ', end);
            if (blank != std::string_view::npos && blank > 0) end = blank;
        }
        std::string_view line = text.substr(0, end);
        while (line.ends_with(' ')) line.remove_suffix(1);
        lines.emplace_back(line);
        text.remove_prefix(end);
        while (text.starts_with(' ')) text.remove_prefix(1);
    }
    return lines;
}

std::vector<std::string> timeline_lines(const Scenario& scenario, const std::vector<TimelineRow>& rows,
                                        const TextStyle& style) {
    return TimelineText(scenario, rows, style).lines();
}

}  // namespace rowlock::race
