#include "race/report_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "race/timeline.hpp"

namespace rowlock::race {

namespace {

constexpr std::size_t column_min = 14;
constexpr std::size_t shown_rows_max = 10;

std::string padded(const std::string& text, std::size_t width) {
    const std::size_t has = text_width(text);
    return has < width ? text + std::string(width - has, ' ') : text;
}

std::string cell_of(const TimelineRow& row) {
    switch (row.kind) {
        case TimelineRow::Kind::waits:
            return "┌ " + row.step;
        case TimelineRow::Kind::goes_on:
            return "└ " + row.step;
        case TimelineRow::Kind::fails:
            return "✗ " + row.step;
        case TimelineRow::Kind::deadlock_check:
            return "└ " + row.step;
        case TimelineRow::Kind::step:
            break;
    }
    return "  " + row.step;
}

std::vector<std::string> rows_table(const InvariantAnswer& answer, std::size_t width) {
    std::vector<std::string> lines;
    std::string head = "    ";
    for (const std::string& column : answer.columns) head += column + "  ";
    lines.push_back(on_one_line(head, width));
    lines.back().insert(0, "    ");
    for (std::size_t i = 0; i < answer.rows.size() && i < shown_rows_max; ++i) {
        std::string line;
        for (const auto& value : answer.rows[i]) line += value.value_or("NULL") + "  ";
        lines.push_back("    " + on_one_line(line, width - 4));
    }
    if (answer.rows.size() > shown_rows_max) lines.push_back(fmt::format("    … {} rows", answer.rows.size()));
    return lines;
}

std::string title_of(const Finding& finding) {
    switch (finding.kind) {
        case Finding::Kind::invariant:
            return fmt::format("RACE: the invariant \"{}\" is broken", finding.title);
        case Finding::Kind::stuck:
            return fmt::format("STUCK: {}", finding.title);
        case Finding::Kind::deadlock:
            return "DEADLOCK, and the victim does not run its transaction again";
        case Finding::Kind::not_serial:
            return fmt::format("RACE: {}", finding.title);
    }
    return {};
}

void add_finding(const Scenario& scenario, const Finding& finding, std::size_t width, std::vector<std::string>& lines) {
    lines.push_back(title_of(finding));
    if (finding.in_serial_order) {
        lines.emplace_back("  It happens without any concurrency too: one session after the other is enough.");
    }
    lines.push_back(fmt::format("  {} preemption{}: {}", finding.preemptions, finding.preemptions == 1 ? "" : "s",
                                schedule_text(scenario, finding.execution)));
    lines.emplace_back();
    for (std::string& line : timeline_lines(scenario, finding.execution, width)) lines.push_back(std::move(line));
    if (finding.answer) {
        lines.emplace_back();
        lines.emplace_back("  Rows that must not be:");
        for (std::string& line : rows_table(*finding.answer, width)) lines.push_back(std::move(line));
    }
    if (finding.nearest_good) {
        lines.emplace_back();
        lines.push_back(fmt::format("  What matters: {}. This one is fine:", finding.order_that_matters));
        lines.push_back("    " + schedule_text(scenario, *finding.nearest_good));
    }
    lines.emplace_back();
}

}  // namespace

std::vector<std::string> timeline_lines(const Scenario& scenario, const Execution& execution, std::size_t width) {
    const std::vector<TimelineRow> rows = timeline_of(scenario, execution);
    std::size_t column = column_min;
    for (const TimelineRow& row : rows) column = std::max(column, text_width(cell_of(row)) + 2);
    for (const SessionScript& session : scenario.sessions) column = std::max(column, text_width(session.name) + 4);
    std::vector<std::string> lines;
    std::string head = "      ";
    for (const SessionScript& session : scenario.sessions) head += padded("  " + session.name, column);
    lines.push_back(head);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const TimelineRow& row = rows[i];
        std::string line = fmt::format("  {:>2}  ", i + 1);
        for (std::size_t session = 0; session < scenario.sessions.size(); ++session) {
            std::string cell = row.waiting[session] ? "│" : "";
            if (session == row.session) cell = cell_of(row);
            line += padded(cell, column);
        }
        const std::size_t left = width > text_width(line) + 10 ? width - text_width(line) : 10;
        const std::string said = row.remark.empty() ? row.sql : row.remark + (row.sql.empty() ? "" : "   ← " + row.sql);
        line += on_one_line(said, left - 1);
        while (line.ends_with(' ')) line.pop_back();
        lines.push_back(line);
    }
    return lines;
}

std::string verdict_line(const CheckResult& result) {
    const ExplorationSummary& summary = result.summary;
    const std::string level = result.isolation.empty() ? "the server's isolation level" : result.isolation;
    const std::string what = fmt::format("{} {} of {} interleavings, {}, statement granularity", summary.executions,
                                         summary.executions == 1 ? "trace" : "traces", result.interleavings, level);
    if (result.listed && summary.exhausted) {
        return fmt::format("all {} permutations that the file lists, {}", summary.executions, level);
    }
    if (summary.server_decided) return fmt::format("could not tell: {}; {}", summary.problem, what);
    if (!summary.exhausted) return fmt::format("bounded: at least {} left; {}", summary.open_branches, what);
    if (result.unreadable > 0) {
        return fmt::format("could not tell: an invariant could not be asked {} times; {}", result.unreadable, what);
    }
    return fmt::format("exhausted: {}{}", what, summary.used_symmetry ? ", alike sessions counted once" : "");
}

std::vector<std::string> report_lines(const Scenario& scenario, const CheckResult& result, std::size_t width) {
    std::vector<std::string> lines;
    for (const Finding& finding : result.findings) add_finding(scenario, finding, width, lines);
    const std::string verdict = result.findings.empty() ? (result.exit_code() == 0 ? "clean" : "open") : "race found";
    lines.push_back(fmt::format("{}: {}: {}", result.scenario, verdict, verdict_line(result)));
    if (result.broken > 0) lines.push_back(fmt::format("  {} of them broken", result.broken));
    if (scenario.invariants.empty())
        lines.push_back(fmt::format("  no invariant given; serial oracle: {}", result.oracle));
    return lines;
}

}  // namespace rowlock::race
