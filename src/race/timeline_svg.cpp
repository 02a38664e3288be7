#include "race/timeline_svg.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "race/report_json.hpp"

namespace rowlock::race {

namespace {

constexpr int pitch = 46;
constexpr int lane_height = 44;
constexpr int lanes_top = 26;
constexpr int radius = 13;
constexpr int letter_width = 8;
constexpr std::size_t name_characters = 22;
constexpr std::size_t step_characters = 7;

/// Colours are those of the page where there is one; "currentColor" and a few fixed ones that can be read on light and
/// dark paper where the picture is alone.
constexpr std::string_view svg_style =
    "text{font:600 12px system-ui,sans-serif;fill:currentColor}.s{font-weight:400;font-size:10.5px}"
    ".l{stroke:currentColor;opacity:.25;stroke-width:2}.w{fill:#c98a00;fill-opacity:.18;stroke:#b07800;"
    "stroke-dasharray:4 3}.d{fill:#3b73d9;fill-opacity:.16;stroke:#3b73d9;stroke-width:2}"
    ".waits .d,.goes .d{fill:#c98a00;fill-opacity:.22;stroke:#b07800}.waits .d{stroke-dasharray:4 3}"
    ".fails .d{fill:#d1324a;fill-opacity:.2;stroke:#d1324a;stroke-width:3}"
    ".m{fill:none;stroke:#d1324a;stroke-width:2.5}.h{fill:#d1324a}";

class TimelineSvg {
  public:
    TimelineSvg(const Scenario& scenario, const std::vector<TimelineRow>& rows, std::string_view link_prefix)
        : scenario_(scenario), rows_(rows), link_prefix_(link_prefix) {
        std::size_t longest = 4;
        for (const SessionScript& session : scenario.sessions) {
            longest = std::max(longest, std::min(text_width(session.name), name_characters + 1));
        }
        left_ = static_cast<int>(longest) * letter_width + 24;
    }

    std::string draw() {
        const int width = left_ + static_cast<int>(rows_.size()) * pitch + 8;
        const int height = lanes_top + static_cast<int>(scenario_.sessions.size()) * lane_height + 8;
        std::string svg = fmt::format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
            "role=\"img\" "
            "aria-label=\"timeline: a lane for each session, time to the right\"><style>{2}</style>\n",
            width, height, svg_style);
        for (std::size_t session = 0; session < scenario_.sessions.size(); ++session) {
            svg += fmt::format(
                "<text x=\"2\" y=\"{}\">{}</text><line class=\"l\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n",
                y_of(session) + 4, escaped_markup(on_one_line(scenario_.sessions[session].name, name_characters)),
                left_ - 6, y_of(session), width - 4, y_of(session));
        }
        svg += waits();
        for (std::size_t i = 0; i < rows_.size(); ++i) svg += dot(i);
        return svg + order() + "</svg>\n";
    }

  private:
    [[nodiscard]] int x_of(std::size_t row) const { return left_ + static_cast<int>(row) * pitch + pitch / 2; }
    [[nodiscard]] static int y_of(std::size_t session) {
        return lanes_top + static_cast<int>(session) * lane_height + lane_height / 2;
    }

    [[nodiscard]] std::string waits() const {
        std::string svg;
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            for (std::size_t session = 0; session < rows_[i].waiting.size(); ++session) {
                if (!rows_[i].waiting[session]) continue;
                svg += fmt::format("<rect class=\"w\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"10\"/>\n",
                                   x_of(i) - pitch / 2, y_of(session) - 5, pitch);
            }
        }
        return svg;
    }

    [[nodiscard]] std::string dot(std::size_t i) const {
        const TimelineRow& row = rows_[i];
        const int x = x_of(i);
        const int y = y_of(row.session);
        const std::string spoken = escaped_markup(
            fmt::format("{}. {}.{} {}", i + 1, scenario_.sessions[row.session].name, row.step, row.remark));
        std::string svg = link_prefix_.empty() ? "<g" : fmt::format("<a href=\"#{}{}\"", link_prefix_, i + 1);
        svg += fmt::format(" class=\"{}\"><title>{}</title><circle class=\"d\" cx=\"{}\" cy=\"{}\" r=\"{}\"/>",
                           row_class(row.kind), spoken, x, y, radius);
        svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>", x, y + 4, i + 1);
        svg += fmt::format("<text class=\"s\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>", x, y + radius + 11,
                           escaped_markup(on_one_line(row.step, step_characters)));
        return svg + (link_prefix_.empty() ? "</g>\n" : "</a>\n");
    }

    /// From the event that came first to the one that should have.
    [[nodiscard]] std::string order() const {
        std::vector<std::size_t> pair;
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            if (rows_[i].matters) pair.push_back(i);
        }
        if (pair.size() != 2) return {};
        std::string svg;
        for (const std::size_t i : pair) {
            svg += fmt::format("<circle class=\"m\" cx=\"{}\" cy=\"{}\" r=\"{}\"/>", x_of(i), y_of(rows_[i].session),
                               radius + 3);
        }
        const int from_x = x_of(pair[0]);
        const int to_x = x_of(pair[1]);
        const int from_y = y_of(rows_[pair[0]].session) - radius - 4;
        const int to_y = y_of(rows_[pair[1]].session) - radius - 4;
        const int peak = std::max(2, std::min(from_y, to_y) - 22);
        svg += fmt::format("<path class=\"m\" d=\"M{} {} C{} {},{} {},{} {}\"/>", from_x, from_y, from_x, peak, to_x,
                           peak, to_x, to_y - 4);
        return svg + fmt::format("<path class=\"h\" d=\"M{} {}l-5 -8h10z\"/>\n", to_x, to_y);
    }

    const Scenario& scenario_;
    const std::vector<TimelineRow>& rows_;
    std::string_view link_prefix_;
    int left_ = 0;
};

}  // namespace

std::string timeline_svg(const Scenario& scenario, const std::vector<TimelineRow>& rows, std::string_view link_prefix) {
    return TimelineSvg(scenario, rows, link_prefix).draw();
}

}  // namespace rowlock::race
