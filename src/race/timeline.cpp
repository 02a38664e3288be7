#include "race/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rowlock::race {

namespace {

constexpr std::size_t sql_width = 200;
constexpr std::size_t value_width = 40;
constexpr std::size_t rows_in_cell_max = 3;

bool is_continuation(char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

std::string names_of(const Scenario& scenario, const std::vector<std::size_t>& sessions) {
    std::string names;
    for (const std::size_t session : sessions) {
        names += (names.empty() ? "" : ", ") + scenario.sessions[session].name;
    }
    return names;
}

std::string values_of(const StatementOutcome& statement) {
    std::string text;
    for (std::size_t i = 0; i < statement.rows.size() && i < rows_in_cell_max; ++i) {
        if (i > 0) text += "; ";
        for (std::size_t column = 0; column < statement.columns.size(); ++column) {
            text += fmt::format("{}{}={}", column == 0 ? "" : ", ", statement.columns[column],
                                on_one_line(statement.rows[i][column].value_or("NULL"), value_width));
        }
    }
    if (statement.rows.size() > rows_in_cell_max) text += fmt::format("; … {} rows", statement.rows.size());
    return text;
}

/// What the session got to see of its step.
std::string remark_of(const Scenario& scenario, const StepReport& report) {
    if (report.verdict == Verdict::blocked) {
        return "waits for " +
               (report.blocked_by.empty() ? "a prepared transaction" : names_of(scenario, report.blocked_by));
    }
    if (report.verdict == Verdict::blocked_by_others) return "waits for somebody outside";
    std::string text;
    for (const StatementOutcome& statement : report.statements) {
        std::string said;
        if (!statement.sqlstate.empty()) {
            said = fmt::format("{} {}", statement.sqlstate, statement.message);
        } else if (!statement.rows.empty()) {
            said = values_of(statement);
        } else if (statement.tag.starts_with("SELECT")) {
            said = "no row";
        } else if (statement.tag.ends_with(" 0")) {
            said = statement.tag;  // an INSERT, UPDATE or DELETE that found nothing
        } else if (statement.tag == "ROLLBACK") {
            said = "rolled back";
        }
        if (!said.empty()) text += (text.empty() ? "" : " / ") + said;
    }
    if (report.restarts) text += ", starts again";
    if (report.gives_up) text += ", gives up";
    if (report.verdict == Verdict::disconnected) text += text.empty() ? "disconnected" : ", disconnected";
    return text;
}

TimelineRow::Kind kind_of(const Event& event, const StepReport& report) {
    if (report.is_waiting()) return TimelineRow::Kind::waits;
    if (report.verdict == Verdict::failed) return TimelineRow::Kind::fails;
    if (report.woken) return TimelineRow::Kind::goes_on;
    return event.move.kind == Move::Kind::deadlock_check ? TimelineRow::Kind::deadlock_check : TimelineRow::Kind::step;
}

}  // namespace

std::string on_one_line(std::string_view text, std::size_t width) {
    std::string line;
    std::size_t characters = 0;
    bool is_space = true;
    for (const char c : text) {
        const bool blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
        if (blank && is_space) continue;
        if (!is_continuation(c) && ++characters > width) {
            line += "…";
            return line;
        }
        line += blank ? ' ' : c;
        is_space = blank;
    }
    while (line.ends_with(' ')) line.pop_back();
    return line;
}

std::size_t text_width(std::string_view text) {
    return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return !is_continuation(c); }));
}

std::vector<TimelineRow> timeline_of(const Scenario& scenario, const Execution& execution) {
    std::vector<TimelineRow> rows;
    std::vector<bool> waiting(scenario.sessions.size(), false);
    for (std::size_t i = 0; i < execution.events.size(); ++i) {
        const Event& event = execution.events[i];
        for (const StepReport& report : event.reports) {
            const Step& step = scenario.sessions[report.session].steps[report.step];
            TimelineRow row{kind_of(event, report),      report.session, step.name, on_one_line(step.sql, sql_width),
                            remark_of(scenario, report), waiting,        i};
            row.waiting[report.session] = false;
            waiting[report.session] = report.is_waiting();
            rows.push_back(std::move(row));
        }
    }
    return rows;
}

std::string schedule_text(const Scenario& scenario, const Execution& execution) {
    std::string text;
    for (const Event& event : execution.events) {
        if (!text.empty()) text += ' ';
        if (event.move.kind == Move::Kind::deadlock_check) text += "deadlock:";
        text += step_label(scenario, event.move.session, event.move.step);
    }
    return text;
}

}  // namespace rowlock::race
