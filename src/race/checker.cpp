#include "race/checker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "race/minimiser.hpp"
#include "race/permutation.hpp"
#include "race/serial_oracle.hpp"
#include "race/sql_tokens.hpp"

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

/// How far apart two executions are: pairs of events that come in another order and depend on each other, then all
/// pairs that come in another order.
struct Distance {
    std::size_t dependent = 0;
    std::size_t all = 0;
    std::optional<Finding::Pair> first{};  ///< Of the dependent ones.

    [[nodiscard]] bool is_less(const Distance& other) const {
        return std::tie(dependent, all) < std::tie(other.dependent, other.all);
    }
};

std::ptrdiff_t place_of(const Execution& execution, const Move& move) {
    const auto at = std::ranges::find_if(execution.events, [&](const Event& event) {
        return event.move.kind == move.kind && event.move.session == move.session && event.move.step == move.step;
    });
    return at - execution.events.begin();
}

Distance distance(const Execution& one, const Execution& other) {
    Distance apart;
    for (std::size_t i = 0; i < one.events.size(); ++i) {
        for (std::size_t j = i + 1; j < one.events.size(); ++j) {
            if (place_of(other, one.events[i].move) <= place_of(other, one.events[j].move)) continue;
            ++apart.all;
            if (!are_dependent(one.events[i].footprint, one.events[j].footprint)) continue;
            ++apart.dependent;
            if (!apart.first) apart.first = {i, j};
        }
    }
    return apart;
}

bool names_isolation(const Scenario& scenario) {
    const auto names = [](std::string_view sql) {
        const std::vector<std::string> words = sql_words(sql);
        return std::ranges::find(words, "isolation") != words.end() ||
               std::ranges::find(words, "default_transaction_isolation") != words.end();
    };
    return std::ranges::any_of(scenario.sessions, [&](const SessionScript& session) {
        return names(session.setup) || std::ranges::any_of(session.steps, names, &Step::sql);
    });
}

class Checker {
  public:
    Checker(const Scenario& scenario, Stage& stage, const std::string& objection, const CheckOptions& options)
        : scenario_(scenario), stage_(stage), options_(options), objection_(objection), started_(Clock::now()) {}

    CheckResult run() {
        try {
            play();
            if (options_.explain) {
                for (Finding& finding : result_.findings) explain(finding);
            }
        } catch (const StageStopped& stopped) {
            result_.summary.server_decided = true;
            result_.summary.problem = stopped.what();
        }
        return finished();
    }

  private:
    void play() {
        result_.scenario = scenario_.name;
        result_.interleavings = count_interleavings(scenario_);
        result_.names_isolation = names_isolation(scenario_);
        if (!scenario_.permutations.empty()) {
            return play_permutations();
        }
        make_oracle();
        play_serial_orders();
        const auto total = interleavings(scenario_);
        if (!is_over() && (!total || *total > long_exploration)) play_with_few_preemptions();
        if (!is_over()) play_all();
    }

