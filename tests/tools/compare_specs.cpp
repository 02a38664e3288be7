// Plays the explicit permutations of PostgreSQL's isolation specs and compares each with its expected file:
//   compare_specs src/test/isolation/specs src/test/isolation/expected
// Compared are, for each session in order, every step's rows and errors, and which steps waited. Not compared: notices,
// and in which order steps of different sessions that were freed at once are reported. Exit code 1 where something
// differs. The specs come with PostgreSQL's sources, not with this repository.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "race/check_on_server.hpp"
#include "race/permutation.hpp"
#include "race/throwaway_cluster.hpp"
#include "rowlock/error.hpp"

namespace rowlock::race {
namespace {

namespace fs = std::filesystem;

std::string file_text(const fs::path& path) {
    std::stringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

bool is_blank(char c) {
    return std::isspace(static_cast<unsigned char>(c)) != 0;
}

std::string without_blanks(std::string_view text) {
    std::string kept;
    for (const char c : text) {
        if (!is_blank(c)) kept += c;
    }
    return kept;
}

/// How much of the text is `sql`, however either is indented; 0 where it doesn't begin with it.
std::size_t length_of(std::string_view text, std::string_view sql) {
    std::size_t at = 0;
    for (const char c : sql) {
        if (is_blank(c)) continue;
        while (at < text.size() && is_blank(text[at])) ++at;
        if (at == text.size() || text[at] != c) return 0;
        ++at;
    }
    return at;
}

struct Told {
    std::string step{};
    std::string result{};  ///< Rows and errors, blanks taken out.
};

/// What a permutation came to.
struct Outcome {
    std::map<std::size_t, std::vector<Told>> by_session{};
    std::set<std::string> waited{};
    bool cancelled = false;
};

/// A table's frame and notices say nothing that is compared.
std::string plain_result(std::string_view text) {
    std::string kept;
    std::stringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) {
        const bool is_rule = !line.empty() && line.find_first_not_of("-+") == std::string::npos;
        const bool is_count = line.starts_with("(") && (line.ends_with(" row)") || line.ends_with(" rows)"));
        const bool is_notice = line.find(": NOTICE:  ") != std::string::npos ||
                               line.find(": WARNING:  ") != std::string::npos || line.find("INFO:  ") == 0 ||
                               line.find(": NOTIFY \"") != std::string::npos;
        if (!is_rule && !is_count && !is_notice) kept += line;
    }
    return without_blanks(kept);
}

class ExpectedFile {
  public:
    ExpectedFile(const Scenario& scenario, std::string text) : scenario_(scenario), text_(std::move(text)) {}

    /// One for each "starting permutation".
    std::vector<Outcome> outcomes() const {
        constexpr std::string_view start = "\nstarting permutation:";
        std::vector<Outcome> all;
        std::size_t at = text_.find(start);
        while (at != std::string::npos) {
            const std::size_t end = text_.find(start, at + 1);
            const std::size_t line_end = text_.find('\n', at + 1);
            all.push_back(outcome_in(std::string_view(text_).substr(line_end, end - line_end)));
            at = end;
        }
        return all;
    }

  private:
    std::pair<std::size_t, const Step*> find_step(std::string_view name) const {
        for (std::size_t s = 0; s < scenario_.sessions.size(); ++s) {
            for (const Step& step : scenario_.sessions[s].steps) {
                if (step.name == name) return {s, &step};
            }
        }
        return {0, nullptr};
    }

    Outcome outcome_in(std::string_view text) const {
        Outcome outcome;
        outcome.cancelled = text.find("isolationtester: canceling step") != std::string_view::npos;
        std::size_t at = text.find("\nstep ");
        while (at != std::string_view::npos) {
            const std::size_t name_end = text.find(": ", at);
            const std::string_view name = text.substr(at + 6, name_end - at - 6);
            const auto [session, step] = find_step(name);
            std::size_t body = name_end + 2;
            if (step != nullptr) body += length_of(text.substr(body), step->sql);
            const std::size_t end = std::min(text.find("\nstep ", body), text.size());
            std::string_view rest = text.substr(body, end - body);
            while (!rest.empty() && is_blank(rest.front())) rest.remove_prefix(1);
            if (rest.starts_with("<waiting ...>")) {
                outcome.waited.insert(std::string(name));
            } else if (step != nullptr) {
                const std::string_view completed = "<... completed>";
                const std::string_view result = rest.starts_with(completed) ? rest.substr(completed.size()) : rest;
                outcome.by_session[session].push_back({std::string(name), plain_result(result)});
            }
            at = text.find("\nstep ", body);
        }
        return outcome;
    }

