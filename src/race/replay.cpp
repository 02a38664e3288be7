#include "race/replay.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.hpp"
#include "race/scenario_lexer.hpp"
#include "race/sql_tokens.hpp"

namespace rowlock::race {

namespace {

constexpr std::string_view first_line = "rowlock race replay 1";
constexpr std::size_t moves_max = 10'000;
constexpr std::size_t wake_order_max = 64;

std::string_view verdict_name(Verdict verdict) {
    switch (verdict) {
        case Verdict::done:
            return "done";
        case Verdict::failed:
            return "failed";
        case Verdict::blocked:
            return "waits";
        case Verdict::blocked_by_others:
            return "waits-outside";
        case Verdict::disconnected:
            return "disconnected";
    }
    return "";
}

/// The verdicts to be read by people, and a digest of all that the sessions were told and of the SQL that ran.
std::string effect_of(const Scenario& scenario, const Event& event) {
    std::string verdicts;
    std::string told;
    for (const StepReport& report : event.reports) {
        const SessionScript& session = scenario.sessions[report.session];
        verdicts += fmt::format("{}{}:{}", verdicts.empty() ? "" : ",", session.name, verdict_name(report.verdict));
        told += session.steps[report.step].sql + "\n";
        for (const StatementOutcome& statement : report.statements) {
            told += statement.sqlstate + statement.tag + "\n";
            for (const auto& row : statement.rows) {
                for (const auto& value : row) told += value.value_or("\\N") + "\t";
            }
        }
    }
    return fmt::format("{} {:016x}", verdicts, fnv1a_64(told));
}

std::string wake_text(const std::vector<std::size_t>& order) {
    return order.empty() ? "-" : fmt::format("{}", fmt::join(order, ","));
}

std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    while (!line.empty()) {
        const std::size_t end = std::min(line.find('\t'), line.size());
        words.push_back(line.substr(0, end));
        line.remove_prefix(std::min(end + 1, line.size()));
    }
    return words;
}

std::vector<std::size_t> parse_wake_order(std::string_view text) {
    std::vector<std::size_t> order;
    std::size_t number = 0;
    if (text == "-") return order;
    for (const char c : text) {
        if (c == ',') {
            order.push_back(number);
            number = 0;
        } else if (c >= '0' && c <= '9' && number < wake_order_max) {
            number = number * 10 + static_cast<std::size_t>(c - '0');
        }
    }
    order.push_back(number);
    return order;
}

ReplayMove parse_move(const std::vector<std::string_view>& words) {
    ReplayMove move;
    move.kind = words[0] == "check" ? Move::Kind::deadlock_check : Move::Kind::step;
    move.session = std::string(words[1]);
    move.step = std::string(words[2]);
    move.wake_order = parse_wake_order(words[3]);
    move.effect = std::string(words[4]);
    return move;
}

std::optional<Move> find_move(const Scenario& scenario, const ReplayMove& wanted, const std::vector<Move>& moves) {
    for (const Move& move : moves) {
        const SessionScript& session = scenario.sessions[move.session];
        if (move.kind != wanted.kind || session.name != wanted.session) continue;
        if (session.steps[move.step].name != wanted.step) continue;
        Move found = move;
        found.wake_order = wanted.wake_order;
        return found;
    }
    return std::nullopt;
}

/// A schedule that was shortened leaves steps out at the end.
bool ends_early(const Scenario& scenario, const Execution& execution) {
    std::vector<bool> is_over(scenario.sessions.size(), false);
    for (const Event& event : execution.events) {
        for (const StepReport& report : event.reports) {
            const bool is_last = report.step + 1 == scenario.sessions[report.session].steps.size();
            const bool ends = is_last || report.gives_up || report.verdict == Verdict::disconnected;
            is_over[report.session] = (ends && !report.restarts) || report.is_waiting();
        }
    }
    return std::ranges::find(is_over, false) != is_over.end();
}

}  // namespace

std::string replay_text(const Scenario& scenario, const std::string& path, const std::string& isolation,
                        const Execution& execution) {
    std::string text = fmt::format("{}\nscenario\t{}\nisolation\t{}\n", first_line, path, isolation);
    for (const Event& event : execution.events) {
        const SessionScript& session = scenario.sessions[event.move.session];
        text += fmt::format("{}\t{}\t{}\t{}\t{}\n", event.move.kind == Move::Kind::deadlock_check ? "check" : "step",
                            session.name, session.steps[event.move.step].name, wake_text(event.move.wake_order),
                            effect_of(scenario, event));
    }
    text += ends_early(scenario, execution) ? "ends\tearly\n" : "ends\twhole\n";
    return text;
}

Replay parse_replay(std::string_view text, std::string_view name) {
    const SourceText source(text, name);
    if (!text.starts_with(first_line))
        source.fail(0, fmt::format("this is no replay file: it must start with \"{}\"", first_line));
    Replay replay;
    std::size_t begin = std::min(text.find('\n'), text.size());
    while (begin < text.size() && replay.moves.size() < moves_max) {
        ++begin;
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::vector<std::string_view> words = words_of(text.substr(begin, end - begin));
        if (words.size() == 2 && words[0] == "scenario") {
            replay.scenario = std::string(words[1]);
        } else if (!words.empty() && words[0] == "isolation") {
            replay.isolation = words.size() > 1 ? std::string(words[1]) : std::string();
        } else if (words.size() == 5 && (words[0] == "step" || words[0] == "check")) {
            replay.moves.push_back(parse_move(words));
        } else if (words.size() == 2 && words[0] == "ends") {
            replay.ends_early = words[1] == "early";
        } else if (!words.empty()) {
            source.fail(begin, "this line of a replay file can't be read");
        }
        begin = end;
    }
    return replay;
}

namespace {

ReplayOutcome play_once(const Scenario& scenario, const Replay& replay, Stage& stage) {
    ReplayOutcome outcome;
    stage.restart();
    for (const ReplayMove& wanted : replay.moves) {
        const std::optional<Move> move = find_move(scenario, wanted, stage.moves());
        const std::string label = wanted.session + "." + wanted.step;
        if (!move) {
            outcome.divergence = fmt::format("diverged at {}: it can't happen here", label);
            break;
        }
        outcome.execution.events.push_back(stage.perform(*move));
        const std::string effect = effect_of(scenario, outcome.execution.events.back());
        if (effect != wanted.effect) {
            outcome.divergence = fmt::format("diverged at {}: it was {} and is {}", label, wanted.effect, effect);
            break;
        }
    }
    if (outcome.divergence.empty() && !replay.ends_early && !stage.moves().empty()) {
        outcome.divergence = "diverged at the end: there is more to do than there was";
    }
    outcome.execution.ending = stage.finish();
    return outcome;
}

}  // namespace

ReplayOutcome play_again(const Scenario& scenario, const Replay& replay, Stage& stage) {
    return with_reruns([&] { return play_once(scenario, replay, stage); });
}

}  // namespace rowlock::race
