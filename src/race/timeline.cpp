#include "race/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "race/sql_tokens.hpp"

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

/// "child (id=1)", "entry", "advisory 7".
std::string lock_name(const LockLine& line) {
    if (line.kind == LockLine::Kind::table) return line.relation;
    const std::string key = on_one_line(line.key, value_width);
    return line.kind == LockLine::Kind::row ? fmt::format("{} ({})", line.relation, key) : "advisory " + key;
}

/// What the waiting session's blockers hold of what it waits for, as far as it could be seen.
std::string wait_object(const Event& event, const StepReport& report) {
    for (const LockLine& wanted : event.locks) {
        if (wanted.granted || wanted.session != report.session) continue;
        std::string text = lock_name(wanted);
        for (const LockLine& held : event.locks) {
            const bool is_blocker = std::ranges::find(report.blocked_by, held.session) != report.blocked_by.end();
            const bool is_same = held.kind == wanted.kind && held.relation == wanted.relation && held.key == wanted.key;
            if (held.granted && is_blocker && is_same) return text + " " + held.mode;
        }
        return text;
    }
    return {};
}

std::string wait_remark(const Scenario& scenario, const Event& event, const StepReport& report) {
    if (report.verdict == Verdict::blocked_by_others) return "waits for somebody outside of the scenario";
    if (report.blocked_by.empty()) return "waits for a prepared transaction";
    const std::string object = wait_object(event, report);
    const std::string who = names_of(scenario, report.blocked_by);
    return object.empty() ? "waits for " + who : fmt::format("waits for {}, which holds {}", who, object);
}

/// What the session got to see of its step.
std::string remark_of(const Scenario& scenario, const Event& event, const StepReport& report) {
    if (report.is_waiting()) return wait_remark(scenario, event, report);
    std::string text;
    for (const StatementOutcome& statement : report.statements) {
        const std::string_view tag = statement.tag;
        std::string said;
        if (!statement.sqlstate.empty()) {
            said = fmt::format("{} {}", statement.sqlstate, statement.message);
        } else if (!statement.rows.empty()) {
            said = values_of(statement);
        } else if (tag.starts_with("SELECT")) {
            said = "no row";
        } else if (tag.starts_with("INSERT") || tag.starts_with("UPDATE") || tag.starts_with("DELETE") ||
                   tag.starts_with("MERGE")) {
            said = statement.tag;
        } else if (tag == "ROLLBACK") {
            said = "rolled back";
        }
        if (!said.empty()) text += (text.empty() ? "" : " / ") + said;
    }
    if (report.restarts) text += ", starts again";
    if (report.gives_up) text += ", gives up";
    if (report.verdict == Verdict::disconnected) text += text.empty() ? "disconnected" : ", disconnected";
    return text;
}

/// Every statement takes one of these on its tables; a stronger lock on the table, or one on its rows, says more.
bool says_little(const LockLine& line, const std::vector<LockLine>& held) {
    if (line.kind != LockLine::Kind::table) return false;
    const bool is_weak = line.mode == "ACCESS SHARE" || line.mode == "ROW SHARE" || line.mode == "ROW EXCLUSIVE";
    return is_weak && std::ranges::any_of(held, [&](const LockLine& other) {
               const bool says_more = other.kind == LockLine::Kind::row || other.mode > line.mode;
               return other.session == line.session && other.relation == line.relation && other.granted && says_more;
           });
}

/// Where the statement does not name the table, somebody else locked it on the statement's behalf.
std::string_view why(const LockLine& line, const std::set<std::string, std::less<>>& words) {
    if (line.kind == LockLine::Kind::advisory || words.contains(lower_case(line.relation))) return "";
    return line.mode == "FOR KEY SHARE" ? ", by a foreign key" : ", by a trigger or function";
}

