#include "race/referee.hpp"

#include <algorithm>

#include "race/statement_analysis.hpp"
#include "rowlock/error.hpp"

namespace rowlock::race {

namespace {

/// An invariant's query waits no longer for a lock than these milliseconds.
constexpr std::string_view limit_lock_wait = "SET lock_timeout = 200";

std::string text_of_always(const Scenario& scenario) {
    std::string text;
    for (const Invariant& invariant : scenario.invariants) {
        if (invariant.always) text += invariant.sql + "\n";
    }
    return text;
}

Statement invariant_statement(const Invariant& invariant) {
    return {"race.invariant", invariant.sql};
}

void read_rows(const Rows& rows, InvariantAnswer& answer) {
    for (std::size_t column = 0; column < rows.columns(); ++column) {
        answer.columns.emplace_back(rows.column_name(column));
    }
    for (const Row row : rows) {
        std::vector<std::optional<std::string>> values;
        for (std::size_t column = 0; column < rows.columns(); ++column) values.push_back(row.optional_text(column));
        answer.rows.push_back(std::move(values));
    }
}

}  // namespace

Referee::Referee(const Scenario& scenario, ServerWatch& watch, Arena& arena)
    : scenario_(&scenario),
      watch_(&watch),
      arena_(&arena),
      always_reach_(reach_of(text_of_always(scenario), arena.catalog())),
      looks_always_(std::ranges::any_of(scenario.invariants, &Invariant::always)) {}

void Referee::look_after(Event& event) {
    if (!looks_always_) return;
    const bool sees_all = always_reach_.unbounded || reads_surroundings(always_reach_);
    const bool is_seen = std::ranges::any_of(event.footprint.published.entries(), [&](const auto& entry) {
        return always_reach_.named.contains(entry.resource);
    });
    event.footprint.everything = event.footprint.everything || sees_all;
    if (is_seen) event.footprint.writes.add(resource::seen_states);
    event.violated = broken(Which::always);
}

InvariantAnswer Referee::ask(std::size_t index) {
    InvariantAnswer answer;
    answer.invariant = index;
    try {
        watch_->run_script(std::string(limit_lock_wait));
        read_rows(query(watch_->session(), invariant_statement(scenario_->invariants[index])), answer);
    } catch (const ServerError& error) {
        answer.readable = false;
        answer.problem = error.what();
    }
    return answer;
}

void Referee::note_state(Ending& ending, std::span<const Rows> answers) {
    ending.final_state = arena_->state_of(answers);
    ending.serial_state = without_invented_values(ending.final_state, arena_->shapes());
}

/// All questions in one round trip; false where one of them failed, and nothing is known of those behind it.
bool Referee::ask_at_once(Ending& ending) {
    const std::vector<Invariant>& invariants = scenario_->invariants;
    watch_->session().queue({"race.lock_timeout", limit_lock_wait}, {});
    for (const Invariant& invariant : invariants) watch_->session().queue(invariant_statement(invariant), {});
    arena_->queue_state();
    const Session::Outcome outcome = watch_->session().flush();
    if (outcome.failed) return false;
    for (std::size_t i = 0; i < invariants.size(); ++i) {
        ending.answers.push_back({.invariant = i});
        read_rows(outcome.rows[1 + i], ending.answers.back());
    }
    note_state(ending, std::span(outcome.rows).subspan(1 + invariants.size()));
    return true;
}

std::vector<std::string> Referee::broken(Which which) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < scenario_->invariants.size(); ++i) {
        if (which == Which::always && !scenario_->invariants[i].always) continue;
        const InvariantAnswer answer = ask(i);
        if (answer.readable && !answer.rows.empty()) names.push_back(scenario_->invariants[i].name);
    }
    return names;
}

void Referee::note_end(Ending& ending) {
    if (ask_at_once(ending)) return;
    for (std::size_t i = 0; i < scenario_->invariants.size(); ++i) ending.answers.push_back(ask(i));
    // A session that waits for ever may hold the tables.
    arena_->queue_state();
    const Session::Outcome state = watch_->session().flush();
    if (!state.failed) note_state(ending, state.rows);
}

}  // namespace rowlock::race