    CheckResult finished() {
        result_.stopped_at_first = options_.stop_at_first && !result_.findings.empty();
        for (Finding& finding : result_.findings) find_nearest_good(finding);
        std::ranges::sort(result_.findings, {},
                          [](const Finding& f) { return std::tuple(f.symptom.kind, f.preemptions); });
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
        try {
            const Execution execution = with_reruns([&] { return play_permutation(scenario_, permutation, stage_); },
                                                    [&](const StageFault& fault) {
                                                        ++result_.summary.reruns;
                                                        result_.summary.problem = fault.what();
                                                    });
            ++result_.summary.executions;
            take(execution, false);
            return true;
        } catch (const StageFault&) {
            result_.summary.server_decided = true;
            return false;
        }
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
            } catch (const SerialOracleOff& reason) {
                result_.oracle = fmt::format("off: {}", reason.what());
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
        result_.left_to_server = 0;
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

    [[nodiscard]] std::vector<Symptom> symptoms(const Execution& execution) const {
        return symptoms_of(scenario_, execution, oracle_ ? &*oracle_ : nullptr);
    }

    bool take(const Execution& execution, bool serial) {
        const std::vector<Symptom> found = symptoms(execution);
        for (const Symptom& symptom : found) add(symptom, execution, serial);
        for (const InvariantAnswer& answer : execution.ending.answers) {
            if (answer.readable) continue;
            ++result_.unreadable;
            result_.unreadable_problem =
                fmt::format("\"{}\": {}", scenario_.invariants[answer.invariant].name, answer.problem);
        }
        if (found.empty() && good_.size() < kept_good_max) good_.push_back(execution);
        if (!options_.decides_wakes && had_choice(execution)) ++result_.left_to_server;
        count_refusals(execution);
        result_.outcomes.insert(outcome_text(scenario_, execution));
        result_.broken += found.empty() ? 0U : 1U;
        if (options_.progress) options_.progress(++played_, result_.broken);
        return found.empty() || !options_.stop_at_first;
    }

    /// Somebody was woken while others waited as well, or there was a deadlock. That only one was free when it was
    /// looked at says little: two waiters for one row come out in either order.
    static bool had_choice(const Execution& execution) {
        std::set<std::size_t> waiting;
        for (const Event& event : execution.events) {
            const bool wakes = std::ranges::any_of(event.reports, &StepReport::woken);
            if ((wakes && waiting.size() > 1) || event.move.kind == Move::Kind::deadlock_check) return true;
            for (const StepReport& report : event.reports) {
                const auto is_deadlock = [](const auto& said) { return said.sqlstate == "40P01"; };
                if (std::ranges::any_of(report.statements, is_deadlock)) return true;
                waiting.erase(report.session);
                if (report.is_waiting()) waiting.insert(report.session);
            }
        }
        return false;
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

    void add(const Symptom& symptom, const Execution& execution, bool serial) {
        const auto is_same = [&](const Finding& finding) { return finding.symptom.is_like(symptom); };
        auto at = std::ranges::find_if(result_.findings, is_same);
        const bool is_new = at == result_.findings.end();
        if (is_new) at = result_.findings.insert(at, Finding{symptom});
        ++at->count;
        at->in_serial_order = at->in_serial_order || serial;
        if (is_new || size_of(execution) < size_of(at->execution)) show_by(*at, symptom, execution);
    }

    static void show_by(Finding& finding, const Symptom& symptom, const Execution& execution) {
        finding.symptom = symptom;
        finding.execution = execution;
        finding.preemptions = count_preemptions(execution);
    }

    /// Plays shorter schedules, and the shortest once more with a look at the locks.
    void explain(Finding& finding) {
        MinimiserOptions minimiser;
        minimiser.shows = [&](const Execution& execution) { return symptom_in(finding, execution).has_value(); };
        minimiser.is_out_of_time = [this] { return is_out_of_time(); };
        if (!finding.in_serial_order && scenario_.permutations.empty()) {
            const Execution shortest = minimise(stage_, finding.execution, minimiser);
            show_by(finding, *symptom_in(finding, shortest), shortest);
        }
        std::vector<Move> moves;
        for (const Event& event : finding.execution.events) moves.push_back(event.move);
        const std::optional<Execution> seen = play_moves(stage_, moves, true);
        if (!seen) return;
        if (const auto symptom = symptom_in(finding, *seen)) show_by(finding, *symptom, *seen);
    }

    [[nodiscard]] std::optional<Symptom> symptom_in(const Finding& finding, const Execution& execution) const {
        for (Symptom& symptom : symptoms(execution)) {
            if (symptom.is_like(finding.symptom)) return std::move(symptom);
        }
        return std::nullopt;
    }

    void find_nearest_good(Finding& finding) const {
        std::optional<Distance> nearest;
        for (const Execution& good : good_) {
            const Distance apart = distance(finding.execution, good);
            if (apart.all == 0 || (nearest && !apart.is_less(*nearest))) continue;
            nearest = apart;
            finding.nearest_good = good;
        }
        if (nearest) finding.order_that_matters = nearest->first;
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

std::string told_by(const StatementOutcome& statement) {
    std::string text = statement.sqlstate + statement.tag;
    for (const auto& row : statement.rows) {
        for (const auto& value : row) text += "|" + value.value_or("NULL");
        text += ";";
    }
    return text;
}

}  // namespace

int CheckResult::exit_code() const {
    if (!findings.empty()) return 1;
    const bool is_sure = summary.exhausted && !summary.server_decided && unreadable == 0 && left_to_server == 0;
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
            for (const StatementOutcome& statement : report.statements) text += told_by(statement);
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
