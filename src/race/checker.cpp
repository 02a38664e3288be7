#include "race/checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "race/permutation.hpp"
#include "race/serial_oracle.hpp"

namespace rowlock::race {

namespace {

using Clock = std::chrono::steady_clock;

/// Good executions kept to compare a bad one with.
constexpr std::size_t kept_good_max = 2'000;
constexpr std::size_t serial_orders_max = 24;
/// The phases with few preemptions, which come before a long exploration, and the executions of each.
constexpr std::size_t preemptions_max = 2;
constexpr std::size_t bounded_executions_max = 64;
constexpr std::uint64_t long_exploration = 2'000;

/// Fewest preemptions, then sessions, then events.
std::tuple<std::size_t, std::size_t, std::size_t> size_of(const Execution& execution) {
    std::set<std::size_t> sessions;
    for (const Event& event : execution.events) sessions.insert(event.move.session);
    return {count_preemptions(execution), sessions.size(), execution.events.size()};
}

std::optional<std::uint64_t> interleavings(const Scenario& scenario) {
    // A product of binomials, each exact: n steps so far, k more.
    std::uint64_t total = 1;
    std::uint64_t steps = 0;
    for (const SessionScript& session : scenario.sessions) {
        for (std::uint64_t k = 1; k <= session.steps.size(); ++k) {
            ++steps;
            if (total > UINT64_MAX / steps) return std::nullopt;
            total = total * steps / k;
        }
    }
    return total;
}

bool is_deadlock_victim(const Event& event) {
    return std::ranges::any_of(event.reports, [](const StepReport& report) {
        return std::ranges::any_of(report.statements,
                                   [](const auto& statement) { return statement.sqlstate == "40P01"; });
    });
}

/// How many pairs of steps come in another order; the first of them goes to `pair`.
std::size_t distance(const Execution& one, const Execution& other, std::pair<Move, Move>& pair) {
    const auto place = [](const Execution& execution, const Move& move) {
        const auto at = std::ranges::find_if(execution.events, [&](const Event& event) {
            return event.move.kind == move.kind && event.move.session == move.session && event.move.step == move.step;
        });
        return at - execution.events.begin();
    };
    std::size_t count = 0;
    bool found = false;
    for (std::size_t i = 0; i < one.events.size(); ++i) {
        for (std::size_t j = i + 1; j < one.events.size(); ++j) {
            const Move& first = one.events[i].move;
            const Move& second = one.events[j].move;
            if (place(other, first) <= place(other, second)) continue;
            const bool matters = are_dependent(one.events[i].footprint, one.events[j].footprint);
            if (matters && !found) pair = {first, second};
            found = found || matters;
            ++count;
        }
    }
    return count;
}

class Checker {
  public:
    Checker(const Scenario& scenario, Stage& stage, const std::string& objection, const CheckOptions& options)
        : scenario_(scenario), stage_(stage), options_(options), objection_(objection), started_(Clock::now()) {}

    CheckResult run() {
        result_.scenario = scenario_.name;
        result_.interleavings = count_interleavings(scenario_);
        if (!scenario_.permutations.empty()) {
            play_permutations();
            return finished();
        }
        make_oracle();
        play_serial_orders();
        const auto total = interleavings(scenario_);
        if (!is_over() && (!total || *total > long_exploration)) play_with_few_preemptions();
        if (!is_over()) play_all();
        return finished();
    }

  private:
    CheckResult finished() {
        for (Finding& finding : result_.findings) find_nearest_good(finding);
        std::ranges::sort(result_.findings, {}, [](const Finding& f) { return std::tuple(f.kind, f.preemptions); });
        result_.elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started_);
        return std::move(result_);
    }

    /// Only these, as the file asks; "exhausted" then means that all of them were played.
    void play_permutations() {
        result_.listed = true;
        result_.oracle = "off: only the permutations of the file are played";
        for (const Permutation& permutation : scenario_.permutations) {
            if (is_over()) return;
            if (!play_permutation_with_reruns(permutation)) return;
        }
        result_.summary.exhausted = true;
    }