/// What the session holds now and did not before; rows of one table in one mode together.
std::vector<std::string> new_locks(const Event& event, const std::vector<LockLine>& before, const StepReport& report,
                                   const std::string& sql) {
    std::vector<std::string> texts;
    const std::vector<std::string> all_words = sql_words(sql);
    const std::set<std::string, std::less<>> words(all_words.begin(), all_words.end());
    std::map<std::string, std::vector<std::string>> rows;
    for (const LockLine& line : event.locks) {
        const bool is_old = std::ranges::find(before, line) != before.end();
        if (line.session != report.session || !line.granted || is_old || says_little(line, event.locks)) continue;
        if (line.kind == LockLine::Kind::row) {
            rows[fmt::format(" {}{}", line.mode, why(line, words))].push_back(lock_name(line));
        } else {
            texts.push_back(fmt::format("{} {}{}", lock_name(line), line.mode, why(line, words)));
        }
    }
    for (const auto& [mode, names] : rows) {
        const std::size_t shown = std::min(names.size(), rows_in_cell_max);
        std::string text = fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<long>(shown), ", "));
        if (names.size() > shown) text += fmt::format(", … {} rows", names.size());
        texts.push_back(text + mode);
    }
    return texts;
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
        // Control characters of others must not move the cursor.
        const bool blank = static_cast<unsigned char>(c) <= 0x20U || c == 0x7F;
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
    std::vector<LockLine> held;
    for (std::size_t i = 0; i < execution.events.size(); ++i) {
        const Event& event = execution.events[i];
        for (const StepReport& report : event.reports) {
            const Step& step = scenario.sessions[report.session].steps[report.step];
            TimelineRow row;
            row.kind = kind_of(event, report);
            row.session = report.session;
            row.step = step.name;
            if (!waiting[report.session]) row.sql = on_one_line(step.sql, sql_width);
            row.remark = remark_of(scenario, event, report);
            row.locks = new_locks(event, held, report, step.sql);
            row.waiting = waiting;
            row.waiting[report.session] = false;
            row.event = i;
            waiting[report.session] = report.is_waiting();
            rows.push_back(std::move(row));
        }
        held = event.locks;
    }
    return rows;
}

std::vector<TimelineRow> timeline_of(const Scenario& scenario, const Finding& finding) {
    std::vector<TimelineRow> rows = timeline_of(scenario, finding.execution);
    if (!finding.order_that_matters) return rows;
    for (const std::size_t event : {finding.order_that_matters->first, finding.order_that_matters->second}) {
        const auto row = std::ranges::find(rows, event, &TimelineRow::event);
        if (row != rows.end()) row->matters = true;
    }
    return rows;
}

std::string_view row_class(TimelineRow::Kind kind) {
    switch (kind) {
        case TimelineRow::Kind::waits:
            return "waits";
        case TimelineRow::Kind::goes_on:
        case TimelineRow::Kind::deadlock_check:
            return "goes";
        case TimelineRow::Kind::fails:
            return "fails";
        case TimelineRow::Kind::step:
            break;
    }
    return "done";
}

std::vector<std::string> held_locks_text(const Event& event, std::size_t session) {
    std::vector<std::string> texts;
    for (const LockLine& line : event.locks) {
        if (line.session != session || !line.granted || says_little(line, event.locks)) continue;
        texts.push_back(fmt::format("{} {}", lock_name(line), line.mode));
    }
    return texts;
}

bool tells_more_than_name(const TimelineRow& row) {
    std::string_view sql = row.sql;
    if (sql.ends_with(';')) sql.remove_suffix(1);
    return lower_case(trimmed(sql)) != lower_case(row.step);
}

std::string order_text(const Scenario& scenario, const Finding& finding) {
    std::vector<std::string> names;
    const std::vector<TimelineRow> rows = timeline_of(scenario, finding);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (!rows[i].matters) continue;
        names.push_back(fmt::format("{} {}.{}", i + 1, scenario.sessions[rows[i].session].name, rows[i].step));
    }
    return names.size() == 2 ? fmt::format("{} comes before {}", names[0], names[1]) : "";
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
