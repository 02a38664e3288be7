#include "race/report_html.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "race/report_json.hpp"
#include "race/report_text.hpp"
#include "race/timeline.hpp"

namespace rowlock::race {

namespace {

constexpr int left = 30;
constexpr int top = 34;
constexpr int column = 164;
constexpr int row_height = 40;
constexpr int box_height = 32;
constexpr std::size_t box_characters = 22;
constexpr std::size_t small_characters = 27;

constexpr std::string_view style = R"(
:root{color-scheme:light dark;--ink:#1c2330;--soft:#5b6472;--paper:#fff;--box:#eef2f7;--line:#9aa5b4;--bad:#a3182c;--badbox:#fbe9ea;--wait:#8a5a00;--waitbox:#fff3d6;--good:#17663a}
@media(prefers-color-scheme:dark){:root{--ink:#e8ecf2;--soft:#a4aebc;--paper:#12161c;--box:#222a35;--line:#5d6877;--bad:#ff8f9b;--badbox:#3a1d22;--wait:#f0c060;--waitbox:#33290f;--good:#7fd6a2}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:70rem;padding:1rem;font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper)}
h1{font-size:1.4rem;margin:.2em 0}h2{font-size:1.15rem;margin:2em 0 .3em;border-top:2px solid var(--line);padding-top:.6em}h3{font-size:1rem;margin:1em 0 .3em}
.bad{color:var(--bad)}.good{color:var(--good)}.soft{color:var(--soft)}
.scroll{overflow-x:auto;border:1px solid var(--line);border-radius:6px;padding:.4rem}
svg{display:block}svg text{fill:var(--ink);font:600 13px system-ui,sans-serif}svg text.small{font-weight:400;font-size:11px;fill:var(--soft)}
svg .box{fill:var(--box);stroke:var(--line)}svg .fails .box{fill:var(--badbox);stroke:var(--bad);stroke-width:2}
svg .waits .box,svg .goes .box{fill:var(--waitbox);stroke:var(--wait)}svg .waits .box{stroke-dasharray:5 3}
svg .bar{fill:var(--waitbox);stroke:var(--wait);stroke-dasharray:2 3}svg .life{stroke:var(--line)}
svg g:focus .box{stroke-width:3;stroke:var(--ink)}:focus-visible{outline:2px solid var(--ink);outline-offset:2px}
code,pre,td,th{font:13px/1.45 ui-monospace,monospace}pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.3em 0}
table{border-collapse:collapse}td,th{border:1px solid var(--line);padding:.15em .5em;text-align:left}
details{margin:.5em 0}summary{cursor:pointer}
@media print{:root{color-scheme:light}.scroll{overflow:visible;border:0}h2{break-before:auto}svg{max-width:100%;height:auto}}
)";

constexpr std::string_view script = R"(
document.addEventListener('keydown',function(e){
 var at=document.activeElement;if(!at||!at.matches||!at.matches('svg g[tabindex]'))return;
 var all=Array.prototype.slice.call(at.ownerSVGElement.querySelectorAll('g[tabindex]')),i=all.indexOf(at);
 var to=e.key==='ArrowDown'?all[i+1]:e.key==='ArrowUp'?all[i-1]:null;
 if(to){e.preventDefault();to.focus();}
});
)";

std::string_view class_of(TimelineRow::Kind kind) {
    switch (kind) {
        case TimelineRow::Kind::waits:
            return "waits";
        case TimelineRow::Kind::goes_on:
            return "goes";
        case TimelineRow::Kind::fails:
            return "fails";
        case TimelineRow::Kind::deadlock_check:
            return "goes";
        case TimelineRow::Kind::step:
            break;
    }
    return "step";
}

/// The same in a word, for those who see no colour.
std::string_view mark_of(TimelineRow::Kind kind) {
    switch (kind) {
        case TimelineRow::Kind::waits:
            return " ⏸";
        case TimelineRow::Kind::goes_on:
            return " ▶";
        case TimelineRow::Kind::fails:
            return " ✗";
        case TimelineRow::Kind::deadlock_check:
            return " ▶";
        case TimelineRow::Kind::step:
            break;
    }
    return "";
}

int column_left(std::size_t session) {
    return left + static_cast<int>(session) * column;
}

std::string row_svg(const Scenario& scenario, const TimelineRow& row, std::size_t index) {
    const int y = top + static_cast<int>(index) * row_height;
    std::string svg;
    for (std::size_t session = 0; session < row.waiting.size(); ++session) {
        if (!row.waiting[session]) continue;
        svg += fmt::format("<rect class=\"bar\" x=\"{}\" y=\"{}\" width=\"14\" height=\"{}\"/>",
                           column_left(session) + column / 2 - 7, y - 4, row_height);
    }
    const int x = column_left(row.session) + 2;
    const std::string spoken =
        fmt::format("{}. {}.{}: {} {}", index + 1, scenario.sessions[row.session].name, row.step, row.sql, row.remark);
    svg += fmt::format("<text class=\"small\" x=\"2\" y=\"{}\">{}</text>", y + 20, index + 1);
    svg += fmt::format("<g class=\"{}\" tabindex=\"0\" role=\"listitem\" aria-label=\"{}\"><title>{}</title>",
                       class_of(row.kind), escaped_markup(spoken), escaped_markup(spoken));
    svg += fmt::format("<rect class=\"box\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\"/>", x, y, column - 8,
                       box_height);
    svg += fmt::format("<text x=\"{}\" y=\"{}\">{}{}</text>", x + 6, y + 14,
                       escaped_markup(on_one_line(row.step, box_characters)), mark_of(row.kind));
    const std::string& second = row.remark.empty() ? row.sql : row.remark;
    svg += fmt::format("<text class=\"small\" x=\"{}\" y=\"{}\">{}</text></g>\n", x + 6, y + 27,
                       escaped_markup(on_one_line(second, small_characters)));
    return svg;
}

std::string steps_list(const Scenario& scenario, const Execution& execution) {
    std::string list = "<details><summary>Every step with its SQL</summary><ol>";
    for (const TimelineRow& row : timeline_of(scenario, execution)) {
        list += fmt::format("<li><b>{}.{}</b>{} <code>{}</code>{}</li>",
                            escaped_markup(scenario.sessions[row.session].name), escaped_markup(row.step),
                            mark_of(row.kind), escaped_markup(row.sql),
                            row.remark.empty() ? "" : " → " + escaped_markup(row.remark));
    }
    return list + "</ol></details>";
}

std::string rows_html(const InvariantAnswer& answer) {
    std::string html = "<h3>Rows that must not be</h3><div class=\"scroll\" tabindex=\"0\"><table><tr>";
    for (const std::string& name : answer.columns) html += "<th>" + escaped_markup(name) + "</th>";
    html += "</tr>";
    for (const auto& row : answer.rows) {
        html += "<tr>";
        for (const auto& value : row) html += "<td>" + (value ? escaped_markup(*value) : "<i>NULL</i>") + "</td>";
        html += "</tr>";
    }
    return html + "</table></div>";
}

std::string finding_html(const Scenario& scenario, const Finding& finding) {
    std::string html = fmt::format("<h3 class=\"bad\">✗ {}</h3>", escaped_markup(finding.symptom.title));
    html += fmt::format("<p>{} preemption{}, {} execution{} show it.</p>", finding.preemptions,
                        finding.preemptions == 1 ? "" : "s", finding.count, finding.count == 1 ? "" : "s");
    html += "<div class=\"scroll\" tabindex=\"0\" aria-label=\"timeline\">" +
            timeline_svg(scenario, finding.execution) + "</div>" + steps_list(scenario, finding.execution);
    if (finding.symptom.answer) html += rows_html(*finding.symptom.answer);
    if (finding.nearest_good) {
        html += fmt::format("<p>What matters: <b>{}</b>. This one is fine:</p><pre>{}</pre>",
                            escaped_markup(order_text(scenario, finding)),
                            escaped_markup(schedule_text(scenario, *finding.nearest_good)));
    }
    return html;
}

std::string scenario_html(const Scenario& scenario) {
    std::string html = "<details><summary>The scenario</summary>";
    for (const std::string& setup : scenario.setups) html += "<pre>" + escaped_markup(setup) + "</pre>";
    for (const SessionScript& session : scenario.sessions) {
        html += "<h3>" + escaped_markup(session.name) + "</h3><ol>";
        for (const Step& step : session.steps) {
            html += fmt::format("<li><b>{}</b><pre>{}</pre></li>", escaped_markup(step.name), escaped_markup(step.sql));
        }
        html += "</ol>";
    }
    for (const Invariant& invariant : scenario.invariants) {
        html += fmt::format("<p>Must return no row: <b>{}</b></p><pre>{}</pre>", escaped_markup(invariant.name),
                            escaped_markup(invariant.sql));
    }
    return html + "</details>";
}

}  // namespace

std::string timeline_svg(const Scenario& scenario, const Execution& execution) {
    const std::vector<TimelineRow> rows = timeline_of(scenario, execution);
    const int width = left + static_cast<int>(scenario.sessions.size()) * column + 4;
    const int height = top + static_cast<int>(rows.size()) * row_height + 4;
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\""
        " viewBox=\"0 0 {0} {1}\" role=\"list\" aria-label=\"timeline\">\n",
        width, height);
    for (std::size_t session = 0; session < scenario.sessions.size(); ++session) {
        const int middle = column_left(session) + column / 2;
        svg += fmt::format("<line class=\"life\" x1=\"{0}\" y1=\"24\" x2=\"{0}\" y2=\"{1}\"/>", middle, height);
        svg += fmt::format("<text x=\"{}\" y=\"16\" text-anchor=\"middle\">{}</text>\n", middle,
                           escaped_markup(on_one_line(scenario.sessions[session].name, box_characters)));
    }
    for (std::size_t i = 0; i < rows.size(); ++i) svg += row_svg(scenario, rows[i], i);
    return svg + "</svg>";
}

