// One execution of a scenario: what was done, move by move, and what came of it. Values only.
#pragma once

#include <compare>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "race/footprint.hpp"

namespace rowlock::race {

/// A thing that can happen next.
struct Move {
    enum class Kind {
        step,            ///< A session sends its next step.
        deadlock_check,  ///< A session that waits in a cycle has its deadlock_timeout run out.
        time_out,        ///< A session sends its next step, and its lock_timeout or statement_timeout runs out.
    };
    Kind kind = Kind::step;
    std::size_t session = 0;
    std::size_t step = 0;
    /// Where an event frees several waiters at once, which of them goes first, each time; missing ones are 0: the one
    /// that has waited longest.
    std::vector<std::size_t> wake_order{};

    auto operator<=>(const Move&) const = default;
};

struct StatementOutcome {
    std::string tag{};
    std::vector<std::string> columns{};
    std::vector<std::vector<std::optional<std::string>>> rows{};
    std::string sqlstate{};  ///< Empty unless the statement failed.
    std::string message{};
    std::string detail{};

    auto operator<=>(const StatementOutcome&) const = default;
};

struct SaidNotice {
    std::string severity;
    std::string message;
    auto operator<=>(const SaidNotice&) const = default;
};

enum class Verdict {
    done,
    failed,             ///< The server refused a statement; `outcome` says how.
    blocked,            ///< Waits for a session of the scenario.
    blocked_by_others,  ///< Waits for somebody outside of the scenario.
    disconnected,       ///< `\disconnect`, or the server ended the session.
};

/// What is known of one session's step at the end of an event.
struct StepReport {
    std::size_t session = 0;
    std::size_t step = 0;
    Verdict verdict = Verdict::done;
    std::vector<StatementOutcome> statements{};
    std::vector<SaidNotice> notices{};
    std::vector<std::size_t> blocked_by{};  ///< Sessions.
    bool woken = false;                     ///< It had been waiting, and this event freed it.
    bool restarts = false;                  ///< `on_error retry`: the session is at its first step again.
    bool gives_up = false;                  ///< `on_error stop`, or no retry left.
    bool committed = false;                 ///< A transaction was committed here.
    bool in_transaction = false;            ///< One is open afterwards.
    Footprint footprint{};

    [[nodiscard]] bool is_waiting() const {
        return verdict == Verdict::blocked || verdict == Verdict::blocked_by_others;
    }
};

/// A lock held or waited for, for people to read.
struct LockLine {
    enum class Kind { table, row, advisory };
    Kind kind = Kind::table;
    std::size_t session = 0;
    std::string relation{};
    std::string key{};   ///< Of a row, such as "id=1", or of an advisory lock.
    std::string mode{};  ///< As SQL writes it: "ROW EXCLUSIVE", "FOR UPDATE"; of a row waited for it is not known.
    bool granted = true;

    auto operator<=>(const LockLine&) const = default;
};

/// A point inside of an event where several waiters were free to go on.
struct WakeChoice {
    std::vector<std::size_t> sessions;  ///< In order of arrival.
    std::size_t taken = 0;
};

/// A move, and every step that it completed.
struct Event {
    Move move{};
    std::vector<StepReport> reports{};  ///< The mover's first, then the woken ones in their order.
    std::vector<WakeChoice> wake_choices{};
    std::vector<LockLine> locks{};        ///< All that the sessions hold afterwards; only where they were asked for.
    Footprint footprint{};                ///< Of all reports together.
    bool may_time_out = false;            ///< The mover waits, and has a time-out of its own that might end that.
    std::vector<std::string> violated{};  ///< `invariant always` that did not hold after it.
};

/// The answer of an invariant's query.
struct InvariantAnswer {
    std::size_t invariant = 0;
    bool readable = true;  ///< False where the query failed or waited too long: then nothing is known.
    std::string problem{};
    std::vector<std::string> columns{};
    std::vector<std::vector<std::optional<std::string>>> rows{};  ///< The violating ones.
};

/// How an execution ended.
struct Ending {
    enum class Kind {
        complete,
        stuck,   ///< Sessions wait, and nothing that can happen would free them.
        failed,  ///< The server or the machinery did something that was not foreseen; `problem` says what.
    };
    Kind kind = Kind::complete;
    std::string problem{};
    std::vector<InvariantAnswer> answers{};
    std::string final_state{};   ///< Every table's rows, in a canonical order.
    std::string serial_state{};  ///< The same as the serial oracle compares it: without what the server makes up.
};

struct Execution {
    std::vector<Event> events{};
    Ending ending{};
};

}  // namespace rowlock::race
