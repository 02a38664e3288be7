#include "race/report_html.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.hpp"
#include "race/report_html_assets.hpp"
#include "race/report_json.hpp"
#include "race/report_text.hpp"
#include "race/timeline.hpp"
#include "race/timeline_svg.hpp"

namespace rowlock::race {

namespace {

constexpr std::size_t hues = 4;

/// The same in a word, for those who see no colour.
std::string_view word_of(TimelineRow::Kind kind) {
    switch (kind) {
        case TimelineRow::Kind::waits:
            return "‖ waits";
        case TimelineRow::Kind::goes_on:
        case TimelineRow::Kind::deadlock_check:
            return "▶ goes on";
        case TimelineRow::Kind::fails:
            return "✗ fails";
        case TimelineRow::Kind::step:
            break;
    }
    return "";
}

std::string hue(std::size_t session) {
    return fmt::format("hue{}", session % hues);
}

/// Who holds what after an event.
std::string held_html(const Scenario& scenario, const Event& event) {
    std::string html;
    for (std::size_t session = 0; session < scenario.sessions.size(); ++session) {
        const std::vector<std::string> locks = held_locks_text(event, session);
        if (locks.empty()) continue;
        html += fmt::format("<li><b>{}</b> holds {}</li>", escaped_markup(scenario.sessions[session].name),
                            escaped_markup(fmt::format("{}", fmt::join(locks, "; "))));
    }
    return html.empty() ? "<p class=\"soft\">No session holds a lock.</p>" : "<ul>" + html + "</ul>";
}

class FindingHtml {
  public:
    FindingHtml(const Scenario& scenario, const CheckResult& result, const Finding& finding, std::string id)
        : scenario_(scenario),
          result_(result),
          finding_(finding),
          id_(std::move(id)),
          rows_(timeline_of(scenario, finding)) {}

    std::string str() const {
        std::string html =
            fmt::format("<h3 class=\"bad\">✗ {}</h3><p class=\"soft\">{}</p>",
                        escaped_markup(headline(finding_.symptom)), escaped_markup(extent_text(finding_, result_)));
        html += "<div class=\"overview\">" + timeline_svg(scenario_, rows_, id_) + "</div>\n";
        html += timeline() + violation() + way_out();
        return html;
    }

  private:
    std::string timeline() const {
        std::string html = fmt::format("<div class=\"scroll\"><div class=\"time\" style=\"--sessions:{}\">",
                                       scenario_.sessions.size());
        for (std::size_t session = 0; session < scenario_.sessions.size(); ++session) {
            html += fmt::format("<div class=\"lane {}\">{}</div>", hue(session),
                                escaped_markup(scenario_.sessions[session].name));
        }
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            for (std::size_t session = 0; session < scenario_.sessions.size(); ++session) {
                if (session == rows_[i].session) {
                    html += "<div class=\"cell\">" + card(i) + "</div>";
                } else {
                    html += rows_[i].waiting[session] ? "<div class=\"gap held\" title=\"waits\"></div>"
                                                      : "<div class=\"gap\"></div>";
                }
            }
            html += '\n';
        }
        return html + "</div></div>";
    }

    std::string card(std::size_t i) const {
        const TimelineRow& row = rows_[i];
        const std::string& session = scenario_.sessions[row.session].name;
        const std::string remark = escaped_markup(row.remark);
        const std::string spoken =
            escaped_markup(fmt::format("step {}, {}, {} {}", i + 1, session, row.step, row.remark));
        std::string html = fmt::format(
            "<div class=\"step {} {}{}\" id=\"{}{}\" role=\"group\" aria-label=\"{}\"><div class=\"name\"><span "
            "class=\"no\">{}</span><span>{}</span>{}<span class=\"what\">{}</span></div>",
            row_class(row.kind), hue(row.session), row.matters ? " matters" : "", id_, i + 1, spoken, i + 1,
            escaped_markup(row.step), row.matters ? "<span class=\"dot\" title=\"its order matters\">●</span>" : "",
            word_of(row.kind));
        const bool has_sql = !row.sql.empty() && tells_more_than_name(row);
        if (has_sql) html += "<div class=\"sql\">" + escaped_markup(row.sql) + "</div>";
        if (!row.remark.empty()) html += "<div class=\"said\">→ " + remark + "</div>";
        if (!row.locks.empty()) {
            html += "<ul class=\"locks\">";
            for (const std::string& lock : row.locks) html += "<li>" + escaped_markup(lock) + "</li>";
            html += "</ul>";
        }
        html += fmt::format("<div class=\"after\"><div><b>{}. {}.{}</b>{}</div>{}</div></div>", i + 1,
                            escaped_markup(session), escaped_markup(row.step), remark.empty() ? "" : " → " + remark,
                            held_html(scenario_, finding_.execution.events[row.event]));
        return html;
    }

    std::string violation() const {
        if (!finding_.symptom.answer) return {};
        const InvariantAnswer& answer = *finding_.symptom.answer;
        std::string html = "<h4>Rows that must not be there</h4><div class=\"scroll\"><table><tr>";
        for (const std::string& name : answer.columns) html += "<th>" + escaped_markup(name) + "</th>";
        html += "</tr>";
        for (const auto& row : answer.rows) {
            html += "<tr>";
            for (const auto& value : row) html += "<td>" + (value ? escaped_markup(*value) : "<i>NULL</i>") + "</td>";
            html += "</tr>";
        }
        return html + "</table></div>";
    }

