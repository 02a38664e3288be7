// The three homes of a cap on a total, against the twin that has none.
#include <fmt/format.h>

#include <string_view>

#include "cli/commands/commands.hpp"
#include "cli/contest.hpp"
#include "cli/output.hpp"
#include "cli/scratch_database.hpp"

namespace rowlock::cli {

namespace {

constexpr int quota_clients_max = 128;
/// Few, so that counting costs what it costs in such a rule.
constexpr std::int64_t seats_cap = 100;

constexpr Statement make_seats{"bench.seats",
                               "CREATE TABLE public.seat (tenant_id text, guest bigint GENERATED ALWAYS AS IDENTITY,"
                               " PRIMARY KEY (tenant_id, guest));"
                               "GRANT SELECT, INSERT, UPDATE, DELETE ON public.seat TO rowlock_app"};
constexpr Statement insert_seat{"bench.insert", "INSERT INTO public.seat (tenant_id) VALUES ($1)"};
constexpr Statement count_seats{"bench.count", "SELECT count(*) FROM public.seat WHERE tenant_id = $1"};
constexpr Statement delete_seat{
    "bench.delete",
    "DELETE FROM public.seat WHERE tenant_id = $1 AND guest = (SELECT guest FROM public.seat"
    " WHERE tenant_id = $1 ORDER BY guest LIMIT 1 FOR UPDATE SKIP LOCKED)"};
constexpr Statement reset_seats{"bench.reset", "DELETE FROM public.seat"};
constexpr Statement reset_quota{"bench.reset_quota", "UPDATE rowlock.quota SET used = 0 WHERE tenant_id = $1"};

class QuotaBench {
  public:
    QuotaBench(const Context& context, const BenchQuotaOptions& options)
        : context_(context),
          options_(options),
          scratch_(context, "rowlock_bench"),
          owner_(scratch_.as_owner()),
          app_(scratch_.as_app(quota_clients_max)) {
        owner_.transact({.tenant = tenant_}, [&](Transaction& transaction) {
            transaction.execute_script(make_seats);
            seats_.set_cap(transaction, seats_cap);
        });
    }

    Exit run() {
        const std::vector<int> clients = options_.clients.empty() ? std::vector<int>{1, 4, 16} : options_.clients;
        Progress progress(context_.style);
        Table table({"home of the rule", "clients", "joins and leaves/s", "seats taken", "cap"});
        for (const int count : clients) {
            add(table, progress, "quota row", count, [&](Tally& tally) { by_row(tally); });
            add(table, progress, "advisory rule", count, [&](Tally& tally) { by_rule(tally); });
            add(table, progress, "SERIALIZABLE", count, [&](Tally& tally) { by_counting(tally, true); });
            add(table, progress, "none (count, then insert)", count, [&](Tally& tally) { by_counting(tally, false); });
        }
        progress.clear();
        if (context_.globals.json) return Exit::fine;
        for (const std::string& line : table.lines(context_.style)) print_line(line);
        return Exit::fine;
    }

  private:
    [[nodiscard]] TransactionPolicy policy() const {
        return {.tenant = tenant_, .lock_wait_max = std::chrono::seconds(60), .attempts_max = 1000};
    }
    static bool leaves(Tally& tally) { return tally.dice() % 3 == 0; }

    void by_row(Tally& tally) {
        app_.transact(policy(), [&, leave = leaves(tally)](Transaction& transaction) {
            if (leave) {
                if (transaction.execute(delete_seat, {tenant_}).affected() == 0) return;
                if (!std::holds_alternative<Released>(seats_.release(transaction)))
                    throw SetupError("the quota is wrong");
            } else if (std::holds_alternative<Reserved>(seats_.reserve(transaction))) {
                transaction.execute(insert_seat, {tenant_});
            }
        });
        ++tally.done;
    }
    void by_rule(Tally& tally) {
        app_.transact(policy(), [&, leave = leaves(tally)](Transaction& transaction) {
            if (leave) {
                transaction.execute(delete_seat, {tenant_});
                return;
            }
            rule_.hold(transaction, "seats");
            count_and_insert(transaction);
        });
        ++tally.done;
    }
    void by_counting(Tally& tally, bool serializable) {
        TransactionPolicy own = policy();
        if (serializable) own.isolation = IsolationLevel::serializable;
        app_.transact(own, [&, leave = leaves(tally)](Transaction& transaction) {
            if (leave) {
                transaction.execute(delete_seat, {tenant_});
            } else {
                count_and_insert(transaction);
            }
        });
        ++tally.done;
    }
    void count_and_insert(Transaction& transaction) {
        const std::int64_t taken = transaction.execute(count_seats, {tenant_}).only().integer(0);
        if (taken < seats_cap) transaction.execute(insert_seat, {tenant_});
    }

    void add(Table& table, Progress& progress, std::string_view way, int clients,
             const std::function<void(Tally&)>& once) {
        progress.show(fmt::format("{}, {} clients", way, clients));
        owner_.transact({.tenant = tenant_}, [&](Transaction& transaction) {
            transaction.execute(reset_seats);
            transaction.execute(reset_quota, {tenant_});
        });
        const ContestResult result = run_contest(clients, options_.seconds, once);
        const std::int64_t taken = owner_.transact({}, [&](Transaction& transaction) {
            return transaction.execute(count_seats, {tenant_}).only().integer(0);
        });
        if (context_.globals.json) {
            print_line(JsonObject()
                           .text("home", way)
                           .number("clients", clients)
                           .real("per_second", result.per_second)
                           .number("taken", taken)
                           .number("cap", seats_cap)
                           .str());
            return;
        }
        table.add({std::string(way), std::to_string(clients), grouped(static_cast<std::int64_t>(result.per_second)),
                   grouped(taken), grouped(seats_cap)});
    }

    const Context& context_;
    const BenchQuotaOptions& options_;
    ScratchDatabase scratch_;
    Database owner_;
    Database app_;
    const TenantId tenant_{"acme"};
    const Quota seats_{"seats"};
    const AdvisoryRule rule_{"seats per tenant"};
};

}  // namespace

Exit bench_quota(const Context& context, const BenchQuotaOptions& options) {
    return QuotaBench(context, options).run();
}

}  // namespace rowlock::cli
