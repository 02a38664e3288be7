#include "race/spec_export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace rowlock::race {

namespace {

std::string spec_name(std::string_view name) {
    std::string text = "\"";
    for (const char c : name) {
        if (c == '"') text += '"';
        text += c;
    }
    return text + '"';
}

class SpecWriter {
  public:
    SpecWriter(const Scenario& scenario, const CheckResult& result) : scenario_(scenario), result_(result) {}

    std::string write() {
        std::string text = limits();
        for (const std::string& setup : scenario_.setups) text += fmt::format("setup\n{{\n{}\n}}\n\n", setup);
        if (!scenario_.teardown.empty()) text += fmt::format("teardown\n{{\n{}\n}}\n\n", scenario_.teardown);
        for (std::size_t session = 0; session < scenario_.sessions.size(); ++session) text += session_text(session);
        text += invariants();
        for (const std::string& permutation : permutations()) text += "permutation " + permutation + "\n";
        return text;
    }

  private:
    [[nodiscard]] std::string limits() const {
        std::set<std::string> unknown;
        for (const SessionScript& session : scenario_.sessions) {
            if (session.on_error.action != OnError::ignore) unknown.insert("on_error");
            if (!session.role.empty()) unknown.insert("role");
            for (const Step& step : session.steps) {
                const bool is_plain = step.program.size() == 1 && step.program[0].kind == Instruction::Kind::send;
                if (!is_plain) unknown.insert("\\gset, \\if, \\disconnect");
            }
        }
        std::string text = fmt::format("# {}, written by rowlock race\n", scenario_.name);
        for (const std::string& name : unknown) text += fmt::format("# isolationtester does not know {}.\n", name);
        return text + "\n";
    }

    [[nodiscard]] std::string step_name(std::size_t session, std::size_t step) const {
        const std::string& name = scenario_.sessions[session].steps[step].name;
        const auto uses = std::ranges::count_if(scenario_.sessions, [&](const SessionScript& other) {
            return std::ranges::any_of(other.steps, [&](const Step& own) { return own.name == name; });
        });
        return spec_name(uses > 1 ? scenario_.sessions[session].name + "_" + name : name);
    }

    [[nodiscard]] std::string session_text(std::size_t index) const {
        const SessionScript& session = scenario_.sessions[index];
        std::string text = fmt::format("session {}\n", spec_name(session.name));
        if (!session.setup.empty()) text += fmt::format("setup {{ {} }}\n", session.setup);
        for (std::size_t step = 0; step < session.steps.size(); ++step) {
            text += fmt::format("step {} {{ {} }}\n", step_name(index, step), session.steps[step].sql);
        }
        if (!session.teardown.empty()) text += fmt::format("teardown {{ {} }}\n", session.teardown);
        return text + "\n";
    }

    [[nodiscard]] std::string invariants() const {
        if (scenario_.invariants.empty()) return {};
        std::string text = "session \"invariants\"\n";
        for (const Invariant& invariant : scenario_.invariants) {
            text += fmt::format("step {} {{ {} }}\n", spec_name(invariant.name), invariant.sql);
        }
        return text + "\n";
    }

    [[nodiscard]] std::string permutation_of(const Execution& execution) const {
        std::string text;
        for (const Event& event : execution.events) {
            if (event.move.kind != Move::Kind::step) continue;
            text += step_name(event.move.session, event.move.step) + " ";
        }
        for (const Invariant& invariant : scenario_.invariants) text += spec_name(invariant.name) + " ";
        return text;
    }

    [[nodiscard]] std::vector<std::string> permutations() const {
        std::vector<std::string> texts;
        const auto add = [&](const Execution& execution) {
            std::string text = permutation_of(execution);
            if (std::ranges::find(texts, text) == texts.end()) texts.push_back(std::move(text));
        };
        for (const Finding& finding : result_.findings) {
            add(finding.execution);
            if (finding.nearest_good) add(*finding.nearest_good);
        }
        return texts;
    }

    const Scenario& scenario_;
    const CheckResult& result_;
};

}  // namespace

std::string spec_text(const Scenario& scenario, const CheckResult& result) {
    return SpecWriter(scenario, result).write();
}

}  // namespace rowlock::race