    std::string way_out() const {
        if (!finding_.nearest_good) return {};
        const std::string order = order_text(scenario_, finding_);
        std::string html;
        if (!order.empty()) {
            html += fmt::format("<h4><span class=\"bad\">●</span> What matters: {}</h4>", escaped_markup(order));
        }
        html += "<p>The nearest schedule that holds:</p><ol class=\"order\">";
        for (const Event& event : finding_.nearest_good->events) {
            html += fmt::format("<li class=\"{}{}\">{}</li>", hue(event.move.session), matters(event) ? " matters" : "",
                                escaped_markup(step_label(scenario_, event.move.session, event.move.step)));
        }
        return html + "</ol>";
    }

    bool matters(const Event& event) const {
        if (!finding_.order_that_matters) return false;
        const auto is = [&](std::size_t index) {
            const Move& move = finding_.execution.events[index].move;
            return move.session == event.move.session && move.step == event.move.step && move.kind == event.move.kind;
        };
        return is(finding_.order_that_matters->first) || is(finding_.order_that_matters->second);
    }

    const Scenario& scenario_;
    const CheckResult& result_;
    const Finding& finding_;
    std::string id_;
    std::vector<TimelineRow> rows_;
};

std::string scenario_html(const Scenario& scenario) {
    std::string html = "<details><summary>The scenario</summary>";
    for (const std::string& setup : scenario.setups) html += "<pre>" + escaped_markup(setup) + "</pre>";
    for (const SessionScript& session : scenario.sessions) {
        html += "<h4>" + escaped_markup(session.name) + "</h4><ol>";
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

std::string dot_name(std::string_view text) {
    std::string name = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') name += '\\';
        name += c;
    }
    return name + "\"";
}

}  // namespace

HtmlSection html_section(const Scenario& scenario, const CheckResult& result) {
    HtmlSection section{
        result.scenario + (result.isolation.empty() ? "" : ", " + result.isolation), {}, {}, !result.findings.empty()};
    const int code = result.exit_code();
    section.mark = code == 0 ? "✓" : code == 1 ? "✗" : "?";
    const std::string_view word = verdict_word(scenario, result);
    const std::string_view look = code == 0 ? "good" : code == 1 ? "bad" : "open";
    section.body = fmt::format(
        "<div class=\"head is-{}\"><h2>{}</h2><p class=\"verdict {}\">{} {}</p><p class=\"soft\">{}</p></div>\n", look,
        escaped_markup(section.title), look, section.mark, word, escaped_markup(verdict_line(result)));
    for (std::size_t i = 0; i < result.findings.size(); ++i) {
        const std::string id = fmt::format("f{:x}-{}-", fnv1a_64(section.title) & 0xFFFFFFU, i + 1);
        section.body += FindingHtml(scenario, result, result.findings[i], id).str();
    }
    section.body += scenario_html(scenario);
    return section;
}

std::string report_html(const std::vector<HtmlSection>& sections) {
    std::string html =
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
        "<link rel=\"icon\" href=\"data:,\"><title>rowlock race</title><style>";
    html += report_style;
    html += "</style></head><body>\n<main>\n";
    const auto bad = std::ranges::count_if(sections, [](const HtmlSection& section) { return section.bad; });
    html += fmt::format("<h1>rowlock race: {} scenario{}, {} with a race</h1>\n", sections.size(),
                        sections.size() == 1 ? "" : "s", bad);
    if (sections.size() > 1) {
        html += "<nav aria-label=\"scenarios\"><ul>";
        for (std::size_t i = 0; i < sections.size(); ++i) {
            html += fmt::format("<li><a href=\"#s{}\">{} {}</a></li>", i + 1, sections[i].mark,
                                escaped_markup(sections[i].title));
        }
        html += "</ul></nav>\n";
    }
    for (std::size_t i = 0; i < sections.size(); ++i) {
        html += fmt::format("<section id=\"s{}\">{}</section>\n", i + 1, sections[i].body);
    }
    html +=
        "</main><aside class=\"panel\" id=\"panel\" aria-live=\"polite\" hidden><div class=\"in\">"
        "<button id=\"previous\" type=\"button\" title=\"arrow up\">‹ previous</button>"
        "<button id=\"next\" type=\"button\" title=\"arrow down\">next ›</button><div class=\"now\" id=\"now\"></div>"
        "</div></aside><script>";
    html += report_script;
    return html + "</script></body></html>\n";
}

std::string report_dot(const Scenario& scenario, const CheckResult& result) {
    std::string dot = "digraph waits {\n  rankdir=LR;\n  node [shape=box];\n";
    for (const SessionScript& session : scenario.sessions) dot += "  " + dot_name(session.name) + ";\n";
    const auto add_waits = [&](const StepReport& report) {
        const SessionScript& waiter = scenario.sessions[report.session];
        for (const std::size_t holder : report.blocked_by) {
            dot += fmt::format("  {} -> {} [label={}];\n", dot_name(waiter.name),
                               dot_name(scenario.sessions[holder].name), dot_name(waiter.steps[report.step].name));
        }
    };
    if (!result.findings.empty()) {
        for (const Event& event : result.findings.front().execution.events) {
            std::ranges::for_each(event.reports, add_waits);
        }
    }
    return dot + "}\n";
}

}  // namespace rowlock::race
