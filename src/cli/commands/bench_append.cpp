#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <random>

#include "cli/commands/commands.hpp"
#include "cli/crowd.hpp"
#include "cli/output.hpp"
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

/// What every way writes: an entry of about 250 bytes.
constexpr std::string_view sample_data =
    R"({"invoice":4711,"total":"129.90","currency":"EUR","lines":[{"sku":"A-100","quantity":3},{"sku":"B-7","quantity":1}]})";
constexpr std::string_view sample_mac = "\\x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

/// The peers' tables have the columns, keys and checks of ours, and neither row-level security nor triggers.
constexpr Statement make_tables{
    "bench.tables",
    "CREATE SCHEMA bench;"
    "CREATE TABLE bench.article_log (LIKE rowlock.audit_log INCLUDING ALL);"
    "CREATE TABLE bench.article_state (tenant_id text COLLATE \"C\" PRIMARY KEY, last_seq bigint NOT NULL DEFAULT 0,"
    "                                  head_mac bytea) WITH (fillfactor = 50);"
    "CREATE TABLE bench.max_log (LIKE rowlock.audit_log INCLUDING ALL);"
    "CREATE TABLE bench.lock_log (LIKE rowlock.audit_log INCLUDING ALL);"
    "CREATE TABLE bench.sequence_log (LIKE rowlock.audit_log INCLUDING ALL);"
    "CREATE TABLE bench.plain_log (LIKE rowlock.audit_log INCLUDING ALL);"
    "CREATE SEQUENCE bench.number; CREATE SEQUENCE bench.plain_number"};

#define ROWLOCK_BENCH_INSERT(table, number)                                                        \
    "INSERT INTO bench." table                                                                     \
    " (tenant_id, entry_id, data, prev_mac, mac, seq, recorded_at, actor, action, object, key_id)" \
    " VALUES ($1, $2, $3, $4, $4, " number ", clock_timestamp(), 'ann', 'invoice.paid', 'invoice 4711', 'k1')"

constexpr Statement first_trip{"bench.first_trip", "SELECT"};
constexpr Statement article_first_use{"bench.article_first_use",
                                      "INSERT INTO bench.article_state (tenant_id) VALUES ($1) ON CONFLICT DO NOTHING"};
constexpr Statement article_lock{"bench.article_lock",
                                 "SELECT last_seq, head_mac FROM bench.article_state WHERE tenant_id = $1 FOR UPDATE"};
constexpr Statement article_insert{"bench.article_insert", ROWLOCK_BENCH_INSERT("article_log", "$5")};
constexpr Statement article_move{"bench.article_move",
                                 "UPDATE bench.article_state SET last_seq = $2, head_mac = $3 WHERE tenant_id = $1"};
constexpr Statement max_read{"bench.max_read",
                             "SELECT coalesce(max(seq), 0) + 1 FROM bench.max_log WHERE tenant_id = $1"};
constexpr Statement max_insert{"bench.max_insert", ROWLOCK_BENCH_INSERT("max_log", "$5")};
constexpr Statement lock_table{"bench.lock_table", "LOCK TABLE bench.lock_log IN EXCLUSIVE MODE", true};
constexpr Statement lock_read{"bench.lock_read",
                              "SELECT coalesce(max(seq), 0) + 1 FROM bench.lock_log WHERE tenant_id = $1"};
constexpr Statement lock_insert{"bench.lock_insert", ROWLOCK_BENCH_INSERT("lock_log", "$5")};
constexpr Statement sequence_read{"bench.sequence_read", "SELECT nextval('bench.number')"};
constexpr Statement sequence_insert{"bench.sequence_insert", ROWLOCK_BENCH_INSERT("sequence_log", "$5")};
constexpr Statement plain_insert{"bench.plain_insert",
                                 ROWLOCK_BENCH_INSERT("plain_log", "nextval('bench.plain_number')")};

/// What one client works with.
struct Client {
    Database& app;
    Database& owner;
    Session& bare;
    const AuditLog& log;
    Appender& appender;
    std::minstd_rand dice;
};

using Append = std::function<void(Client&, const TenantId&)>;

struct Way {
    std::string_view name;
    Append append;
};

std::vector<Parameter> values(const TenantId& tenant) {
    return {tenant, EntryId::generate(), sample_data, sample_mac};
}

std::vector<Parameter> values(const TenantId& tenant, std::int64_t number) {
    auto parameters = values(tenant);
    parameters.emplace_back(number);
    return parameters;
}

AuditEntry sample_entry() {
    return {.actor = "ann", .action = "invoice.paid", .object = "invoice 4711", .data = std::string(sample_data)};
}

