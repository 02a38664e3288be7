#include "race/conductor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "postgres/identifier.hpp"
#include "race/script_refused.hpp"
#include "race/signals.hpp"

namespace rowlock::race {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// A step that only runs is over sooner than this (wait_for_any spins for 100 µs of it); only then is it worth asking
/// whether it waits.
constexpr microseconds first_patience{250};
constexpr microseconds patience_max{5'000};
/// How often one event may free further waiters.
constexpr std::size_t wakes_max = 256;
/// Beyond it a machine is too slow for deadlocks to be explored on it.
constexpr milliseconds deadlock_timeout_max{640};
/// A detector or a time-out whose time has come answers at once; past this it had gone off too early.
constexpr milliseconds timer_wait_max{1'000};
constexpr milliseconds exit_wait_max{5'000};
/// A signal to a process that sleeps in a queue is answered at once.
constexpr milliseconds signal_wait_max{50};

std::vector<std::pair<std::string, std::string>> settings_of(const ConductorOptions& options) {
    std::vector<std::pair<std::string, std::string>> settings{{"application_name", "rowlock race"}};
    if (options.may_stop_backends) {
        settings.emplace_back("deadlock_timeout", fmt::format("{}ms", options.deadlock_timeout.count()));
    }
    if (!options.isolation.empty()) settings.emplace_back("default_transaction_isolation", options.isolation);
    return settings;
}

}  // namespace

Conductor::Conductor(const Scenario& scenario, ConductorOptions options)
    : scenario_(&scenario), options_(std::move(options)), watch_(options_.connection) {
    arena_ = std::make_unique<Arena>(scenario, watch_);
    referee_ = std::make_unique<Referee>(scenario, watch_, *arena_);
    forget_analyses();
    make_players();
}

void Conductor::make_players() {
    for (std::size_t i = 0; i < scenario_->sessions.size(); ++i) {
        const SessionScript& session = scenario_->sessions[i];
        auto settings = settings_of(options_);
        if (!session.role.empty()) settings.emplace_back("role", session.role);
        players_.push_back(
            std::make_unique<Player>(session, i, PlayerOptions{options_.connection, std::move(settings)}));
    }
}

/// A wait is seen, and its backend stopped, before its deadlock detector can run: the detector is a move of its own.
/// Where the machine was too slow for that, whom it failed is chance, and the execution is void.
void Conductor::require_in_time() {
    const bool was_seen = Clock::now() - seen_running_ < options_.deadlock_timeout;
    if (was_seen || waiters_.empty() || !options_.may_stop_backends) return;
    was_late_ = true;
    throw StageFault(
        fmt::format("the machine is too slow to see a wait within {} ms", options_.deadlock_timeout.count()));
}

/// It may have waited and been failed since it was last seen, and be at what its handler does about that.
void Conductor::note_running(Clock::time_point when, bool waits_out) {
    if (!waits_out) require_in_time();
    seen_running_ = when;
}

/// With new sessions: the time-out is set when they connect, and one of the old has an answer that nobody took.
void Conductor::be_more_patient() {
    options_.deadlock_timeout = std::min(options_.deadlock_timeout * 4, deadlock_timeout_max);
    for (const auto& player : players_) {
        if (!player->has_link()) continue;
        player->link().cancel();
        player->link().close();
    }
    for (const auto& player : players_) wait_for_exit(player->index());
    players_.clear();
    make_players();
    is_prepared_ = false;
    was_late_ = false;
}

Conductor::~Conductor() {
    for (const Waiter& waiting : waiters_) {
        if (options_.may_stop_backends) resume_process(players_[waiting.session]->pid());
    }
}

void Conductor::forget_analyses() {
    analyses_ = std::make_unique<AnalysisCache>(arena_->catalog(), arena_->kind() == ResetKind::rows);
}

/// Frees whoever still waits from an execution that was not played to its end.
void Conductor::release_waiters() {
    for (const Waiter& waiting : waiters_) {
        Player& player = *players_[waiting.session];
        player.link().cancel();
        if (options_.may_stop_backends) resume_process(player.pid());
        player.link().close();
    }
    for (const Waiter& waiting : waiters_) wait_for_exit(waiting.session);
    waiters_.clear();
}

void Conductor::prepare_players() {
    for (const auto& player : players_) {
        player->restart(arena_->catalog(), *analyses_);
        const SessionScript& script = player->definition();
        // A setup that ran again may have made the role again: by that name it is another one now.
        if (!script.role.empty() && arena_->kind() == ResetKind::scripts) {
            player->run_aside("SET ROLE " + quote_identifier(script.role));
        }
        if (!script.setup.empty()) {
            run_as_written(script.setup, script.setup_offset, [&] { player->run_aside(script.setup); });
        }
    }
    is_prepared_ = true;
}

void Conductor::restart() {
    release_waiters();
    if (was_late_) be_more_patient();
    others_block_ = false;
    for (const auto& player : players_) {
        if (!player->has_link()) continue;
        if (player->link().in_transaction()) player->run_aside("ROLLBACK");
        const SessionScript& script = player->definition();
        if (is_prepared_ && !script.teardown.empty()) {
            run_as_written(script.teardown, script.teardown_offset, [&] { player->run_aside(script.teardown); });
        }
        if (player->keeps_state()) player->run_aside("DISCARD ALL");
    }
    arena_->reset();
    if (arena_->take_catalog_change()) forget_analyses();
    prepare_players();
}

Waiter* Conductor::waiter(std::size_t session) {
    const auto at = std::ranges::find(waiters_, session, &Waiter::session);
    return at == waiters_.end() ? nullptr : &*at;
}

std::vector<Move> Conductor::moves() {
    std::vector<Move> moves;
    for (const auto& player : players_) {
        const auto next = player->next_step();
        if (next && waiter(player->index()) == nullptr) moves.push_back({Move::Kind::step, player->index(), *next});
    }
    for (const std::size_t session : in_cycles(waiters_)) {
        moves.push_back({Move::Kind::deadlock_check, session, players_[session]->report().step});
    }
    return moves;
}

std::vector<std::size_t> Conductor::sessions_of(const std::vector<int>& pids, bool& others) const {
    std::vector<std::size_t> sessions;
    for (const int pid : pids) {
        const auto at = std::ranges::find_if(players_, [&](const auto& player) { return player->pid() == pid; });
        if (at != players_.end()) {
            sessions.push_back((*at)->index());
        } else if (pid != 0) {
            others = true;
        }
    }
    std::ranges::sort(sessions);
    const auto repeated = std::ranges::unique(sessions);
    sessions.erase(repeated.begin(), repeated.end());
    return sessions;
}

/// A session that waits is stopped, where that is allowed.
void Conductor::begin_wait(std::size_t session, std::vector<HeldLock> locks, std::vector<std::size_t> blocked_by) {
    Player& player = *players_[session];
    if (options_.may_stop_backends) stop_process(player.pid());
    player.note_waiting(std::move(locks));
    waiters_.push_back({session, Clock::now(), std::move(blocked_by)});
}

/// Follows one session until its step is over or is known to wait. Nobody else runs meanwhile, so a wait for a session
/// of the scenario can't end by itself.
StepReport Conductor::settle(std::size_t session, bool woken, bool waits_out) {
    Player& player = *players_[session];
    const auto started = Clock::now();
    microseconds patience = first_patience;
    while (player.need() != Player::Need::nothing) {
        if (player.need() == Player::Need::look) {
            player.give_locks(watch_.locks(player.pid(), arena_->catalog()));
            continue;
        }
        const AsyncSession* const link[] = {&player.link()};
        if (wait_for_any(link, patience)) {
            note_running(Clock::now(), waits_out);
            player.advance();
            continue;
        }
        patience = std::min(patience * 2, patience_max);
        if (waits_out && Clock::now() - started < timer_wait_max) continue;
        const Clock::time_point looked_at = Clock::now();
        BackendView view = watch_.view(player.pid(), arena_->catalog());
        if (view.blocked_by.empty()) note_running(looked_at, waits_out);
        bool others = false;
        const auto blocked_by = sessions_of(view.blocked_by, others);
        const bool has_waited = Clock::now() - started > options_.others_wait_max;
        if (!view.blocked_by.empty() && (!others || has_waited)) {
            begin_wait(session, std::move(view.locks), blocked_by);
            if (!waits_out) require_in_time();
            StepReport report = player.report();
            report.blocked_by = blocked_by;
            report.verdict = others ? Verdict::blocked_by_others : Verdict::blocked;
            report.woken = woken;
            return report;
        }
        if (Clock::now() - started > options_.step_wait_max) {
            player.link().cancel();
            throw StageStopped(fmt::format("the step {} does not end: {:.1f} s have passed, and it waits for no lock",
                                           step_label(*scenario_, session, player.report().step),
                                           std::chrono::duration<double>(options_.step_wait_max).count()));
        }
    }
    if (player.is_disconnected()) wait_for_exit(session);
    StepReport report = player.report();
    report.woken = woken;
    return report;
}

/// Until the backend is gone, what it held is not free.
void Conductor::wait_for_exit(std::size_t session) {
    const int pid = players_[session]->pid();
    const auto give_up_at = Clock::now() + exit_wait_max;
    while (watch_.has_backend(pid)) {
        if (Clock::now() > give_up_at) throw StageFault(fmt::format("the backend {} does not exit", pid));
        std::this_thread::sleep_for(microseconds(200));
    }
}

/// Who of the waiters is not in a queue any more. They are still stopped.
std::vector<std::size_t> Conductor::freed_waiters() {
    if (waiters_.empty()) return {};
    std::vector<int> pids;
    for (const Waiter& waiting : waiters_) pids.push_back(players_[waiting.session]->pid());
    const auto blockers = watch_.blockers(pids);
    std::vector<std::size_t> freed;
    for (Waiter& waiting : waiters_) {
        const auto at = blockers.find(players_[waiting.session]->pid());
        if (at == blockers.end() || at->second.empty()) {
            freed.push_back(waiting.session);
        } else {
            bool others = false;
            waiting.blocked_by = sessions_of(at->second, others);
        }
    }
    return freed;
}

/// A waiter that is stopped doesn't hear a cancel or a terminate from another session until it may run.
void Conductor::let_signals_arrive(Event& event) {
    for (const Waiter& waiting : std::vector<Waiter>(waiters_)) {
        if (waiting.session == event.move.session) continue;
        const Player& player = *players_[waiting.session];
        if (options_.may_stop_backends) resume_process(player.pid());
        const AsyncSession* const link[] = {&player.link()};
        if (wait_for_any(link, signal_wait_max)) {
            seen_running_ = Clock::now();
            std::erase_if(waiters_, [&](const Waiter& other) { return other.session == waiting.session; });
            event.reports.push_back(settle(waiting.session, true));
        } else if (options_.may_stop_backends) {
            stop_process(player.pid());
        }
    }
}

/// One that has nothing to do may have been ended, too; later steps of the others must find its locks free.
void Conductor::notice_ended_sessions(std::size_t by) {
    for (const auto& player : players_) {
        if (player->index() == by || !player->has_link() || waiter(player->index()) != nullptr) continue;
        player->link().notice_loss(signal_wait_max);
        if (!player->has_link()) wait_for_exit(player->index());
    }
}

/// Lets those go on that the event has freed, one at a time. Each may free others, or wait again.
void Conductor::wake_the_freed(Event& event) {
    for (std::size_t count = 0; count < wakes_max; ++count) {
        const std::vector<std::size_t> freed = freed_waiters();
        if (freed.empty()) return;
        std::size_t taken = 0;
        if (freed.size() > 1) {
            const std::size_t choice = event.wake_choices.size();
            if (choice < event.move.wake_order.size()) taken = event.move.wake_order[choice];
            if (taken >= freed.size()) throw StageFault("a waiter that was free before is not free now");
            event.wake_choices.push_back({freed, taken});
        }
        const std::size_t session = freed[taken];
        std::erase_if(waiters_, [&](const Waiter& waiting) { return waiting.session == session; });
        seen_running_ = Clock::now();
        if (options_.may_stop_backends) resume_process(players_[session]->pid());
        event.reports.push_back(settle(session, true));
    }
    throw StageFault("one event frees waiters without end");
}

/// The deadlock detector of a session that waits runs when deadlock_timeout has passed since it began to wait, and only
/// once; the timer's signal is kept for a process that is stopped.
/// Source: PostgreSQL's src/backend/storage/lmgr/proc.c, ProcSleep
StepReport Conductor::run_deadlock_check(std::size_t session) {
    Player& player = *players_[session];
    std::this_thread::sleep_until(waiter(session)->since + options_.deadlock_timeout + milliseconds(1));
    if (options_.may_stop_backends) resume_process(player.pid());
    const auto give_up_at = Clock::now() + timer_wait_max;
    const AsyncSession* const link[] = {&player.link()};
    while (!wait_for_any(link, milliseconds(1))) {
        // A cycle that only the order of a queue closes is opened by changing that order: then nobody fails, and it
        // may be another who is free.
        const bool is_opened = !freed_waiters().empty();
        const std::vector<std::size_t> cycle = in_cycles(waiters_);
        if (is_opened || std::ranges::find(cycle, session) == cycle.end()) break;
        if (Clock::now() > give_up_at) throw StageFault("the deadlock detector had run before the cycle was closed");
    }
    std::erase_if(waiters_, [&](const Waiter& waiting) { return waiting.session == session; });
    seen_running_ = Clock::now();
    return settle(session, false);
}

bool Conductor::signals_others(const Move& move) {
    if (move.kind != Move::Kind::step) return false;
    const auto& words = analyses_->of(scenario_->sessions[move.session].steps[move.step].sql).reach.words;
    return words.contains("pg_cancel_backend") || words.contains("pg_terminate_backend");
}

Event Conductor::perform(const Move& move) {
    Event event;
    event.move = move;
    if (move.kind == Move::Kind::deadlock_check) {
        event.reports.push_back(run_deadlock_check(move.session));
    } else {
        const OwnTimeout timeout = own_timeout_of(scenario_->sessions[move.session]);
        const bool runs_out = move.kind == Move::Kind::time_out;
        seen_running_ = Clock::now();
        players_[move.session]->start_with_timeout(move.step, runs_out ? timeout : OwnTimeout::none);
        event.reports.push_back(settle(move.session, false, runs_out));
        event.may_time_out = !runs_out && timeout != OwnTimeout::none && event.reports.front().is_waiting();
    }
    if (signals_others(move)) {
        let_signals_arrive(event);
        notice_ended_sessions(move.session);
    }
    wake_the_freed(event);
    for (const StepReport& report : event.reports) event.footprint.unite(report.footprint);
    if (move.kind == Move::Kind::deadlock_check) event.footprint.everything = true;
    referee_->look_after(event);
    return event;
}

std::vector<std::string> Conductor::look() {
    return referee_->broken();
}

std::vector<LockLine> Conductor::held_locks() {
    std::vector<int> pids;
    for (const auto& player : players_) pids.push_back(player->pid());
    try {
        return locks_.look(pids);
    } catch (const ServerError&) {
        return {};  // locks are shown where they can be; a verdict does not hang on them
    }
}

bool Conductor::shift_invented_values(std::int64_t shift) {
    arena_->shift_sequences(shift);
    return !arena_->shapes().empty();
}

Ending Conductor::finish() {
    Ending ending;
    if (!waiters_.empty()) {
        ending.kind = Ending::Kind::stuck;
        for (const Waiter& waiting : waiters_) {
            ending.problem += fmt::format("{}{} waits for ever", ending.problem.empty() ? "" : ", ",
                                          scenario_->sessions[waiting.session].name);
        }
    }
    for (const auto& player : players_) {
        // What a session left open is undone, as by an application that goes away.
        const bool is_open = player->has_link() && player->link().in_transaction();
        if (is_open && waiters_.empty()) player->run_aside("ROLLBACK");
    }
    referee_->note_end(ending);
    return ending;
}

}  // namespace rowlock::race
