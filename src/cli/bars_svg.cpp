#include "cli/bars_svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "cli/contest.hpp"
#include "cli/output.hpp"
#include "json/json.hpp"
#include "race/report_json.hpp"

namespace rowlock::cli {

namespace {

constexpr int chart_width = 880;
constexpr int row_height = 26;
constexpr int rows_top = 58;
constexpr int bars_left = 430;
constexpr int limit_width = 150;  ///< As long is what just meets its limit.
constexpr double parts_shown = 2.0;
constexpr int figures_left = bars_left + 2 * limit_width + 12;

/// An <img> has no page to take its colours from.
constexpr std::string_view chart_style =
    "svg{color:#1f2328;font:13px system-ui,sans-serif}text{fill:currentColor}.t{font-weight:600;font-size:15px}"
    ".f{font-size:12px;opacity:.75}.met{fill:#3b73d9}.missed{fill:#c98a00}.l{stroke:currentColor;stroke-width:1.5;"
    "stroke-dasharray:4 3}@media(prefers-color-scheme:dark){svg{color:#e6edf3}.met{fill:#6b9bf2}}";

class Members {
  public:
    explicit Members(const std::vector<JsonMember>& members) {
        for (const JsonMember& member : members) members_[member.name] = &member;
    }
    [[nodiscard]] std::optional<double> number(const std::string& name) const {
        const auto found = members_.find(name);
        if (found == members_.end() || found->second->kind != JsonKind::number) return std::nullopt;
        const std::string_view raw = found->second->raw;
        double value = 0;
        const auto [end, error] = std::from_chars(raw.data(), raw.data() + raw.size(), value);
        if (error != std::errc()) return std::nullopt;
        return value;
    }
    [[nodiscard]] bool yes(const std::string& name) const {
        const auto found = members_.find(name);
        return found != members_.end() && found->second->raw == "true";
    }

  private:
    std::map<std::string, const JsonMember*> members_;
};

/// How much of its limit a figure is: 1 just meets it, more is better.
double parts_of_limit(const Bar& bar) {
    if (bar.at_most) return bar.value > 0 ? bar.limit / bar.value : parts_shown;
    return bar.limit > 0 ? bar.value / bar.limit : parts_shown;
}

std::string figures_of(const Bar& bar) {
    return fmt::format("{} ({} {})", bar_figure(bar.value), bar.at_most ? "≤" : "≥", bar_figure(bar.limit));
}

}  // namespace

std::string read_report_line(std::string_view line, BenchReport& report) {
    const JsonMembers parsed = parse_object(line);
    if (const auto* error = std::get_if<JsonError>(&parsed)) {
        return fmt::format("byte {}: {}", error->offset + 1, error->reason);
    }
    const auto& list = std::get<std::vector<JsonMember>>(parsed);
    if (list.empty()) return {};
    const Members members(list);
    if (list.front().name == "bar") {
        const auto value = members.number("value");
        const auto limit = members.number("limit");
        if (!value || !limit || list.front().kind != JsonKind::string) {
            return "a bar has a text, a value and a limit";
        }
        report.bars.push_back({list.front().text, *value, *limit, members.yes("at_most")});
    } else if (list.front().name == "flush_microseconds") {
        report.flushes.push_back(members.number("flush_microseconds").value_or(0));
        report.loads.push_back(members.number("load").value_or(0));
        report.cores = std::llround(members.number("cores").value_or(0));
    }
    return {};
}

std::string machine_text(const BenchReport& report) {
    if (report.flushes.empty()) return "The machine's flush was not measured.";
    const auto [least, most] = std::ranges::minmax(report.loads);
    return fmt::format("{:.0f} µs a flush (median of the benchmarks), {} cores, load {:.1f} to {:.1f}",
                       median(report.flushes), report.cores, least, most);
}

std::string bars_svg(const BenchReport& report) {
    const int rows = static_cast<int>(report.bars.size());
    const int height = rows_top + rows * row_height + 40;
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\" "
        "aria-label=\"what each benchmark reached, in parts of the bar set for it\"><style>{2}</style>\n"
        "<text class=\"t\" x=\"8\" y=\"24\">What each benchmark reached, and the bar set for it</text>\n"
        "<text class=\"f\" x=\"{3}\" y=\"46\" text-anchor=\"middle\">the bar</text>\n",
        chart_width, height, chart_style, bars_left + limit_width);
    for (int i = 0; i < rows; ++i) {
        const Bar& bar = report.bars[static_cast<std::size_t>(i)];
        const double parts = parts_of_limit(bar);
        const int y = rows_top + i * row_height;
        svg += fmt::format(
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text><rect class=\"{}\" x=\"{}\" y=\"{}\" "
            "width=\"{:.0f}\" "
            "height=\"16\"/><text x=\"{}\" y=\"{}\">{}{}</text>\n",
            bars_left - 8, y + 17, race::escaped_markup(bar.what), bar.met() ? "met" : "missed", bars_left, y + 5,
            std::min(parts, parts_shown) * limit_width, figures_left, y + 17, figures_of(bar),
            bar.met() ? "" : " missed");
    }
    svg += fmt::format("<line class=\"l\" x1=\"{0}\" y1=\"52\" x2=\"{0}\" y2=\"{1}\"/>\n", bars_left + limit_width,
                       rows_top + rows * row_height);
    svg +=
        fmt::format("<text class=\"f\" x=\"8\" y=\"{}\">{}. A bar twice as long as its limit may be longer.</text>\n",
                    height - 14, machine_text(report));
    return svg + "</svg>";
}

std::vector<std::string> bars_table(const BenchReport& report) {
    std::vector<std::string> lines{"| what | reached | bar | |", "| --- | --: | --: | --- |"};
    for (const Bar& bar : report.bars) {
        lines.push_back(fmt::format("| {} | {} | {} {} | {} |", bar.what, bar_figure(bar.value),
                                    bar.at_most ? "≤" : "≥", bar_figure(bar.limit), bar.met() ? "met" : "**missed**"));
    }
    lines.push_back("");
    lines.push_back(machine_text(report));
    return lines;
}

}  // namespace rowlock::cli
