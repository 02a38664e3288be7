#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <set>

#include "cli/append_ways.hpp"
#include "cli/bars.hpp"
#include "cli/commands/commands.hpp"
#include "cli/contest.hpp"
#include "cli/crowd.hpp"
#include "cli/output.hpp"
#include "cli/peer_sql.hpp"
#include "cli/scratch_database.hpp"
#include "postgres/session.hpp"
#include "rowlock/appender.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int many_tenants = 1000;
constexpr int clients_max = 128;

constexpr int append_rounds = 3;

struct Setting {
    int tenants;
    int clients;
    std::size_t way;
    auto operator<=>(const Setting&) const = default;
};

struct Figures {
    std::vector<double> per_second{};  ///< One of each round.
    std::vector<double> latencies{};   ///< Of all rounds, in milliseconds.
};

struct RatioBar {
    std::string_view what;
    Setting of;
    Setting to;
    double at_least;
};

constexpr RatioBar ratio_bars[] = {
    {"append, 1 tenant, 32 clients: × the article's flow", {1, 32, way_ours}, {1, 32, way_article}, 2.0},
    {"append, 1 tenant, 64 clients: × its own rate at 4", {1, 64, way_ours}, {1, 4, way_ours}, 0.85},
    {"append, 1,000 tenants, 32 clients: × plain INSERT",
     {many_tenants, 32, way_ours},
     {many_tenants, 32, way_plain},
     0.6},
    {"Appender, 1 tenant, 64 threads: × plain INSERT", {1, 64, way_gathered}, {1, 64, way_plain}, 1.5},
    {"Appender, 1 tenant, 64 threads: × its own rate at 4", {1, 64, way_gathered}, {1, 4, way_gathered}, 1.0},
    {"Appender, 1 tenant, 4,096 under way: × plain INSERT", {1, 64, way_under_way}, {1, 64, way_plain}, 4.0}};
constexpr Setting slowest_bar{1, 64, way_gathered};

class AppendBench {
  public:
    AppendBench(const Context& context, const BenchAppendOptions& options)
        : context_(context),
          options_(options),
          scratch_(context, "rowlock_bench"),
          app_(scratch_.as_app(clients_max)),
          owner_(scratch_.as_owner(clients_max)),
          log_(Keyring::generate()),
          appender_(app_, log_, {.policy = {.lock_wait_max = std::chrono::seconds(30)}}),
          ways_(append_ways(!options.peer_sql.empty())) {
        make_append_tables(owner_, options.peer_sql.empty() ? "" : message_db_script(options.peer_sql));
        for (int i = 0; i < many_tenants; ++i) tenants_.emplace_back(fmt::format("tenant {}", i));
    }

    Exit run() {
        const std::vector<int> clients = options_.clients.empty() ? std::vector<int>{1, 8, 32} : options_.clients;
        std::set<Setting> in_table;
        for (std::size_t way = 0; way < ways_.size(); ++way) {
            for (const int count : clients) {
                if (!ways_[way].in_table) continue;
                in_table.insert({1, count, way});
                in_table.insert({many_tenants, count, way});
            }
        }
        measure_all(in_table);
        tell_figures(in_table);
        tell_bars();
        tell_machine(context_, scratch_);
        return Exit::fine;
    }

  private:
    /// In turn, the ways next to each other.
    void measure_all(const std::set<Setting>& in_table) {
        std::set<Setting> settings = in_table;
        for (const RatioBar& bar : ratio_bars) settings.insert({bar.of, bar.to});
        Progress progress(context_.style);
        for (int round = 1; round <= append_rounds; ++round) {
            for (const Setting& setting : settings) {
                progress.show(fmt::format("round {} of {}: {}, {} tenants, {} clients", round, append_rounds,
                                          ways_[setting.way].name, setting.tenants, setting.clients));
                measure(setting);
            }
        }
        progress.clear();
    }