void append_ours(Client& client, const TenantId& tenant) {
    client.app.transact({.tenant = tenant, .lock_wait_max = std::chrono::seconds(30)}, [&](Transaction& transaction) {
        if (!std::holds_alternative<Appended>(client.log.append(transaction, sample_entry()))) {
            throw InvalidInput("an entry id came twice");
        }
    });
}

/// As a caller that waits for its number.
void append_gathered(Client& client, const TenantId& tenant) {
    static_cast<void>(client.appender.append(tenant, sample_entry()).get());
}

/// The flow of the source article, a round trip for each of its statements: BEGIN, first use, lock, insert, move,
/// COMMIT.
void append_article(Client& client, const TenantId& tenant) {
    client.owner.transact({.tenant = tenant, .lock_wait_max = std::chrono::seconds(30)}, [&](Transaction& transaction) {
        transaction.execute(first_trip);
        transaction.execute(article_first_use, {tenant});
        const std::int64_t next = transaction.execute(article_lock, {tenant}).only().integer(0) + 1;
        transaction.execute(article_insert, values(tenant, next));
        transaction.execute(article_move, {tenant, next, sample_mac});
    });
}

void append_max(Client& client, const TenantId& tenant) {
    constexpr int tries_max = 10000;
    for (int i = 0; i < tries_max; ++i) {
        try {
            client.owner.transact({}, [&](Transaction& transaction) {
                const std::int64_t next = transaction.execute(max_read, {tenant}).only().integer(0);
                transaction.enqueue(max_insert, values(tenant, next));
            });
            return;
        } catch (const ServerError& error) {
            if (error.sqlstate() != "23505") throw;  // somebody else took the number: read again
        }
    }
}

void append_lock_table(Client& client, const TenantId& tenant) {
    client.owner.transact({.lock_wait_max = std::chrono::seconds(30)}, [&](Transaction& transaction) {
        transaction.enqueue(lock_table);
        const std::int64_t next = transaction.execute(lock_read, {tenant}).only().integer(0);
        transaction.enqueue(lock_insert, values(tenant, next));
    });
}

void append_sequence(Client& client, const TenantId& tenant) {
    client.owner.transact({}, [&](Transaction& transaction) {
        const std::int64_t next = transaction.execute(sequence_read).only().integer(0);
        transaction.enqueue(sequence_insert, values(tenant, next));
    });
}

void append_plain(Client& client, const TenantId& tenant) {
    client.bare.queue(plain_insert, values(tenant));
    const auto outcome = client.bare.flush();
    if (outcome.failed) throw ServerError(outcome.failed->report, Recovery::give_up);
}

const std::vector<Way>& ways() {
    static const std::vector<Way> all{{"plain INSERT (no order, no chain)", append_plain},
                                      {"global SEQUENCE (holes, no chain)", append_sequence},
                                      {"rowlock (gapless, chained, RLS)", append_ours},
                                      {"rowlock's Appender", append_gathered},
                                      {"the article's six round trips", append_article},
                                      {"MAX+1 with retries", append_max},
                                      {"LOCK TABLE", append_lock_table}};
    return all;
}

constexpr std::size_t plain = 0;
constexpr std::size_t ours = 2;
constexpr std::size_t gathered = 3;
constexpr std::size_t article = 4;

struct Figure {
    double per_second = 0;
    double median_ms = 0;
    double p99_ms = 0;
};