HtmlSection html_section(const Scenario& scenario, const CheckResult& result) {
    HtmlSection section{
        result.scenario + (result.isolation.empty() ? "" : ", " + result.isolation), {}, !result.findings.empty()};
    const bool clean = result.exit_code() == 0;
    section.body = fmt::format("<p class=\"{}\"><b>{}</b> {}</p>",
                               clean         ? "good"
                               : section.bad ? "bad"
                                             : "soft",
                               clean         ? "✓ clean"
                               : section.bad ? "✗ race"
                                             : "? open",
                               escaped_markup(verdict_line(result)));
    if (result.broken > 0) section.body += fmt::format("<p>{} of them broken.</p>", result.broken);
    for (const Finding& finding : result.findings) section.body += finding_html(scenario, finding);
    section.body += scenario_html(scenario);
    return section;
}

std::string report_html(const std::vector<HtmlSection>& sections) {
    std::string html =
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
        "<link rel=\"icon\" href=\"data:,\"><title>rowlock race</title><style>";
    html += style;
    html += "</style></head><body>\n<main><h1>rowlock race</h1>\n";
    const auto bad = std::ranges::count_if(sections, [](const HtmlSection& section) { return section.bad; });
    html += fmt::format("<p class=\"soft\">{} scenario{}, {} with a race. Arrow keys walk along a timeline.</p>\n",
                        sections.size(), sections.size() == 1 ? "" : "s", bad);
    for (const HtmlSection& section : sections) {
        html += fmt::format("<section><h2>{}</h2>{}</section>\n", escaped_markup(section.title), section.body);
    }
    html += "</main><script>";
    html += script;
    return html + "</script></body></html>\n";
}

std::string report_dot(const Scenario& scenario, const CheckResult& result) {
    std::string dot = "digraph waits {\n  rankdir=LR;\n  node [shape=box];\n";
    const auto quoted = [](std::string_view text) {
        std::string name = "\"";
        for (const char c : text) {
            if (c == '"' || c == '\\') name += '\\';
            name += c;
        }
        return name + "\"";
    };
    for (const SessionScript& session : scenario.sessions) dot += "  " + quoted(session.name) + ";\n";
    if (!result.findings.empty()) {
        for (const Event& event : result.findings.front().execution.events) {
            for (const StepReport& report : event.reports) {
                for (const std::size_t holder : report.blocked_by) {
                    dot += fmt::format("  {} -> {} [label={}];\n", quoted(scenario.sessions[report.session].name),
                                       quoted(scenario.sessions[holder].name),
                                       quoted(scenario.sessions[report.session].steps[report.step].name));
                }
            }
        }
    }
    return dot + "}\n";
}

}  // namespace rowlock::race