    const Scenario& scenario_;
    std::string text_;
};

Outcome outcome_of(const Scenario& scenario, const Execution& execution) {
    Outcome outcome;
    for (const Event& event : execution.events) {
        for (const StepReport& report : event.reports) {
            const std::string& name = scenario.sessions[report.session].steps[report.step].name;
            if (report.is_waiting()) {
                outcome.waited.insert(name);
                continue;
            }
            std::string result;
            for (const StatementOutcome& statement : report.statements) {
                if (!statement.sqlstate.empty()) result += "ERROR:" + statement.message;
                if (!statement.columns.empty()) {
                    result += fmt::format("{}", fmt::join(statement.columns, "|"));
                }
                for (const auto& row : statement.rows) {
                    for (std::size_t i = 0; i < row.size(); ++i) result += (i == 0 ? "" : "|") + row[i].value_or("");
                }
            }
            outcome.by_session[report.session].push_back({name, without_blanks(result)});
        }
    }
    return outcome;
}

/// Empty where they are the same. `marked`: steps that isolationtester reports as waiting whether they wait or not.
std::string difference(const Outcome& expected, const Outcome& ours, const std::set<std::string>& marked) {
    for (const auto& [session, steps] : expected.by_session) {
        const auto own = ours.by_session.find(session);
        if (own == ours.by_session.end() || own->second.size() != steps.size()) return "another number of steps ended";
        for (std::size_t i = 0; i < steps.size(); ++i) {
            // The last step's result is followed by what the teardowns print.
            const bool same = steps[i].result == own->second[i].result ||
                              (i + 1 == steps.size() && steps[i].result.starts_with(own->second[i].result));
            if (steps[i].step != own->second[i].step || !same) {
                const std::string& a = steps[i].result;
                const std::string& b = own->second[i].result;
                const auto parts = std::ranges::mismatch(a, b);
                return fmt::format("step {}: expected \"…{:.90}\", got \"…{:.90}\"", steps[i].step,
                                   std::string(parts.in1, a.end()), std::string(parts.in2, b.end()));
            }
        }
    }
    for (const std::string& step : expected.waited) {
        if (!ours.waited.contains(step) && !marked.contains(step)) return "step " + step + " did not wait";
    }
    for (const std::string& step : ours.waited) {
        if (!expected.waited.contains(step)) return "step " + step + " waited";
    }
    return {};
}

std::set<std::string> marked_steps(const Scenario& scenario, const Permutation& permutation) {
    std::set<std::string> names;
    for (const PermutationElement& element : permutation.elements) {
        if (element.session && !element.markers.empty()) {
            names.insert(scenario.sessions[*element.session].steps[element.step].name);
        }
    }
    return names;
}

struct Count {
    std::size_t same = 0;
    std::size_t different = 0;
    std::size_t unsupported = 0;
    std::size_t same_sets = 0;  ///< Specs without permutations: the same outcomes.
    std::size_t different_sets = 0;
};

class Comparison {
  public:
    Comparison(fs::path expected, std::string server) : expected_(std::move(expected)) {
        ground_.server = std::move(server);
    }

    void compare(const fs::path& spec) {
        const std::string name = spec.stem().string();
        try {
            const Scenario scenario = parse_scenario(file_text(spec), name);
            if (scenario.permutations.empty()) {
                compare_explored(scenario, name);
            } else {
                compare(scenario, name);
            }
        } catch (const std::exception& wrong) {
            ++count.unsupported;
            std::string said = wrong.what();
            std::ranges::replace(said, '\n', ' ');
            fmt::print("not supported  {}: {}\n", name, said);
        }
        std::fflush(stdout);
    }

    Count count;

  private:
    std::vector<std::vector<Outcome>> expectations(const Scenario& scenario, const std::string& name) const {
        std::vector<std::vector<Outcome>> files;
        for (const std::string end : {".out", "_1.out", "_2.out", "_3.out"}) {
            const fs::path path = expected_ / (name + end);
            if (fs::exists(path)) files.push_back(ExpectedFile(scenario, file_text(path)).outcomes());
        }
        return files;
    }

