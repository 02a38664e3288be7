#include "race/report_json.hpp"

#include <fmt/format.h>

#include "json/json.hpp"
#include "race/report_text.hpp"
#include "race/timeline.hpp"

namespace rowlock::race {

namespace {

std::string array_of(const std::vector<std::string>& elements) {
    return fmt::format("[{}]", fmt::join(elements, ","));
}

std::string value_json(const std::optional<std::string>& value) {
    return value ? quote_json(*value) : "null";
}

std::string row_json(const std::vector<std::optional<std::string>>& row) {
    std::vector<std::string> values;
    for (const auto& value : row) values.push_back(value_json(value));
    return array_of(values);
}

std::string answer_json(const InvariantAnswer& answer) {
    std::vector<std::string> columns;
    for (const std::string& column : answer.columns) columns.push_back(quote_json(column));
    std::vector<std::string> rows;
    for (const auto& row : answer.rows) rows.push_back(row_json(row));
    return fmt::format(R"({{"columns":{},"rows":{}}})", array_of(columns), array_of(rows));
}

std::string_view kind_name(TimelineRow::Kind kind) {
    switch (kind) {
        case TimelineRow::Kind::step:
            return "step";
        case TimelineRow::Kind::waits:
            return "waits";
        case TimelineRow::Kind::goes_on:
            return "goes on";
        case TimelineRow::Kind::fails:
            return "fails";
        case TimelineRow::Kind::deadlock_check:
            return "deadlock check";
    }
    return "";
}

std::string_view kind_name(Symptom::Kind kind) {
    switch (kind) {
        case Symptom::Kind::invariant:
            return "invariant";
        case Symptom::Kind::stuck:
            return "stuck";
        case Symptom::Kind::deadlock:
            return "deadlock";
        case Symptom::Kind::not_serial:
            return "not serial";
    }
    return "";
}

std::string timeline_json(const Scenario& scenario, const Finding& finding) {
    std::vector<std::string> rows;
    for (const TimelineRow& row : timeline_of(scenario, finding)) {
        std::vector<std::string> locks;
        for (const std::string& lock : row.locks) locks.push_back(quote_json(lock));
        rows.push_back(
            fmt::format(R"({{"event":{},"session":{},"step":{},"kind":"{}","sql":{},"remark":{},"locks":{}}})",
                        row.event, quote_json(scenario.sessions[row.session].name), quote_json(row.step),
                        kind_name(row.kind), quote_json(row.sql), quote_json(row.remark), array_of(locks)));
    }
    return array_of(rows);
}

std::string finding_json(const Scenario& scenario, const Finding& finding) {
    std::string json = fmt::format(R"({{"kind":"{}","title":{},"executions":{},"preemptions":{},"in_serial_order":{})",
                                   kind_name(finding.symptom.kind), quote_json(finding.symptom.title), finding.count,
                                   finding.preemptions, finding.in_serial_order);
    json += fmt::format(R"(,"schedule":{},"timeline":{})", quote_json(schedule_text(scenario, finding.execution)),
                        timeline_json(scenario, finding));
    if (finding.symptom.answer) json += ",\"violation\":" + answer_json(*finding.symptom.answer);
    if (finding.nearest_good) {
        json += fmt::format(R"(,"nearest_good":{},"order_that_matters":{})",
                            quote_json(schedule_text(scenario, *finding.nearest_good)),
                            quote_json(order_text(scenario, finding)));
    }
    return json + "}";
}

std::string case_xml(std::string_view suite, std::string_view name, const std::string& failure) {
    const std::string open =
        fmt::format("    <testcase classname=\"{}\" name=\"{}\"", escaped_markup(suite), escaped_markup(name));
    return failure.empty() ? open + "/>\n" : open + ">" + failure + "</testcase>\n";
}

std::string failure_xml(const Scenario& scenario, const Finding& finding) {
    std::string text;
    for (const std::string& line : timeline_lines(scenario, timeline_of(scenario, finding), {})) text += line + "\n";
    return fmt::format("<failure message=\"{}\">{}</failure>",
                       escaped_markup(schedule_text(scenario, finding.execution)), escaped_markup(text));
}

}  // namespace

std::string escaped_markup(std::string_view text) {
    std::string escaped;
    for (const char c : text) {
        switch (c) {
            case '&':
                escaped += "&amp;";
                break;
            case '<':
                escaped += "&lt;";
                break;
            case '>':
                escaped += "&gt;";
                break;
            case '"':
                escaped += "&quot;";
                break;
            default:
                // XML 1.0 has no way to write most control characters.
                escaped += static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' ? '?' : c;
        }
    }
    return escaped;
}

std::string report_json(const Scenario& scenario, const CheckResult& result) {
    std::vector<std::string> findings;
    for (const Finding& finding : result.findings) findings.push_back(finding_json(scenario, finding));
    const ExplorationSummary& summary = result.summary;
    std::vector<std::string> refusals;
    for (const auto& [refusal, count] : result.refusals)
        refusals.push_back(fmt::format("{}:{}", quote_json(refusal), count));
    return fmt::format(
        R"({{"scenario":{},"isolation":{},"verdict":"{}","exit_code":{},"exhausted":{},"traces":{},"broken":{},)"
        R"("interleavings":{},"serial_orders":{},"symmetry":{},"unreadable":{},"oracle":{},"said":{},"refusals":{{{}}},"findings":{}}})",
        quote_json(result.scenario), quote_json(result.isolation),
        result.findings.empty() ? (result.exit_code() == 0 ? "clean" : "open") : "race", result.exit_code(),
        summary.exhausted, summary.executions, result.broken, quote_json(result.interleavings), result.serial_orders,
        summary.used_symmetry, result.unreadable, quote_json(result.oracle), quote_json(verdict_line(result)),
        fmt::join(refusals, ","), array_of(findings));
}

std::string report_junit(const Scenario& scenario, const CheckResult& result) {
    std::string cases;
    std::size_t count = 1;
    std::size_t failures = 0;
    for (const Invariant& invariant : scenario.invariants) {
        std::string failure;
        for (const Finding& finding : result.findings) {
            const bool is_own =
                finding.symptom.title == invariant.name || finding.symptom.title == invariant.name + " (on the way)";
            if (is_own && finding.symptom.kind == Symptom::Kind::invariant) failure = failure_xml(scenario, finding);
        }
        failures += failure.empty() ? 0U : 1U;
        ++count;
        cases += case_xml(scenario.name, invariant.name, failure);
    }
    for (const Finding& finding : result.findings) {
        if (finding.symptom.kind == Symptom::Kind::invariant) continue;
        ++failures;
        ++count;
        cases += case_xml(scenario.name, finding.symptom.title, failure_xml(scenario, finding));
    }
    const std::string said = verdict_line(result);
    const bool is_whole = result.summary.exhausted && result.unreadable == 0;
    const std::string skipped = is_whole ? "" : fmt::format("<skipped message=\"{}\"/>", escaped_markup(said));
    cases += case_xml(scenario.name, said, skipped);
    return fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n{}  </testsuite>\n",
                       escaped_markup(scenario.name), count, failures, is_whole ? 0 : 1, cases);
}

}  // namespace rowlock::race