    bool play_permutation_with_reruns(const Permutation& permutation) {
        const ExplorerOptions defaults;
        for (std::size_t attempt = 0; attempt <= defaults.reruns_max; ++attempt) {
            try {
                const Execution execution = play_permutation(scenario_, permutation, stage_);
                ++result_.summary.executions;
                take(execution, false);
                return true;
            } catch (const StageFault& fault) {
                ++result_.summary.reruns;
                result_.summary.problem = fault.what();
            }
        }
        result_.summary.server_decided = true;
        return false;
    }

    [[nodiscard]] bool is_out_of_time() const {
        return Clock::now() - started_ > options_.time_max || (options_.is_interrupted && options_.is_interrupted());
    }
    [[nodiscard]] bool is_over() const {
        return is_out_of_time() || (options_.stop_at_first && !result_.findings.empty());
    }

    void make_oracle() {
        if (!scenario_.invariants.empty()) {
            result_.oracle = "off: there are invariants";
        } else if (scenario_.oracle == OracleUnit::off) {
            result_.oracle = "off: the file says so";
        } else if (!objection_.empty()) {
            result_.oracle = "off: " + objection_;
        } else {
            try {
                oracle_.emplace(scenario_, stage_);
                result_.oracle = scenario_.oracle == OracleUnit::session ? "session" : "transaction";
            } catch (const StageFault& fault) {
                result_.oracle = fmt::format("off: {}", fault.what());
            }
        }
    }

    ExplorerOptions explorer_options() {
        ExplorerOptions explorer;
        explorer.footprints = &footprints_;
        explorer.reduce = options_.reduce;
        explorer.executions_max = options_.executions_max;
        explorer.is_out_of_time = [this] { return is_out_of_time(); };
        return explorer;
    }

    /// They end right by definition: what goes wrong here is no race.
    void play_serial_orders() {
        ExplorerOptions explorer = explorer_options();
        explorer.reduce = false;
        explorer.preemptions_max = 0;
        explorer.executions_max = serial_orders_max;
        const auto summary = explore(stage_, explorer, [&](const Execution& execution) {
            ++result_.serial_orders;
            return take(execution, true);
        });
        if (summary.server_decided) result_.summary = summary;
    }

    /// Sleep sets would lose schedules here, so there is no reduction.
    /// Source: Coons, Musuvathi, McKinley: Bounded Partial-Order Reduction, OOPSLA 2013
    void play_with_few_preemptions() {
        for (std::size_t preemptions = 1; preemptions <= preemptions_max && !is_over(); ++preemptions) {
            ExplorerOptions explorer = explorer_options();
            explorer.reduce = false;
            explorer.preemptions_max = preemptions;
            explorer.executions_max = bounded_executions_max;
            (void)explore(stage_, explorer, [&](const Execution& execution) { return take(execution, false); });
        }
    }

    void forget_counts() {
        for (Finding& finding : result_.findings) finding.count = 0;
        result_.broken = 0;
        result_.unreadable = 0;
        result_.outcomes.clear();
        result_.refusals.clear();
    }

    void play_all() {
        forget_counts();
        ExplorerOptions explorer = explorer_options();
        if (options_.symmetry) {
            for (const SessionScript& session : scenario_.sessions) explorer.groups.push_back(session.group);
        }
        explorer.on_restart = [this] { forget_counts(); };
        result_.summary = explore(stage_, explorer, [&](const Execution& execution) { return take(execution, false); });
    }

    bool take(const Execution& execution, bool serial) {
        bool bad = false;
        for (const InvariantAnswer& answer : execution.ending.answers) {
            if (!answer.readable) ++result_.unreadable;
            if (!answer.readable || answer.rows.empty()) continue;
            add(Finding::Kind::invariant, scenario_.invariants[answer.invariant].name, execution, answer, serial);
            bad = true;
        }
        for (const Event& event : execution.events) {
            for (const std::string& name : event.violated) {
                add(Finding::Kind::invariant, name + " (on the way)", execution, std::nullopt, serial);
                bad = true;
            }
        }
        if (execution.ending.kind == Ending::Kind::stuck) {
            add(Finding::Kind::stuck, execution.ending.problem, execution, std::nullopt, serial);
            bad = true;
        }
        if (has_unhandled_deadlock(execution)) {
            add(Finding::Kind::deadlock, "deadlock", execution, std::nullopt, serial);
            bad = true;
        }
        if (oracle_ && execution.ending.kind == Ending::Kind::complete && !oracle_->explains(execution)) {
            add(Finding::Kind::not_serial, "the end state is that of no serial order", execution, std::nullopt, serial);
            bad = true;
        }
        if (!bad && good_.size() < kept_good_max) good_.push_back(execution);
        count_refusals(execution);
        result_.outcomes.insert(outcome_text(scenario_, execution));
        result_.broken += bad ? 1U : 0U;
        if (options_.progress) options_.progress(++played_, result_.broken);
        return !(bad && options_.stop_at_first);
    }

