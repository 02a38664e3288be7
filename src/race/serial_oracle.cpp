#include "race/serial_oracle.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "race/statement_analysis.hpp"
#include "race/written_columns.hpp"

namespace rowlock::race {

namespace {

/// n sessions have about e * n! serial orders of subsets: 5 of them 326.
constexpr std::size_t sessions_max = 5;
constexpr std::size_t transaction_orders_max = 2'000;
/// Fits a smallint.
constexpr std::int64_t sequence_shift = 1'000;

struct Committed {
    std::set<std::size_t> surely;
    std::set<std::size_t> perhaps;
};

Committed committed_sessions(const Execution& execution, std::size_t session_count) {
    std::vector<bool> committed(session_count, false);
    std::vector<bool> failed(session_count, false);
    for (const Event& event : execution.events) {
        for (const StepReport& report : event.reports) {
            if (report.committed) committed[report.session] = true;
            if (report.verdict == Verdict::failed) failed[report.session] = true;
            // What was retried left nothing behind.
            if (report.restarts) failed[report.session] = false;
        }
    }
    Committed result;
    for (std::size_t session = 0; session < session_count; ++session) {
        if (!committed[session]) continue;
        (failed[session] ? result.perhaps : result.surely).insert(session);
    }
    return result;
}

std::vector<std::vector<std::size_t>> orders_of_subsets(std::size_t session_count) {
    std::vector<std::vector<std::size_t>> orders;
    for (std::size_t mask = 0; mask < (std::size_t{1} << session_count); ++mask) {
        std::vector<std::size_t> order;
        for (std::size_t session = 0; session < session_count; ++session) {
            if ((mask >> session & 1U) != 0) order.push_back(session);
        }
        do {
            orders.push_back(order);
        } while (std::ranges::next_permutation(order).found);
    }
    return orders;
}

/// Until it is gone the server makes up other values.
class ShiftedValues {
  public:
    explicit ShiftedValues(Stage& stage) : stage_(stage), any_(stage.shift_invented_values(sequence_shift)) {}
    ~ShiftedValues() { stage_.shift_invented_values(0); }
    ShiftedValues(const ShiftedValues&) = delete;
    ShiftedValues& operator=(const ShiftedValues&) = delete;
    [[nodiscard]] bool any() const noexcept { return any_; }

  private:
    Stage& stage_;
    bool any_;
};

}  // namespace

SerialOracle::SerialOracle(const Scenario& scenario, Stage& stage) : scenario_(&scenario), stage_(&stage) {
    for (const std::vector<std::size_t>& order : orders_of_subsets(scenario.sessions.size())) play(order);
    if (scenario.oracle == OracleUnit::transaction) play_by_transactions();
}

std::string SerialOracle::state_after(const std::vector<std::size_t>& order) {
    stage_->restart();
    for (const std::size_t session : order) {
        while (true) {
            const std::vector<Move> moves = stage_->moves();
            const auto own = std::ranges::find(moves, session, &Move::session);
            if (own == moves.end()) break;
            stage_->perform(*own);
        }
    }
    return stage_->finish().serial_state;
}

void SerialOracle::play(const std::vector<std::size_t>& order) {
    const auto end_state = [&] { return with_reruns([&] { return state_after(order); }); };
    const std::string state = end_state();
    states_[std::set<std::size_t>(order.begin(), order.end())].insert(state);
    // Times and uuids are others the second time by themselves.
    const ShiftedValues shifted(*stage_);
    if (shifted.any() && end_state() != state) {
        throw SerialOracleOff("what the server makes up by a default ends up in other columns, too");
    }
}

/// All orders in which sessions change only between transactions; depth first, by replaying each prefix.
void SerialOracle::play_by_transactions() {
    std::set<std::size_t> all;
    for (std::size_t session = 0; session < scenario_->sessions.size(); ++session) all.insert(session);
    std::vector<std::vector<std::size_t>> waiting{{}};
    for (std::size_t count = 0; !waiting.empty() && count < transaction_orders_max; ++count) {
        const std::vector<std::size_t> units = std::move(waiting.back());
        waiting.pop_back();
        stage_->restart();
        for (const std::size_t session : units) {
            bool is_open = true;
            while (is_open) {
                const std::vector<Move> moves = stage_->moves();
                const auto own = std::ranges::find(moves, session, &Move::session);
                if (own == moves.end()) break;
                is_open = stage_->perform(*own).reports.front().in_transaction;
            }
        }
        const std::vector<Move> moves = stage_->moves();
        if (moves.empty()) states_[all].insert(stage_->finish().serial_state);
        for (const Move& move : moves) {
            waiting.push_back(units);
            waiting.back().push_back(move.session);
        }
    }
}

bool SerialOracle::explains(const Execution& execution) const {
    const Committed committed = committed_sessions(execution, scenario_->sessions.size());
    for (const auto& [sessions, states] : states_) {
        const bool holds_sure = std::ranges::includes(sessions, committed.surely);
        const bool only_known = std::ranges::all_of(sessions, [&](std::size_t session) {
            return committed.surely.contains(session) || committed.perhaps.contains(session);
        });
        if (holds_sure && only_known && states.contains(execution.ending.serial_state)) return true;
    }
    return false;
}

namespace {

std::string text_of_steps(const Scenario& scenario) {
    std::string all;
    for (const SessionScript& session : scenario.sessions) {
        for (const Step& step : session.steps) all += step.sql + ";\n";
    }
    return all;
}

std::string objection_to_code(const Scenario& scenario, const Catalog& catalog) {
    if (scenario.sessions.size() > sessions_max) return "there are more than five sessions";
    const Reach reach = reach_of(text_of_steps(scenario), catalog);
    if (reads_surroundings(reach)) return "a step reads the clock or an id of the server's";
    static constexpr std::array<std::string_view, 6> random_words{
        "random", "gen_random_uuid", "gen_random_bytes", "uuid_generate_v4", "nextval", "pg_backend_pid"};
    for (const std::string_view word : random_words) {
        if (reach.words.contains(word)) return "a step uses " + std::string(word);
    }
    for (const auto& [oid, count] : reach.named) {
        const auto relation = catalog.relations.find(oid);
        if (relation != catalog.relations.end() && relation->second.is_sequence) {
            return "a step draws numbers from the sequence " + relation->second.name;
        }
    }
    return {};
}

/// A column that is left out of the comparison must hold nothing but what its default gives.
std::string objection_to_writes(const Scenario& scenario, const Catalog& catalog, const TableShapes& shapes) {
    std::string all = text_of_steps(scenario);
    for (const auto& [name, body] : catalog.functions_by_name) all += body + ";\n";
    for (const auto& [id, relation] : catalog.relations) all += relation.code + ";\n";
    const std::string column = column_written_by(all, shapes);
    return column.empty() ? column : "values for " + column + " come from its default and from the steps, too";
}

}  // namespace

std::string oracle_objection(const Scenario& scenario, const Catalog& catalog, const TableShapes& shapes) {
    const std::string objection = objection_to_code(scenario, without_inventing_code(catalog, shapes));
    return objection.empty() ? objection_to_writes(scenario, catalog, shapes) : objection;
}

}  // namespace rowlock::race