double quantile(std::vector<double>& sorted, double share) {
    if (sorted.empty()) return 0;
    return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

class AppendBench {
  public:
    AppendBench(const Context& context, const BenchAppendOptions& options)
        : context_(context),
          options_(options),
          scratch_(context, "rowlock_bench"),
          app_(scratch_.as_app(clients_max)),
          owner_(scratch_.as_owner(clients_max)),
          log_(Keyring::generate()),
          appender_(app_, log_, {.policy = {.lock_wait_max = std::chrono::seconds(30)}}) {
        owner_.transact({}, [](Transaction& transaction) { transaction.execute_script(make_tables); });
        for (int i = 0; i < many_tenants; ++i) tenants_.emplace_back(fmt::format("tenant {}", i));
    }

    Exit run() {
        const std::vector<int> clients = options_.clients.empty() ? std::vector<int>{1, 8, 32} : options_.clients;
        Progress progress(context_.style);
        Table table({"way", "tenants", "clients", "appends/s", "median ms", "p99 ms", "× plain", "× article"});
        for (const int tenants : {1, many_tenants}) {
            for (const int count : clients) {
                for (std::size_t way = 0; way < ways().size(); ++way) {
                    progress.show(fmt::format("{}, {} tenants, {} clients", ways()[way].name, tenants, count));
                    measured(way, tenants, count);
                }
                for (std::size_t way = 0; way < ways().size(); ++way) add_row(table, way, tenants, count);
            }
        }
        progress.clear();
        if (!context_.globals.json) {
            for (const std::string& line : table.lines(context_.style)) print_line(line);
            print_bars();
        }
        return Exit::fine;
    }

  private:
    const Figure& measured(std::size_t way, int tenants, int clients) {
        const auto key = std::tuple(way, tenants, clients);
        const auto known = figures_.find(key);
        if (known != figures_.end()) return known->second;
        return figures_.emplace(key, measure(ways()[way].append, tenants, clients)).first->second;
    }

    Figure measure(const Append& append, int tenants, int clients) {
        const auto count = static_cast<std::size_t>(clients);
        std::vector<std::vector<double>> latencies(count);
        std::vector<std::unique_ptr<Session>> sessions(count);
        const auto client = [&](std::size_t i) {
            return Client{app_, owner_, *sessions[i], log_, appender_, std::minstd_rand(static_cast<unsigned>(i + 1))};
        };
        run_crowd(count, [&](std::size_t i) {
            sessions[i] = std::make_unique<Session>(scratch_.as_owner(), std::source_location::current());
            warm_up(append, client(i), i);
        });
        const auto start = Clock::now();
        const auto end = start + std::chrono::duration<double>(options_.seconds);
        run_crowd(count, [&](std::size_t i) {
            Client one_client = client(i);
            while (Clock::now() < end) latencies[i].push_back(one(append, one_client, tenants));
        });
        const double seconds = seconds_since(start);
        std::vector<double> all;
        for (const auto& some : latencies) all.insert(all.end(), some.begin(), some.end());
        std::ranges::sort(all);
        return {static_cast<double>(all.size()) / seconds, quantile(all, 0.5), quantile(all, 0.99)};
    }

    /// Connections opened and statements planned: what a client of a running service has behind it.
    static void warm_up(const Append& append, Client client, std::size_t number) {
        constexpr int appends = 8;
        const TenantId tenant(fmt::format("warm-up {}", number));
        for (int i = 0; i < appends; ++i) append(client, tenant);
    }

    double one(const Append& append, Client& client, int tenants) {
        const TenantId& tenant = tenants_[client.dice() % static_cast<unsigned>(tenants)];
        const auto start = Clock::now();
        append(client, tenant);
        return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    }

    void add_row(Table& table, std::size_t way, int tenants, int clients) {
        const Figure& figure = measured(way, tenants, clients);
        const double of_plain = figure.per_second / measured(plain, tenants, clients).per_second;
        const double of_article = figure.per_second / measured(article, tenants, clients).per_second;
        if (context_.globals.json) {
            JsonObject object;
            object.text("way", ways()[way].name).number("tenants", tenants).number("clients", clients);
            object.real("per_second", figure.per_second).real("median_ms", figure.median_ms);
            object.real("p99_ms", figure.p99_ms).real("of_plain_insert", of_plain).real("of_article", of_article);
            print_line(object.str());
            return;
        }
        table.add({std::string(ways()[way].name), std::to_string(tenants), std::to_string(clients),
                   grouped(static_cast<std::int64_t>(figure.per_second)), fmt::format("{:.2f}", figure.median_ms),
                   fmt::format("{:.2f}", figure.p99_ms), fmt::format("{:.2f}", of_plain),
                   fmt::format("{:.2f}", of_article)});
    }

    void print_bar(std::string_view what, double value, double bar) {
        const bool met = value >= bar;
        print_line(fmt::format("{:.2f} {} (bar {:.2f}: {})", value, what, bar,
                               tinted(context_.style, met ? Tone::good : Tone::bad, met ? "met" : "missed")));
    }

    void print_bars() {
        print_line("");
        const auto rate = [&](std::size_t way, int tenants, int clients) {
            return measured(way, tenants, clients).per_second;
        };
        print_bar("× the article's flow, one tenant, 32 clients", rate(ours, 1, 32) / rate(article, 1, 32), 1.8);
        print_bar("× its own rate at 4 clients, one tenant, 64 clients", rate(ours, 1, 64) / rate(ours, 1, 4), 0.85);
        print_bar("× plain INSERT, the Appender, one tenant, 64 clients that wait",
                  rate(gathered, 1, 64) / rate(plain, 1, 64), 1.5);
        print_bar("× plain INSERT, 1,000 tenants, 32 clients",
                  rate(ours, many_tenants, 32) / rate(plain, many_tenants, 32), 0.6);
    }

    const Context& context_;
    const BenchAppendOptions& options_;
    ScratchDatabase scratch_;
    Database app_;
    Database owner_;
    AuditLog log_;
    Appender appender_;
    std::vector<TenantId> tenants_;
    std::map<std::tuple<std::size_t, int, int>, Figure> figures_;
};

}  // namespace

Exit bench_append(const Context& context, const BenchAppendOptions& options) {
    return AppendBench(context, options).run();
}

}  // namespace rowlock::cli
