#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "cli/commands/commands.hpp"
#include "cli/output.hpp"
#include "postgres/connection_string.hpp"
#include "race/check_on_server.hpp"
#include "race/pgbench_script.hpp"
#include "race/replay.hpp"
#include "race/report_html.hpp"
#include "race/report_json.hpp"
#include "race/report_text.hpp"
#include "race/scenario_lexer.hpp"
#include "race/spec_export.hpp"
#include "race/throwaway_cluster.hpp"
#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

std::atomic<bool> interrupted{false};

/// Ctrl-C ends the exploration, not the program, so that nothing is left behind; a second one ends the program.
class InterruptWatch {
  public:
    InterruptWatch() {
        struct sigaction action{};
        action.sa_handler = [](int) { interrupted = true; };
        action.sa_flags = static_cast<int>(SA_RESETHAND);
        sigaction(SIGINT, &action, nullptr);
        sigaction(SIGTERM, &action, nullptr);
    }
};

std::string read_file(const std::string& path) {
    const std::ifstream file(path, std::ios::binary);
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
        throw InvalidInput(fmt::format("{} is a folder: name the scenario files in it", path));
    }
    if (!file) throw InvalidInput(fmt::format("{} can't be read", path));
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

void write_file(const std::string& path, const std::string& text) {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << text;
    file.close();
    if (!file) throw SetupError(fmt::format("{} can't be written", path));
}

struct Collected {
    std::vector<std::string> json{};
    std::string junit{};
    std::vector<race::HtmlSection> html{};
    int exit = 0;
};

/// A finding outweighs not knowing, which outweighs a clean verdict.
int worse(int one, int other) {
    if (one == 1 || other == 1) return 1;
    return std::max(one, other);
}

class RaceCommand {
  public:
    RaceCommand(const Context& context, const RaceOptions& options)
        : context_(context), options_(options), progress_(context.style) {
        if (context.globals.db.empty()) {
            own_server_ = std::make_unique<race::ThrowawayCluster>();
            ground_.server = own_server_->connection();
            return;
        }
        ground_ = {context.globals.db, false, options.allow_database};
        race::drop_leftover_databases(ground_.server);
    }

    void check_file(const std::string& path) {
        const std::string text = read_file(path);
        const race::Scenario scenario = race::parse_scenario(text, path);
        std::vector<std::string> levels = scenario.isolations;
        if (levels.empty()) levels.emplace_back();
        try {
            for (const std::string& level : levels) check_at(scenario, path, level);
        } catch (const race::ScriptRefused& refused) {
            race::SourceText(text, path).fail(refused.offset(), refused.what());
        }
    }

    /// pgbench scripts, each one session.
    void check_scripts() {
        race::Scenario scenario;
        scenario.name = "--session";
        for (const std::string& path : options_.sessions) {
            scenario.sessions.push_back(race::parse_pgbench_script(read_file(path), path));
            scenario.sessions.back().group = scenario.sessions.size();
        }
        race::make_names_unique(scenario);
        const std::string setup = options_.setup.empty() ? std::string() : read_file(options_.setup);
        if (!setup.empty()) {
            scenario.setups.push_back(setup);
            scenario.setup_offsets.push_back(0);
        }
        if (!options_.invariant.empty()) scenario.invariants.push_back({"--invariant", options_.invariant});
        try {
            check_at(scenario, options_.sessions.front(), "");
        } catch (const race::ScriptRefused& refused) {
            race::SourceText(setup, options_.setup).fail(refused.offset(), refused.what());
        }
    }

    Exit finish() {
        progress_.clear();
        if (context_.globals.json) print_line(json_array(collected_.json));
        if (!options_.junit.empty()) {
            write_file(options_.junit, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n" + collected_.junit +
                                           "</testsuites>\n");
        }
        if (!options_.html.empty()) {
            write_file(options_.html, race::report_html(collected_.html));
            print_note("report: " + options_.html);
        }
        return static_cast<Exit>(collected_.exit);
    }

