#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>

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

struct Figure {
    double per_second = 0;
    double median_ms = 0;
    double p99_ms = 0;
};

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
        Progress progress(context_.style);
        Table table({"way", "tenants", "clients", "appends/s", "median ms", "p99 ms", "× plain", "× article"});
        for (const int tenants : {1, many_tenants}) {
            for (const int count : clients) {
                measure_ways(tenants, count, progress);
                for (std::size_t way = 0; way < ways_.size(); ++way) add_row(table, way, tenants, count);
            }
        }
        progress.clear();
        if (!context_.globals.json) {
            for (const std::string& line : table.lines(context_.style)) print_line(line);
            print_line("");
        }
        tell_bars();
        tell_machine(context_, scratch_);
        return Exit::fine;
    }

  private:
    void measure_ways(int tenants, int clients, Progress& progress) {
        for (std::size_t way = 0; way < ways_.size(); ++way) {
            if (!ways_[way].in_table) continue;
            progress.show(fmt::format("{}, {} tenants, {} clients", ways_[way].name, tenants, clients));
            measured(way, tenants, clients);
        }
    }

    const Figure& measured(std::size_t way, int tenants, int clients) {
        const auto key = std::tuple(way, tenants, clients);
        const auto known = figures_.find(key);
        if (known != figures_.end()) return known->second;
        return figures_.emplace(key, measure(ways_[way], tenants, clients)).first->second;
    }

    Figure measure(const AppendWay& way, int tenants, int clients) {
        const auto count = static_cast<std::size_t>(clients);
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
        const auto end = start + std::chrono::duration<double>(options_.seconds);
        run_crowd(count, [&](std::size_t i) {
            AppendClient one_client = client(i);
            while (Clock::now() < end) latencies[i].push_back(one(way, one_client, tenants));
            finish_appends(one_client);
        });
        const double seconds = seconds_since(start);
        std::vector<double> all;
        for (const auto& some : latencies) all.insert(all.end(), some.begin(), some.end());
        return {static_cast<double>(all.size()) / seconds, quantile(all, 0.5), quantile(all, 0.99)};
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

    void add_row(Table& table, std::size_t way, int tenants, int clients) {
        if (!ways_[way].in_table) return;
        const Figure& figure = measured(way, tenants, clients);
        const double of_plain = figure.per_second / measured(way_plain, tenants, clients).per_second;
        const double of_article = figure.per_second / measured(way_article, tenants, clients).per_second;
        if (context_.globals.json) {
            JsonObject object;
            object.text("way", ways_[way].name).number("tenants", tenants).number("clients", clients);
            object.real("per_second", figure.per_second).real("median_ms", figure.median_ms);
            object.real("p99_ms", figure.p99_ms).real("of_plain_insert", of_plain).real("of_article", of_article);
            print_line(object.str());
            return;
        }
        table.add({std::string(ways_[way].name), std::to_string(tenants), std::to_string(clients),
                   grouped(static_cast<std::int64_t>(figure.per_second)), fmt::format("{:.2f}", figure.median_ms),
                   fmt::format("{:.2f}", figure.p99_ms), fmt::format("{:.2f}", of_plain),
                   fmt::format("{:.2f}", of_article)});
    }

    void tell_bars() {
        const auto rate = [&](std::size_t way, int tenants, int clients) {
            return measured(way, tenants, clients).per_second;
        };
        const auto tell = [&](std::string what, double value, double limit, bool at_most = false) {
            tell_bar(context_, {std::move(what), value, limit, at_most});
        };
        tell("append, 1 tenant, 32 clients: × the article's flow", rate(way_ours, 1, 32) / rate(way_article, 1, 32),
             2.0);
        tell("append, 1 tenant, 64 clients: × its own rate at 4", rate(way_ours, 1, 64) / rate(way_ours, 1, 4), 0.85);
        tell("append, 1,000 tenants, 32 clients: × plain INSERT",
             rate(way_ours, many_tenants, 32) / rate(way_plain, many_tenants, 32), 0.6);
        tell("Appender, 1 tenant, 64 threads: × plain INSERT", rate(way_gathered, 1, 64) / rate(way_plain, 1, 64), 1.5);
        tell("Appender, 1 tenant, 64 threads: × its own rate at 4",
             rate(way_gathered, 1, 64) / rate(way_gathered, 1, 4), 1.0);
        tell("Appender, 1 tenant, 64 threads: ms at the 99th percentile", measured(way_gathered, 1, 64).p99_ms, 50,
             true);
        tell("Appender, 1 tenant, 4,096 under way: × plain INSERT", rate(way_under_way, 1, 64) / rate(way_plain, 1, 64),
             4.0);
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
    std::map<std::tuple<std::size_t, int, int>, Figure> figures_;
};

}  // namespace

Exit bench_append(const Context& context, const BenchAppendOptions& options) {
    return AppendBench(context, options).run();
}

}  // namespace rowlock::cli