    void compare(const Scenario& scenario, const std::string& name) {
        const auto files = expectations(scenario, name);
        const ScenarioDatabase database(ground_);
        Conductor conductor(scenario, database.conductor_options(""));
        for (std::size_t i = 0; i < scenario.permutations.size(); ++i) {
            std::string reason = "no expected file";
            try {
                const Permutation& permutation = scenario.permutations[i];
                const Outcome ours = outcome_of(scenario, play_permutation(scenario, permutation, conductor));
                for (const auto& outcomes : files) {
                    if (i >= outcomes.size()) continue;
                    reason = difference(outcomes[i], ours, marked_steps(scenario, permutation));
                    if (reason.empty()) break;
                }
            } catch (const std::exception& wrong) {
                reason = wrong.what();
            }
            if (reason.empty()) {
                ++count.same;
            } else {
                ++count.different;
                fmt::print("different      {} permutation {}: {}\n", name, i + 1, reason);
            }
        }
    }

    /// isolationtester plays every interleaving of such a spec, we only those that can differ.
    void compare_explored(const Scenario& scenario, const std::string& name) {
        const ScenarioDatabase database(ground_);
        Conductor conductor(scenario, database.conductor_options(""));
        std::vector<Outcome> ours;
        ExplorerOptions options;
        options.on_restart = [&] { ours.clear(); };
        const ExplorationSummary summary = explore(conductor, options, [&](const Execution& execution) {
            ours.push_back(outcome_of(scenario, execution));
            return true;
        });
        std::string reason = "no expected file";
        std::size_t played = 0;
        for (std::vector<Outcome>& expected : expectations(scenario, name)) {
            played = expected.size();
            std::erase_if(expected, [](const Outcome& outcome) { return outcome.cancelled; });
            reason = missing(expected, ours, "not seen by us");
            if (reason.empty()) reason = missing(ours, expected, "seen by us alone");
            if (reason.empty()) break;
        }
        ++(reason.empty() ? count.same_sets : count.different_sets);
        fmt::print("{}  {}: {} executions for {} permutations{}{}\n",
                   reason.empty() ? "explored     " : "different    ", name, summary.executions + summary.abandoned,
                   played, reason.empty() ? "" : ": ", reason);
    }

    /// Which steps waited is left out: that differs between interleavings with the same outcome.
    static std::string missing(const std::vector<Outcome>& wanted, const std::vector<Outcome>& among,
                               const std::string& verdict) {
        for (const Outcome& outcome : wanted) {
            const bool found = std::ranges::any_of(among, [&](const Outcome& other) {
                const Outcome a{outcome.by_session};
                const Outcome b{other.by_session};
                return difference(a, b, {}).empty() || difference(b, a, {}).empty();
            });
            if (!found) return "an outcome " + verdict;
        }
        return {};
    }

    fs::path expected_;
    PlayGround ground_;
};

int run(const fs::path& specs, const fs::path& expected) {
    const ThrowawayCluster cluster;
    Comparison comparison(expected, cluster.connection());
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(specs)) {
        if (entry.path().extension() == ".spec") paths.push_back(entry.path());
    }
    std::ranges::sort(paths);
    for (const fs::path& path : paths) comparison.compare(path);
    const Count& count = comparison.count;
    fmt::print(
        "{} permutations the same, {} different ({:.1f}% the same); {} specs not supported\n"
        "{} specs without permutations have the same outcomes, {} have not\n",
        count.same, count.different,
        100.0 * static_cast<double>(count.same) /
            static_cast<double>(std::max<std::size_t>(count.same + count.different, 1)),
        count.unsupported, count.same_sets, count.different_sets);
    return count.different + count.different_sets + count.unsupported == 0 ? 0 : 1;
}

}  // namespace
}  // namespace rowlock::race

int main(int argc, char** argv) {
    if (argc != 3) {
        fmt::print(stderr, "compare_specs SPECS EXPECTED: the two folders of PostgreSQL's src/test/isolation\n");
        return 2;
    }
    // As PostgreSQL's own test driver has them.
    setenv("PGDATESTYLE", "Postgres, MDY", 1);
    setenv("PGTZ", "PST8PDT", 1);
    try {
        return rowlock::race::run(argv[1], argv[2]);
    } catch (const std::exception& fault) {
        fmt::print(stderr, "compare_specs: {}\n", fault.what());
        return 2;
    }
}
