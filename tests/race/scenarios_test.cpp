// Every scenario of the repository, on a real server: the twin is caught, the safe form is exhausted clean.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "race/check_on_server.hpp"
#include "race/report_json.hpp"
#include "race/throwaway_cluster.hpp"
#include "support/environment.hpp"

namespace rowlock::race::test {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

Scenario scenario_in(const fs::path& path) {
    return parse_scenario(text_of(path), path.string());
}

std::vector<fs::path> scenario_files(const fs::path& folder) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder)) {
        if (entry.path().extension() == ".race") files.push_back(entry.path());
    }
    std::ranges::sort(files);
    return files;
}

class Scenarios : public testing::Test {
  protected:
    CheckResult check_file(const fs::path& path, bool symmetry = true) {
        return check_scenario(scenario_in(path), symmetry);
    }

    CheckResult check_scenario(const Scenario& scenario, bool symmetry = true) {
        CheckOptions options;
        options.symmetry = symmetry;
        options.time_max = std::chrono::minutes(5);
        return check_on_server(scenario, {.server = cluster_.connection()}, "", options);
    }

    ThrowawayCluster cluster_;
};

TEST_F(Scenarios, OfTheWritePathsComeOutAsTheirNamesSay) {
    for (const fs::path& path : scenario_files(ROWLOCK_SCENARIOS)) {
        const bool is_twin = path.stem().string().ends_with("-twin");
        const CheckResult result = check_file(path);
        EXPECT_EQ(result.exit_code(), is_twin ? 1 : 0) << path;
        EXPECT_TRUE(result.summary.exhausted) << path;
    }
}

TEST_F(Scenarios, MetInTheWildComeOutAsReported) {
    // Reported, but seen in no interleaving on PostgreSQL 15.
    const std::set<std::string> not_seen{"56", "72", "79"};
    for (const fs::path& path : scenario_files(fs::path(ROWLOCK_SCENARIOS) / "cases")) {
        const std::string name = path.stem().string();
        const bool holds = name.ends_with("-fixed") || not_seen.contains(name.substr(0, 2));
        const CheckResult result = check_file(path);
        EXPECT_EQ(result.exit_code(), holds ? 0 : 1) << path;
        EXPECT_TRUE(result.summary.exhausted) << path;
    }
}

TEST_F(Scenarios, HaveTheFiguresOfTheDesign) {
    const fs::path folder = ROWLOCK_SCENARIOS;
    const auto expect = [&](const std::string& name, std::size_t traces, std::size_t broken, bool symmetry) {
        const CheckResult result = check_file(folder / (name + ".race"), symmetry);
        EXPECT_EQ(result.summary.executions, traces) << name;
        EXPECT_EQ(result.broken, broken) << name;
    };
    expect("numbers-max-plus-one-twin", 6, 4, false);
    expect("numbers-max-plus-one-twin", 3, 2, true);
    expect("lost-update-twin", 6, 4, false);
    expect("retire-for-update-twin", 7, 3, false);
    expect("retire-guarded-safe", 7, 0, false);
    expect("lock-order-twin", 8, 4, false);
}

TEST_F(Scenarios, HaveTheFiguresOfTheDesignForMoreWriters) {
    const std::string twin = text_of(fs::path(ROWLOCK_SCENARIOS) / "numbers-max-plus-one-twin.race");
    const auto expect = [&](int writers, std::size_t traces, std::size_t broken, bool symmetry) {
        std::string text = twin;
        text.replace(text.find("writer * 2"), 10, fmt::format("writer * {}", writers));
        const CheckResult result = check_scenario(parse_scenario(text, "f.race"), symmetry);
        EXPECT_TRUE(result.summary.exhausted);
        EXPECT_EQ(result.summary.executions, traces) << writers << (symmetry ? " with symmetry" : "");
        EXPECT_EQ(result.broken, broken) << writers << (symmetry ? " with symmetry" : "");
    };
    // Without symmetry each trace counts once for each order of the writers.
    expect(3, 114, 108, false);
    expect(3, 19, 18, true);
    expect(4, 205, 204, true);
}

/// ROWLOCK_SAME_BYTES_RUNS: of each scenario. ROWLOCK_SAME_BYTES_OF: a folder in scenarios/ instead.
TEST_F(Scenarios, GiveTheSameBytesEveryTime) {
    const int runs = rowlock::test::number_from("ROWLOCK_SAME_BYTES_RUNS", 2);
    const char* const folder = std::getenv("ROWLOCK_SAME_BYTES_OF");  // NOLINT(concurrency-mt-unsafe)
    for (const fs::path& path : scenario_files(fs::path(ROWLOCK_SCENARIOS) / (folder == nullptr ? "" : folder))) {
        const Scenario scenario = scenario_in(path);
        const std::string first = report_json(scenario, check_file(path));
        for (int run = 1; run < runs; ++run) ASSERT_EQ(report_json(scenario, check_file(path)), first) << path << run;
    }
}

}  // namespace
}  // namespace rowlock::race::test
