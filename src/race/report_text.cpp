#include "race/report_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace rowlock::race {

namespace {

constexpr std::size_t shown_rows_max = 10;
constexpr std::size_t value_width_max = 30;

std::vector<std::string> table_lines(const InvariantAnswer& answer) {
    std::vector<std::vector<std::string>> table{{}};
    for (const std::string& column : answer.columns) table[0].push_back(on_one_line(column, value_width_max));
    for (std::size_t i = 0; i < answer.rows.size() && i < shown_rows_max; ++i) {
        table.emplace_back();
        for (const auto& value : answer.rows[i]) {
            table.back().push_back(on_one_line(value.value_or("NULL"), value_width_max));
        }
    }
    std::vector<std::size_t> widths(answer.columns.size(), 0);
    for (const auto& row : table) {
        for (std::size_t column = 0; column < row.size(); ++column) {
            widths[column] = std::max(widths[column], text_width(row[column]));
        }
    }
    std::vector<std::string> lines;
    for (const auto& row : table) {
        std::string line;
        for (std::size_t column = 0; column < row.size(); ++column) line += padded(row[column], widths[column] + 2);
        while (line.ends_with(' ')) line.pop_back();
        lines.push_back(std::move(line));
    }
    if (answer.rows.size() > shown_rows_max) lines.push_back(fmt::format("… {} rows", answer.rows.size()));
    return lines;
}

class ReportText {
  public:
    ReportText(const Scenario& scenario, const CheckResult& result, const TextStyle& style)
        : scenario_(scenario), result_(result), style_(style) {}

    std::vector<std::string> lines() {
        for (const Finding& finding : result_.findings) add_finding(finding);
        add_verdict();
        return std::move(lines_);
    }

  private:
    void add(std::string line) { lines_.push_back(std::move(line)); }
    void add_wrapped(std::size_t indent, std::string_view text, Ink ink) {
        const std::size_t width = std::max(style_.width, TextStyle::width_min) - indent;
        for (const std::string& line : wrapped(text, width)) {
            add(std::string(indent, ' ') + inked(style_, ink, line));
        }
    }

    void add_finding(const Finding& finding) {
        add_wrapped(0, fmt::format("✗ {}", headline(finding.symptom)), Ink::bad);
        add_wrapped(2, extent_text(finding, result_), Ink::plain);
        const std::string schedule = schedule_text(scenario_, finding.execution);
        const bool is_shown = !shown_.insert(schedule).second;
        if (is_shown) {
            add_wrapped(2, "It is the schedule above.", Ink::plain);
        } else {
            add("");
            const TextStyle style{style_.width - 2, style_.color};
            for (std::string& line : timeline_lines(scenario_, timeline_of(scenario_, finding), style)) {
                add("  " + std::move(line));
            }
        }
        if (finding.symptom.answer) {
            add("");
            add(inked(style_, Ink::strong, "  Rows that must not be there:"));
            for (const std::string& line : table_lines(*finding.symptom.answer)) {
                add("    " + inked(style_, Ink::bad, line));
            }
        }
        if (finding.nearest_good && !is_shown) add_way_out(finding);
        add("");
    }

    void add_way_out(const Finding& finding) {
        add("");
        const std::string order = order_text(scenario_, finding);
        if (!order.empty()) add_wrapped(2, fmt::format("● What matters: {}.", order), Ink::strong);
        add_wrapped(4, "The nearest schedule that holds:", Ink::plain);
        add_wrapped(6, schedule_text(scenario_, *finding.nearest_good), Ink::good);
    }

    void add_verdict() {
        const int code = result_.exit_code();
        const std::string_view verdict = verdict_word(scenario_, result_);
        const std::string_view mark = code == 0 ? "✓" : code == 1 ? "✗" : "?";
        const Ink ink = code == 0 ? Ink::good : code == 1 ? Ink::bad : Ink::wait;
        add(inked(style_, ink, fmt::format("{} {}: {}", mark, on_one_line(result_.scenario, style_.width), verdict)));
        add_wrapped(2, verdict_line(result_), Ink::plain);
        if (scenario_.invariants.empty() && !result_.oracle.empty()) {
            add_wrapped(2, "no invariant is given; serial oracle: " + result_.oracle, Ink::faint);
        }
        for (const auto& [refusal, count] : result_.refusals) {
            add_wrapped(2, fmt::format("the server refused {} in {} of them", refusal, count), Ink::faint);
        }
    }

    const Scenario& scenario_;
    const CheckResult& result_;
    const TextStyle style_;
    std::set<std::string> shown_;
    std::vector<std::string> lines_;
};

std::string level_text(const CheckResult& result) {
    std::string level = result.isolation.empty() ? "read committed" : result.isolation;
    std::ranges::transform(level, level.begin(),
                           [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    return result.names_isolation ? level + " where a step names none" : level;
}

}  // namespace

std::string headline(const Symptom& symptom) {
    const std::string& title = symptom.title;
    switch (symptom.kind) {
        case Symptom::Kind::invariant:
            return fmt::format("\"{}\" does not hold", title);
        case Symptom::Kind::stuck:
            return "Stuck: " + title;
        case Symptom::Kind::deadlock:
            return "Deadlock, and the victim does not run its transaction again";
        case Symptom::Kind::not_serial:
            return "Not serializable: " + title;
    }
    return title;
}

std::string extent_text(const Finding& finding, const CheckResult& result) {
    if (finding.in_serial_order) {
        return "It happens without any concurrency, too: one session after the other is enough.";
    }
    const std::string shown =
        result.listed ? fmt::format("{} of {} permutations show it", finding.count, result.summary.executions)
                      : fmt::format("{} of {} distinct schedules show it", finding.count, result.summary.executions);
    return fmt::format("{}. The shortest has {} preemption{}:", shown, finding.preemptions,
                       finding.preemptions == 1 ? "" : "s");
}

std::string_view verdict_word(const Scenario& scenario, const CheckResult& result) {
    const int code = result.exit_code();
    if (code != 0) return code == 1 ? "race found" : "could not tell";
    const bool is_compared = !scenario.invariants.empty() || !result.oracle.starts_with("off");
    return is_compared ? "holds" : "no deadlock, nobody stuck; nothing else was checked";
}

std::string verdict_line(const CheckResult& result) {
    const ExplorationSummary& summary = result.summary;
    const std::string level = level_text(result);
    const std::string what = fmt::format("{} {} of {} interleavings, {}, statement granularity", summary.executions,
                                         summary.executions == 1 ? "trace" : "traces", result.interleavings, level);
    if (result.listed && summary.exhausted) {
        return fmt::format("all {} permutations that the file lists, {}", summary.executions, level);
    }
    if (summary.server_decided) return fmt::format("{}; {}", summary.problem, what);
    if (result.stopped_at_first) return "stopped at the first finding; " + what;
    if (!summary.exhausted) return fmt::format("bounded: at least {} left; {}", summary.open_branches, what);
    if (result.left_to_server > 0) {
        return fmt::format("the server decides who wakes first and who is a deadlock's victim, in {} of them; {}",
                           result.left_to_server, what);
    }
    if (result.unreadable > 0) {
        return fmt::format("an invariant could not be asked, {} times: {}; {}", result.unreadable,
                           result.unreadable_problem, what);
    }
    return fmt::format("exhausted: {}{}", what, summary.used_symmetry ? ", alike sessions counted once" : "");
}

std::vector<std::string> report_lines(const Scenario& scenario, const CheckResult& result, const TextStyle& style) {
    return ReportText(scenario, result, style).lines();
}

}  // namespace rowlock::race
