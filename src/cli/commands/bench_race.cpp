#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/commands.hpp"
#include "cli/contest.hpp"
#include "cli/output.hpp"
#include "race/checker.hpp"
#include "race/conductor.hpp"
#include "race/throwaway_cluster.hpp"
#include "server/account.hpp"
#include "server/child_process.hpp"
#include "server/installation.hpp"

namespace rowlock::cli {

namespace {

/// Both read this: it is isolationtester's grammar, with nothing of ours in it.
struct BenchScenario {
    std::string_view name;
    double bar_milliseconds;  ///< For one execution.
    std::string_view text;
};

constexpr BenchScenario compared_scenarios[] = {
    {"lost update, key access, 2 x 4", 1.5, R"(
setup { CREATE TABLE stock(id int PRIMARY KEY, n int NOT NULL); INSERT INTO stock VALUES (1, 5), (2, 5); }
teardown { DROP TABLE stock; }
session a
step a1 { BEGIN; }
step a2 { SELECT n FROM stock WHERE id = 1; }
step a3 { UPDATE stock SET n = 4 WHERE id = 1; }
step a4 { COMMIT; }
session b
step b1 { BEGIN; }
step b2 { SELECT n FROM stock WHERE id = 1; }
step b3 { UPDATE stock SET n = 3 WHERE id = 1; }
step b4 { COMMIT; }
)"},
    {"MAX + 1, 2 x 4", 3, R"(
setup { CREATE TABLE entry(tenant text NOT NULL, seq bigint NOT NULL); INSERT INTO entry VALUES ('acme', 1); }
teardown { DROP TABLE entry; }
session a
step a1 { BEGIN; }
step a2 { SELECT max(seq) FROM entry WHERE tenant = 'acme'; }
step a3 { INSERT INTO entry SELECT 'acme', max(seq) + 1 FROM entry WHERE tenant = 'acme'; }
step a4 { COMMIT; }
session b
step b1 { BEGIN; }
step b2 { SELECT max(seq) FROM entry WHERE tenant = 'acme'; }
step b3 { INSERT INTO entry SELECT 'acme', max(seq) + 1 FROM entry WHERE tenant = 'acme'; }
step b4 { COMMIT; }
)"},
    {"counter row, FOR UPDATE, waits, 2 x 4", 3, R"(
setup { CREATE TABLE counter(tenant text PRIMARY KEY, seq bigint NOT NULL); INSERT INTO counter VALUES ('acme', 1); }
teardown { DROP TABLE counter; }
session a
step a1 { BEGIN; }
step a2 { SELECT seq FROM counter WHERE tenant = 'acme' FOR UPDATE; }
step a3 { UPDATE counter SET seq = seq + 1 WHERE tenant = 'acme'; }
step a4 { COMMIT; }
session b
step b1 { BEGIN; }
step b2 { SELECT seq FROM counter WHERE tenant = 'acme' FOR UPDATE; }
step b3 { UPDATE counter SET seq = seq + 1 WHERE tenant = 'acme'; }
step b4 { COMMIT; }
)"},
};

/// Copies are known to be alike only by our own grammar, so isolationtester can't run along.
constexpr std::string_view copied_scenario = R"(
setup {{ CREATE TABLE entry(tenant text NOT NULL, seq bigint NOT NULL); INSERT INTO entry VALUES ('acme', 1); }}
session writer * {}
step begin {{ BEGIN }}
step read {{ SELECT coalesce(max(seq), 0) + 1 AS next FROM entry WHERE tenant = 'acme' \gset }}
step write {{ INSERT INTO entry VALUES ('acme', :next) }}
step commit {{ COMMIT }}
invariant "no number twice" {{ SELECT seq FROM entry GROUP BY tenant, seq HAVING count(*) > 1 }}
)";

constexpr std::size_t rounds = 15;
/// Schedules that isolationtester runs at least, so that its start counts little.
constexpr std::size_t peer_schedules_min = 60;
constexpr auto peer_limit = std::chrono::minutes(2);

struct Timing {
    std::size_t executions = 0;
    double milliseconds = 0;
    [[nodiscard]] double each() const { return executions == 0 ? 0 : milliseconds / static_cast<double>(executions); }
};

/// Every schedule that the exploration plays, as isolationtester's permutations.
std::string permutation_of(const race::Scenario& scenario, const race::Execution& execution) {
    std::string line = "permutation";
    for (const race::Event& event : execution.events) {
        line += " " + scenario.sessions[event.move.session].steps[event.move.step].name;
    }
    return line + "\n";
}

class RaceBench {
  public:
    explicit RaceBench(const Context& context) : context_(context) {}

