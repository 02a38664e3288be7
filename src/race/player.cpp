#include "race/player.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/contract.hpp"
#include "race/sql_tokens.hpp"

namespace rowlock::race {

namespace {

constexpr auto connect_wait_max = std::chrono::seconds(10);
/// A session's own setup is not raced; it may take this long.
constexpr auto aside_wait_max = std::chrono::seconds(30);

/// What a session's text says of its isolation level; the strongest, since a weaker one asks for fewer dependencies.
Isolation isolation_of(const SessionScript& session, const std::string& by_default) {
    std::string text = by_default + " " + lower_case(session.setup);
    for (const Step& step : session.steps) text += " " + lower_case(step.sql);
    if (text.find("serializable") != std::string::npos) return Isolation::serializable;
    if (text.find("repeatable") != std::string::npos) return Isolation::repeatable_read;
    return Isolation::read_committed;
}

bool may_keep_state(const SessionScript& session, const Catalog& catalog) {
    if (!catalog.functions_by_name.empty() || !session.setup.empty() || !session.role.empty()) return true;
    for (const Step& step : session.steps) {
        for (const std::string_view statement : sql_statements(step.sql)) {
            const StatementKind kind = kind_of_statement(statement);
            const std::vector<std::string> words = sql_code_words(statement);
            if (kind == StatementKind::other || (!words.empty() && words[0] == "set")) return true;
            for (const std::string& word : sql_words(statement)) {
                if (word.find("advisory") != std::string::npos || word == "set_config" || word == "nextval")
                    return true;
            }
        }
    }
    return false;
}

StatementOutcome outcome_of(const AsyncResult& result) {
    StatementOutcome outcome;
    if (result.failure) {
        outcome.sqlstate = result.failure->sqlstate.empty() ? "08006" : result.failure->sqlstate;
        outcome.message = result.failure->message;
        outcome.detail = result.failure->detail;
        return outcome;
    }
    const Rows& rows = *result.rows;
    outcome.tag = std::string(rows.command_tag());
    for (std::size_t column = 0; column < rows.columns(); ++column) {
        outcome.columns.emplace_back(rows.column_name(column));
    }
    for (const Row row : rows) {
        std::vector<std::optional<std::string>> values;
        for (std::size_t column = 0; column < rows.columns(); ++column) values.push_back(row.optional_text(column));
        outcome.rows.push_back(std::move(values));
    }
    return outcome;
}

}  // namespace

Player::Player(const SessionScript& definition, std::size_t index, PlayerOptions options)
    : definition_(&definition), index_(index), options_(std::move(options)) {
    connect();
}

void Player::connect() {
    link_ = std::make_unique<AsyncSession>(options_.connection, options_.settings, connect_wait_max);
    pid_ = link_->backend_pid();
    // The server, the database and the role may each have a default of their own.
    for (const AsyncResult& result : answers_aside("SHOW default_transaction_isolation")) {
        default_isolation_ = std::string(result.rows->only().text(0));
    }
}

void Player::restart(const Catalog& catalog, AnalysisCache& analyses) {
    if (has_link()) link_->notice_loss({});
    if (!has_link()) connect();
    analyses_ = &analyses;
    bool reads_clock = false;
    for (const Step& step : definition_->steps) {
        reads_clock = reads_clock || reads_surroundings(analyses.of(step.sql).reach);
    }
    tracker_.emplace(catalog, isolation_of(*definition_, default_isolation_), reads_clock);
    variables_.clear();
    keeps_state_ = may_keep_state(*definition_, catalog);
    next_step_ = 0;
    retries_done_ = 0;
    gave_up_ = false;
    disconnected_ = false;
    phase_ = Phase::idle;
    need_ = Need::nothing;
    link_->take_results();
    link_->take_notices();
}

void Player::run_aside(const std::string& script) {
    (void)answers_aside(script);
}

std::vector<AsyncResult> Player::answers_aside(const std::string& script) {
    link_->send(without_timeouts(script));
    const AsyncSession* const waited_for[] = {link_.get()};
    const auto give_up_at = std::chrono::steady_clock::now() + aside_wait_max;
    while (!link_->advance()) {
        if (std::chrono::steady_clock::now() > give_up_at) {
            throw ServerError({.message = fmt::format("session {}: \"{}\" does not end", definition_->name, script)},
                              Recovery::give_up);
        }
        wait_for_any(waited_for, std::chrono::milliseconds(100));
    }
    std::vector<AsyncResult> results = link_->take_results();
    for (const AsyncResult& result : results) {
        if (result.failure) throw ServerError(*result.failure, Recovery::give_up);
    }
    return results;
}

std::optional<std::size_t> Player::next_step() const {
    if (gave_up_ || disconnected_ || next_step_ >= definition_->steps.size()) return std::nullopt;
    return next_step_;
}

void Player::start_with_timeout(std::size_t step, OwnTimeout timeout) {
    timeout_ = timeout;
    start(step);
}

void Player::start(std::size_t step) {
    contract(need_ == Need::nothing, "a session's steps come one after the other");
    step_ = step;
    instruction_ = 0;
    step_failed_ = false;
    report_ = {};
    report_.session = index_;
    report_.step = step;
    next_step_ = step + 1;
    run_instructions();
}

void Player::run_instructions() {
    const std::vector<Instruction>& program = definition_->steps[step_].program;
    need_ = Need::nothing;
    while (instruction_ < program.size() && !step_failed_ && !disconnected_) {
        const Instruction& instruction = program[instruction_++];
        switch (instruction.kind) {
            case Instruction::Kind::send:
                send_statement(instruction);
                if (need_ != Need::nothing) return;
                break;
            case Instruction::Kind::keep_row:
                keep_row(instruction);
                break;
            case Instruction::Kind::jump_unless: {
                std::string unset;
                if (!is_true(substitute(instruction.text, variables_, unset))) instruction_ = instruction.target;
                break;
            }
            case Instruction::Kind::jump:
                instruction_ = instruction.target;
                break;
            case Instruction::Kind::disconnect:
                link_->close();
                disconnected_ = true;
                report_.footprint.everything = true;
                break;
        }
    }
    end_step();
}

/// Where a session can have a search path or a role of its own, the same text can mean other tables.
bool Player::locks_are_fixed(const Analysis& analysis) const {
    return analysis.has_fixed_locks && !keeps_state_;
}

void Player::send_statement(const Instruction& instruction) {
    std::string unset;
    text_ = without_timeouts(substitute(instruction.text, variables_, unset));
    if (link_->is_lost()) return fail_statement("08003", "the session has no connection");
    was_in_transaction_ = link_->in_transaction();
    was_in_failed_transaction_ = link_->in_failed_transaction();
    failed_ = false;
    locks_.clear();
    const Analysis& analysis = analyses_->of(text_);
    const bool may_be_known = locks_are_fixed(analysis) && timeout_ == OwnTimeout::none;
    known_locks_ = may_be_known ? analyses_->locks_after(text_, tracker_->held()) : nullptr;
    wrapped_ = !was_in_transaction_ && analysis.is_single(StatementKind::query) && known_locks_ == nullptr;
    need_ = Need::answer;
    if (!wrapped_) return send_text();
    phase_ = Phase::opening;
    link_->send("BEGIN");
}

/// The time-out is set for the transaction, so a transaction must be open; it runs out where the step waits, and
/// nothing else of a step takes that long.
void Player::send_text() {
    if (timeout_ != OwnTimeout::none && link_->in_transaction() && !link_->in_failed_transaction()) {
        phase_ = Phase::arming;
        link_->send(timeout_ == OwnTimeout::lock ? "SET LOCAL lock_timeout = '2ms'"
                                                 : "SET LOCAL statement_timeout = '25ms'");
        return;
    }
    phase_ = Phase::running;
    link_->send(text_);
}

void Player::fail_statement(std::string sqlstate, std::string message) {
    report_.statements.push_back({.sqlstate = std::move(sqlstate), .message = std::move(message)});
    report_.footprint.everything = true;
    step_failed_ = true;
}

/// What was sent apart from the steps (BEGIN, COMMIT and ROLLBACK of ours) leaves a trace only where it fails.
void Player::collect() {
    const bool is_own = phase_ == Phase::running;
    for (const AsyncResult& result : link_->take_results()) {
        failed_ = failed_ || result.failure.has_value();
        if (!is_own && !result.failure) continue;
        report_.statements.push_back(outcome_of(result));
    }
    for (Notice& notice : link_->take_notices()) {
        report_.notices.push_back({std::move(notice.severity), std::move(notice.message)});
    }
    if (link_->is_lost() && !disconnected_) {
        disconnected_ = true;
        failed_ = true;
        report_.footprint.everything = true;
        if (report_.statements.empty() || report_.statements.back().sqlstate.empty()) {
            report_.statements.push_back({.sqlstate = "08006", .message = "the server ended the session"});
        }
    }
}

void Player::advance() {
    if (need_ != Need::answer || !link_->advance()) return;
    collect();
    finish_phase();
}

StatementFacts Player::facts() const {
    StatementFacts facts;
    facts.analysis = &analyses_->of(text_);
    facts.locks = locks_;
    facts.was_in_transaction = was_in_transaction_;
    facts.was_in_failed_transaction = was_in_failed_transaction_;
    facts.was_wrapped = wrapped_ || (known_locks_ != nullptr && !was_in_transaction_);
    facts.failed = failed_;
    facts.is_open_after = link_->in_transaction();
    return facts;
}

void Player::finish_phase() {
    switch (phase_) {
        case Phase::opening:
            if (failed_) return finish_statement(false);
            return send_text();
        case Phase::arming:
            phase_ = Phase::running;
            link_->send(text_);
            return;
        case Phase::disarming:
            phase_ = Phase::running;
            return continue_statement();
        case Phase::running:
            if (disconnected_) return finish_statement(false);
            if (timeout_ != OwnTimeout::none && link_->in_transaction() && !failed_) {
                phase_ = Phase::disarming;
                link_->send("SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0");
                return;
            }
            return continue_statement();
        case Phase::closing:
            return finish_statement(!failed_);
        case Phase::rolling_back:
            phase_ = Phase::idle;
            need_ = Need::nothing;
            return;
        case Phase::idle:
            contract(false, "an idle session has no phase to end");
    }
}

/// The statement has been answered: its locks are looked at while its transaction is open.
void Player::continue_statement() {
    const bool is_open = link_->in_transaction() && !link_->in_failed_transaction();
    const Analysis& analysis = analyses_->of(text_);
    const bool touches = std::ranges::any_of(analysis.statements, [](StatementKind kind) {
        return kind != StatementKind::begin && kind != StatementKind::setting;
    });
    if (known_locks_ != nullptr && !failed_) {
        locks_ = *known_locks_;
        return finish_statement(!was_in_transaction_);
    }
    if (is_open && touches) {
        need_ = Need::look;
        return;
    }
    if (wrapped_ && link_->in_transaction()) return close();
    const bool is_commit = was_in_transaction_ && !link_->in_transaction() && !failed_ && !report_.statements.empty() &&
                           report_.statements.back().tag != "ROLLBACK";
    finish_statement(is_commit);
}

void Player::give_locks(std::vector<HeldLock> locks) {
    locks_ = std::move(locks);
    if (!failed_ && locks_are_fixed(analyses_->of(text_))) analyses_->keep_locks(text_, tracker_->held(), locks_);
    if (!wrapped_) return finish_statement(false);
    close();
}

void Player::close() {
    phase_ = Phase::closing;
    need_ = Need::answer;
    link_->send(failed_ ? "ROLLBACK" : "COMMIT");
}

void Player::note_waiting(std::vector<HeldLock> locks) {
    if (phase_ != Phase::running) {
        // A COMMIT of ours waits: for a deferred check. Nothing is known of what it waits for.
        report_.footprint.everything = true;
        return;
    }
    StatementFacts waiting = facts();
    waiting.locks = std::move(locks);
    waiting.is_waiting = true;
    waiting.is_open_after = true;
    report_.footprint.unite(tracker_->take(waiting));
}

void Player::finish_statement(bool committed) {
    StatementFacts seen = facts();
    seen.committed = committed;
    report_.committed = report_.committed || committed;
    report_.footprint.unite(tracker_->take(seen));
    step_failed_ = step_failed_ || failed_;
    run_instructions();
}

void Player::keep_row(const Instruction& instruction) {
    if (report_.statements.empty()) return;
    keep_values(instruction, report_.statements.back());
}

void Player::keep_values(const Instruction& instruction, const StatementOutcome& outcome) {
    if (outcome.rows.size() > 1) {
        return fail_statement("P0003", fmt::format("\\gset got {} rows where one was expected", outcome.rows.size()));
    }
    for (std::size_t column = 0; column < outcome.columns.size(); ++column) {
        variables_.insert_or_assign(instruction.text + outcome.columns[column],
                                    outcome.rows.empty() ? std::nullopt : outcome.rows.front()[column]);
    }
}

/// The step is over: what the application does about an error belongs to the same event.
void Player::end_step() {
    phase_ = Phase::idle;
    need_ = Need::nothing;
    timeout_ = OwnTimeout::none;
    if (!step_failed_ || definition_->on_error.action == OnError::ignore || disconnected_) return;
    const bool again = definition_->on_error.action == OnError::retry && retries_done_ < definition_->on_error.retries;
    if (again) {
        ++retries_done_;
        next_step_ = 0;
        report_.restarts = true;
    } else {
        gave_up_ = true;
        report_.gives_up = true;
    }
    if (!link_->in_transaction()) return;
    phase_ = Phase::rolling_back;
    need_ = Need::answer;
    tracker_->forget_transaction();
    link_->send("ROLLBACK");
}

StepReport Player::report() const {
    StepReport report = report_;
    report.in_transaction = link_->in_transaction();
    if (disconnected_) {
        report.verdict = Verdict::disconnected;
    } else if (step_failed_) {
        report.verdict = Verdict::failed;
    }
    return report;
}

}  // namespace rowlock::race