    Exit replay(const std::string& path) {
        const race::Replay replay = race::parse_replay(read_file(path), path);
        const std::string scenario_path = options_.files.empty() ? replay.scenario : options_.files.front();
        const race::Scenario scenario = race::parse_scenario(read_file(scenario_path), scenario_path);
        const race::ScenarioDatabase database(ground_);
        race::Conductor conductor(scenario, database.conductor_options(replay.isolation));
        const race::ReplayOutcome outcome = race::play_again(scenario, replay, conductor);
        for (const std::string& line :
             race::timeline_lines(scenario, race::timeline_of(scenario, outcome.execution), text_style())) {
            print_line(line);
        }
        print_line("");
        if (!outcome.divergence.empty()) {
            print_line(outcome.divergence);
            return Exit::undetermined;
        }
        const std::vector<race::Symptom> symptoms = race::symptoms_of(scenario, outcome.execution, nullptr);
        for (const race::Symptom& symptom : symptoms) print_line("✗ " + race::headline(symptom));
        if (symptoms.empty()) print_line("✓ nothing is wrong with this schedule");
        return symptoms.empty() ? Exit::fine : Exit::finding;
    }

  private:
    /// Where there is no terminal a page's width is right, since columns must end somewhere.
    [[nodiscard]] race::TextStyle text_style() const {
        const bool unlimited = context_.style.width == Style::unlimited;
        return {unlimited ? race::TextStyle::default_width : context_.style.width, context_.style.color};
    }

    void check_at(const race::Scenario& scenario, const std::string& path, const std::string& level) {
        race::CheckOptions check;
        check.reduce = !options_.no_reduction;
        check.symmetry = !options_.no_symmetry;
        check.executions_max = options_.executions_max;
        check.time_max = std::chrono::milliseconds(static_cast<std::int64_t>(options_.seconds_max * 1000));
        check.stop_at_first = options_.first;
        check.is_interrupted = [] { return interrupted.load(); };
        check.progress = [&](std::size_t executions, std::size_t broken) {
            progress_.show(fmt::format("{}: {} executions, {} broken", scenario.name, executions, broken));
        };
        report(scenario, path, race::check_on_server(scenario, ground_, level, check));
    }

    void report(const race::Scenario& scenario, const std::string& path, const race::CheckResult& result) {
        progress_.clear();
        collected_.exit = worse(collected_.exit, result.exit_code());
        collected_.junit += race::report_junit(scenario, result);
        collected_.html.push_back(race::html_section(scenario, result));
        if (context_.globals.json) {
            collected_.json.push_back(race::report_json(scenario, result));
        } else {
            for (const std::string& line : race::report_lines(scenario, result, text_style())) print_line(line);
        }
        if (!options_.save_spec.empty()) write_file(options_.save_spec, race::spec_text(scenario, result));
        if (!options_.dot.empty()) write_file(options_.dot, race::report_dot(scenario, result));
        if (options_.save_replay.empty() || result.findings.empty()) return;
        write_file(options_.save_replay,
                   race::replay_text(scenario, path, result.isolation, result.findings.front().execution));
        print_note("replay: " + options_.save_replay);
    }

    const Context& context_;
    const RaceOptions& options_;
    std::unique_ptr<race::ThrowawayCluster> own_server_;
    race::PlayGround ground_;
    Progress progress_;
    Collected collected_;
};

}  // namespace

Exit race_check(const Context& context, const RaceOptions& options) {
    if (options.files.empty() && options.replay.empty() && options.sessions.empty()) {
        throw InvalidInput("name a scenario file, or --session SCRIPT twice, or --replay FILE");
    }
    if (!options.sessions.empty() && !options.files.empty()) {
        throw InvalidInput("--session scripts are a scenario of their own: leave out the files");
    }
    try {
        // What can't be read is said before a server is started.
        for (const std::string& path : options.files) (void)race::parse_scenario(read_file(path), path);
        if (context.globals.db.empty() && !options.allow_database.empty()) {
            throw InvalidInput("--allow-database names a database on the server of --db: give both");
        }
        const InterruptWatch watch;
        RaceCommand command(context, options);
        if (!options.replay.empty()) return command.replay(options.replay);
        if (!options.sessions.empty()) command.check_scripts();
        for (const std::string& path : options.files) command.check_file(path);
        return command.finish();
    } catch (const race::ScenarioError& wrong) {
        print_note(wrong.what());
        return Exit::setup;
    } catch (const race::StageFault& fault) {
        print_note(fmt::format("rowlock: {}", fault.what()));
        return Exit::undetermined;
    }
}

}  // namespace rowlock::cli
