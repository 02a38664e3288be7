#include "cli/demo_races.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <fstream>

#include "race/check_on_server.hpp"
#include "race/report_html.hpp"
#include "race/report_json.hpp"
#include "race/report_text.hpp"
#include "race/throwaway_cluster.hpp"
#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

namespace fs = std::filesystem;

fs::path write_report(const std::string& html) {
    std::string folder = (fs::temp_directory_path() / "rowlock-demo-XXXXXX").string();
    if (mkdtemp(folder.data()) == nullptr) throw SetupError(fmt::format("{} can't be made", folder));
    fs::path path = fs::path(folder) / "races.html";
    std::ofstream file(path, std::ios::binary);
    file << html;
    file.close();
    if (!file) throw SetupError(fmt::format("{} can't be written", path.string()));
    return path;
}

}  // namespace

DemoRaces play_demo_races(const Style& style) {
    const bool unlimited = style.width == Style::unlimited;
    const race::TextStyle text{(unlimited ? race::TextStyle::default_width : style.width) - 3, style.color};
    const race::ThrowawayCluster cluster;
    const race::PlayGround ground{.server = cluster.connection()};
    DemoRaces races;
    std::vector<race::HtmlSection> sections;
    for (const EmbeddedScenario& embedded : demo_scenarios()) {
        const race::Scenario scenario = race::parse_scenario(embedded.text, embedded.name);
        const race::CheckResult result = race::check_on_server(scenario, ground, "", {});
        const bool is_twin = embedded.name.find("-twin") != std::string_view::npos;
        races.as_expected = races.as_expected && result.exit_code() == (is_twin ? 1 : 0);
        races.json.push_back(race::report_json(scenario, result));
        sections.push_back(race::html_section(scenario, result));
        for (std::string& line : race::report_lines(scenario, result, text)) races.lines.push_back(std::move(line));
        races.lines.emplace_back();
    }
    races.report = write_report(race::report_html(sections));
    return races;
}

}  // namespace rowlock::cli