    void measure(const Setting& setting) {
        const AppendWay& way = ways_[setting.way];
        const auto count = static_cast<std::size_t>(setting.clients);
        std::vector<std::vector<double>> latencies(count);
        std::vector<std::unique_ptr<Session>> sessions(count);
        const auto client = [&](std::size_t i) {
            return AppendClient{app_, owner_,    *sessions[i],
                                log_, appender_, std::minstd_rand(static_cast<unsigned>(i + 1))};
        };
        run_crowd(count, [&](std::size_t i) {
            sessions[i] = std::make_unique<Session>(scratch_.as_owner(), std::source_location::current());
            warm_up(way, client(i), i);
        });
        const auto start = Clock::now();
        const auto end = start + std::chrono::duration<double>(options_.seconds / append_rounds);
        run_crowd(count, [&](std::size_t i) {
            AppendClient one_client = client(i);
            do latencies[i].push_back(one(way, one_client, setting.tenants));
            while (Clock::now() < end);
            finish_appends(one_client);
        });
        const double seconds = seconds_since(start);
        Figures& figures = figures_[setting];
        const std::size_t before = figures.latencies.size();
        for (const auto& some : latencies) figures.latencies.insert(figures.latencies.end(), some.begin(), some.end());
        figures.per_second.push_back(static_cast<double>(figures.latencies.size() - before) / seconds);
    }

    /// Connections opened and statements planned: what a client of a running service has behind it.
    static void warm_up(const AppendWay& way, AppendClient client, std::size_t number) {
        constexpr int appends = 8;
        const TenantId tenant(fmt::format("warm-up {}", number));
        for (int i = 0; i < appends; ++i) way.append(client, tenant);
        finish_appends(client);
    }

    double one(const AppendWay& way, AppendClient& client, int tenants) {
        const TenantId& tenant = tenants_[client.dice() % static_cast<unsigned>(tenants)];
        const auto start = Clock::now();
        way.append(client, tenant);
        return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    }

    [[nodiscard]] double ratio(const Setting& of, const Setting& to) const {
        return median_ratio(figures_.at(of).per_second, figures_.at(to).per_second);
    }

    void tell_figures(const std::set<Setting>& in_table) {
        Table table({"way", "tenants", "clients", "appends/s", "median ms", "p99 ms", "× plain", "× article"});
        for (const Setting& setting : in_table) {
            const auto& [tenants, clients, way] = setting;
            Figures& figures = figures_.at(setting);
            const double per_second = median(figures.per_second);
            const double median_ms = quantile(figures.latencies, 0.5);
            const double p99_ms = quantile(figures.latencies, 0.99);
            const double of_plain = ratio(setting, {tenants, clients, way_plain});
            const double of_article = ratio(setting, {tenants, clients, way_article});
            if (context_.globals.json) {
                JsonObject object;
                object.text("way", ways_[way].name).number("tenants", tenants).number("clients", clients);
                object.real("per_second", per_second).real("median_ms", median_ms).real("p99_ms", p99_ms);
                object.real("of_plain_insert", of_plain).real("of_article", of_article);
                print_line(object.str());
                continue;
            }
            table.add({std::string(ways_[way].name), std::to_string(tenants), std::to_string(clients),
                       grouped(static_cast<std::int64_t>(per_second)), fmt::format("{:.2f}", median_ms),
                       fmt::format("{:.2f}", p99_ms), fmt::format("{:.2f}", of_plain),
                       fmt::format("{:.2f}", of_article)});
        }
        if (context_.globals.json) return;
        for (const std::string& line : table.lines(context_.style)) print_line(line);
        print_line(fmt::format("Rates and ratios: medians of {} rounds in turn.", append_rounds));
        print_line("");
    }

    void tell_bars() {
        for (const RatioBar& bar : ratio_bars) {
            tell_bar(context_, {std::string(bar.what), ratio(bar.of, bar.to), bar.at_least, false});
        }
        tell_bar(context_, {"Appender, 1 tenant, 64 threads: ms at the 99th percentile",
                            quantile(figures_.at(slowest_bar).latencies, 0.99), 50, true});
    }

    const Context& context_;
    const BenchAppendOptions& options_;
    ScratchDatabase scratch_;
    Database app_;
    Database owner_;
    AuditLog log_;
    Appender appender_;
    const std::vector<AppendWay> ways_;
    std::vector<TenantId> tenants_;
    std::map<Setting, Figures> figures_;
};

}  // namespace

Exit bench_append(const Context& context, const BenchAppendOptions& options) {
    return AppendBench(context, options).run();
}

}  // namespace rowlock::cli