    void count_refusals(const Execution& execution) {
        std::set<std::string> seen;
        for (const Event& event : execution.events) {
            for (const StepReport& report : event.reports) {
                for (const StatementOutcome& statement : report.statements) {
                    // 25P02 only says that something before it failed.
                    if (statement.sqlstate.empty() || statement.sqlstate == "25P02") continue;
                    seen.insert(step_label(scenario_, report.session, report.step) + " " + statement.sqlstate);
                }
            }
        }
        for (const std::string& refusal : seen) ++result_.refusals[refusal];
    }

    /// An application that runs the transaction again has dealt with it.
    [[nodiscard]] bool has_unhandled_deadlock(const Execution& execution) const {
        return std::ranges::any_of(execution.events, [&](const Event& event) {
            return is_deadlock_victim(event) &&
                   std::ranges::none_of(event.reports, [](const StepReport& report) { return report.restarts; });
        });
    }

    void add(Finding::Kind kind, const std::string& title, const Execution& execution,
             const std::optional<InvariantAnswer>& answer, bool serial) {
        const auto same = [&](const Finding& finding) { return finding.kind == kind && finding.title == title; };
        auto at = std::ranges::find_if(result_.findings, same);
        const bool is_new = at == result_.findings.end();
        if (is_new) at = result_.findings.insert(at, Finding{kind, title});
        ++at->count;
        at->in_serial_order = at->in_serial_order || serial;
        if (!is_new && size_of(execution) >= size_of(at->execution)) return;
        at->execution = execution;
        at->answer = answer;
        at->preemptions = count_preemptions(execution);
    }

    void find_nearest_good(Finding& finding) const {
        std::size_t best = SIZE_MAX;
        for (const Execution& good : good_) {
            std::pair<Move, Move> pair;
            const std::size_t apart = distance(finding.execution, good, pair);
            if (apart == 0 || apart >= best) continue;
            best = apart;
            finding.nearest_good = good;
            finding.order_that_matters =
                fmt::format("{} before {}", step_label(scenario_, pair.first.session, pair.first.step),
                            step_label(scenario_, pair.second.session, pair.second.step));
        }
    }

    const Scenario& scenario_;
    Stage& stage_;
    const CheckOptions& options_;
    const std::string& objection_;
    Clock::time_point started_;
    CheckResult result_;
    std::optional<SerialOracle> oracle_;
    StepFootprints footprints_;
    std::vector<Execution> good_;
    std::size_t played_ = 0;
};

}  // namespace

int CheckResult::exit_code() const {
    if (!findings.empty()) return 1;
    const bool is_sure = summary.exhausted && !summary.server_decided && unreadable == 0;
    return is_sure ? 0 : 3;
}

CheckResult check(const Scenario& scenario, Stage& stage, const std::string& objection, const CheckOptions& options) {
    return Checker(scenario, stage, objection, options).run();
}

std::string outcome_text(const Scenario& scenario, const Execution& execution) {
    std::vector<std::string> told(scenario.sessions.size());
    for (const Event& event : execution.events) {
        for (const StepReport& report : event.reports) {
            if (report.is_waiting()) continue;
            std::string& text = told[report.session];
            text += scenario.sessions[report.session].steps[report.step].name + ":";
            for (const StatementOutcome& statement : report.statements) {
                text += statement.sqlstate + statement.tag;
                for (const auto& row : statement.rows) {
                    for (const auto& value : row) text += "|" + value.value_or("NULL");
                    text += ";";
                }
            }
            text += "\n";
        }
    }
    std::string all = execution.ending.problem + "\n" + execution.ending.final_state;
    for (const std::string& text : told) all += "--\n" + text;
    return all;
}

std::string count_interleavings(const Scenario& scenario) {
    const auto total = interleavings(scenario);
    return total ? std::to_string(*total) : "more than 10^18";
}

}  // namespace rowlock::race