    Exit run() {
        const std::optional<std::filesystem::path> peer = find_peer();
        if (!context_.globals.json && !peer) {
            print_note("isolationtester is not installed (Debian: postgresql-client-15), so there is no comparison");
        }
        show_round_trip();
        for (const BenchScenario& scenario : compared_scenarios) compare(scenario, peer);
        explore_copies(3, 300);
        explore_copies(4, 3'000);
        if (context_.globals.json) print_line(json_array(lines_));
        return Exit::fine;
    }

  private:
    static std::optional<std::filesystem::path> find_peer() {
        const std::filesystem::path path =
            std::filesystem::path(find_installation(own_account(), std::nullopt).binaries).parent_path() /
            "lib/pgxs/src/test/isolation/isolationtester";
        std::error_code ignored;
        return std::filesystem::exists(path, ignored) ? std::optional(path) : std::nullopt;
    }

    /// Ten trips or so are what an execution of eight steps can't do without.
    void show_round_trip() {
        const race::OwnDatabase database(cluster_.connection(), "rowlock_bench");
        race::ServerWatch watch(database.connection());
        constexpr int trips = 2'000;
        const Stopwatch watching;
        for (int trip = 0; trip < trips; ++trip) (void)race::query(watch.session(), {"bench.trip", "SELECT 1"});
        const double each = watching.milliseconds() / trips;
        if (!context_.globals.json) return print_line(fmt::format("one round trip (SELECT 1): {:.2f} ms", each));
        lines_.push_back(JsonObject().text("scenario", "SELECT 1").real("milliseconds_each", each).str());
    }

    /// The median of some rounds, each from a fresh root; what the first one learns about the steps stays.
    Timing explore_ours(const race::Scenario& scenario, bool symmetry, std::string* permutations) {
        const race::OwnDatabase database(cluster_.connection(), "rowlock_bench");
        race::ConductorOptions conductor_options;
        conductor_options.connection = database.connection();
        race::Conductor conductor(scenario, conductor_options);
        race::StepFootprints footprints;
        race::ExplorerOptions options;
        options.footprints = &footprints;
        if (symmetry) options.groups.assign(scenario.sessions.size(), 0);
        std::vector<Timing> timings;
        while (timings.size() < rounds) {
            std::string found;
            options.on_restart = [&] { found.clear(); };
            const Stopwatch watching;
            const auto summary = race::explore(conductor, options, [&](const race::Execution& execution) {
                if (permutations != nullptr) found += permutation_of(scenario, execution);
                return true;
            });
            timings.push_back({summary.executions + summary.abandoned, watching.milliseconds()});
            if (permutations != nullptr) *permutations = found;
        }
        std::ranges::sort(timings, {}, &Timing::milliseconds);
        return timings[rounds / 2];
    }

    Timing run_peer(const std::filesystem::path& peer, const BenchScenario& scenario, const std::string& permutations) {
        std::string spec(scenario.text);
        Timing timing;
        const auto each = static_cast<std::size_t>(std::ranges::count(permutations, '\n'));
        while (timing.executions < peer_schedules_min) {
            spec += permutations;
            timing.executions += each;
        }
        const race::OwnDatabase database(cluster_.connection(), "rowlock_bench");
        const Stopwatch watching;
        const CommandResult result =
            run_as(own_account(), {.arguments = {peer.string(), database.connection()}, .input = spec}, peer_limit);
        timing.milliseconds = watching.milliseconds();
        if (result.exit_code != 0) throw SetupError("isolationtester: " + result.output);
        return timing;
    }

    void compare(const BenchScenario& scenario, const std::optional<std::filesystem::path>& peer) {
        const race::Scenario parsed = race::parse_scenario(scenario.text, scenario.name);
        std::string permutations;
        const Timing ours = explore_ours(parsed, false, &permutations);
        std::optional<Timing> theirs;
        if (peer) theirs = run_peer(*peer, scenario, permutations);
        report(scenario.name, ours, theirs,
               fmt::format("{:.1f}: {}", scenario.bar_milliseconds, judged(ours.each(), scenario.bar_milliseconds)));
    }

    void explore_copies(int copies, double bar) {
        const race::Scenario scenario = race::parse_scenario(fmt::format(copied_scenario, copies), "MAX + 1");
        const Timing ours = explore_ours(scenario, true, nullptr);
        report(fmt::format("MAX + 1, {} x 4, symmetry", copies), ours, std::nullopt,
               fmt::format("for all {:.0f} ms: {}", bar, judged(ours.milliseconds, bar)));
    }

    static std::string_view judged(double milliseconds, double bar) { return milliseconds <= bar ? "met" : "missed"; }

    void report(std::string_view name, const Timing& ours, const std::optional<Timing>& theirs,
                const std::string& bar) {
        if (context_.globals.json) {
            JsonObject object;
            object.text("scenario", name).number("executions", static_cast<std::int64_t>(ours.executions));
            object.real("milliseconds", ours.milliseconds).real("milliseconds_each", ours.each());
            if (theirs) object.real("isolationtester_each", theirs->each());
            lines_.push_back(object.str());
            return;
        }
        print_line(fmt::format("{:38}  {:3} executions, {:7.1f} ms, {:5.2f} ms each (bar {})", name, ours.executions,
                               ours.milliseconds, ours.each(), bar));
        if (!theirs) return;
        print_line(fmt::format("{:38}  isolationtester, the same schedules: {:5.2f} ms each, {:.1f} × ours", "",
                               theirs->each(), theirs->each() / ours.each()));
    }

    const Context& context_;
    race::ThrowawayCluster cluster_;
    std::vector<std::string> lines_;
};

}  // namespace

Exit bench_race(const Context& context) {
    return RaceBench(context).run();
}

}  // namespace rowlock::cli
