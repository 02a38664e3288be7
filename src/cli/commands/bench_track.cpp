// Updates of a tracked table against those of an untracked one, and against a peer's capture if one is given.
#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <string_view>

#include "cli/bars.hpp"
#include "cli/commands/commands.hpp"
#include "cli/contest.hpp"
#include "cli/output.hpp"
#include "cli/peer_sql.hpp"
#include "cli/scratch_database.hpp"
#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

constexpr int track_clients_max = 128;
constexpr int account_count = 10000;
constexpr double track_ratio_least = 0.70;

constexpr Statement make_accounts{
    "bench.accounts",
    "CREATE TABLE public.plain (id bigint PRIMARY KEY, tenant_id text NOT NULL, owner text, balance numeric(12,2),"
    "                           note text, updated_at timestamptz) WITH (fillfactor = 70);"
    "INSERT INTO public.plain SELECT n, 'tenant ' || n % 100, 'owner ' || n, n, repeat('x', 40), now()"
    "  FROM generate_series(1, 10000) AS n;"
    "CREATE TABLE public.tracked (LIKE public.plain INCLUDING ALL) WITH (fillfactor = 70);"
    "CREATE TABLE public.peer (LIKE public.plain INCLUDING ALL) WITH (fillfactor = 70);"
    "INSERT INTO public.tracked SELECT * FROM public.plain; INSERT INTO public.peer SELECT * FROM public.plain;"
    "GRANT SELECT, UPDATE ON public.plain, public.tracked, public.peer TO rowlock_app"};

/// Locks: the row, until COMMIT.
constexpr Statement update_plain{"bench.update",
                                 "UPDATE public.plain SET balance = balance + 1, updated_at = now() WHERE id = $1"};
constexpr Statement update_tracked{"bench.update",
                                   "UPDATE public.tracked SET balance = balance + 1, updated_at = now() WHERE id = $1"};
constexpr Statement update_peer{"bench.update",
                                "UPDATE public.peer SET balance = balance + 1, updated_at = now() WHERE id = $1"};
constexpr Statement count_of_staged{"bench.count_of_staged", "SELECT count(*) FROM rowlock.audit_staged"};

std::string peer_script(const std::filesystem::path& given) {
    if (!std::filesystem::is_directory(given)) return script_of_file(given);
    return supa_audit_script(given) + "SELECT audit.enable_tracking('public.peer'::regclass);";
}

struct UpdatedTable {
    std::string_view name;
    const Statement& update;
    std::vector<double> rates{};
    std::vector<double> ratios{};  ///< To the untracked table of the same round.
};

class TrackBench {
  public:
    TrackBench(const Context& context, const BenchTrackOptions& options)
        : context_(context),
          options_(options),
          scratch_(context, "rowlock_bench"),
          owner_(scratch_.as_owner()),
          app_(scratch_.as_app(track_clients_max)) {
        owner_.transact({}, [&](Transaction& transaction) {
            transaction.execute_script(make_accounts);
            static_cast<void>(track(transaction, {.table = "public.tracked", .tenant_column = "tenant_id"}));
        });
        if (options.peer_sql.empty()) return;
        const std::string script = peer_script(options.peer_sql);
        owner_.transact({}, [&](Transaction& transaction) { transaction.execute_script({"bench.peer", script}); });
    }

    Exit run() {
        std::vector<UpdatedTable> ways{{"untracked", update_plain}, {"tracked", update_tracked}};
        if (!options_.peer_sql.empty()) ways.push_back({"peer", update_peer});
        Progress progress(context_.style);
        std::int64_t tracked_updates = 0;
        for (int round = 0; round < options_.rounds; ++round) {
            for (UpdatedTable& way : ways) {
                progress.show(fmt::format("{}, round {} of {}", way.name, round + 1, options_.rounds));
                way.rates.push_back(rate(way.update, way.name == "tracked" ? &tracked_updates : nullptr));
                way.ratios.push_back(way.rates.back() / ways.front().rates.back());
            }
        }
        progress.clear();
        require_all_staged(tracked_updates);
        print(ways);
        return Exit::fine;
    }

  private:
    double rate(const Statement& update, std::int64_t* done) {
        std::atomic<std::int64_t> updates = 0;
        const ContestResult result = run_contest(options_.clients, options_.seconds, [&](Tally& tally) {
            app_.transact({.lock_wait_max = std::chrono::seconds(60)}, [&](Transaction& transaction) {
                transaction.execute(update, {1 + static_cast<std::int64_t>(tally.dice() % account_count)});
            });
            ++tally.done;
            ++updates;
        });
        if (done != nullptr) *done += updates;
        return result.per_second;
    }

    /// A capture that loses entries would be fast.
    void require_all_staged(std::int64_t updates) {
        const std::int64_t staged = owner_.transact({}, [](Transaction& transaction) {
            transaction.execute({"bench.role", "SET LOCAL ROLE rowlock_auditor"});
            return transaction.execute(count_of_staged).only().integer(0);
        });
        if (staged != updates) {
            throw SetupError(fmt::format("{} updates of the tracked table left {} entries", updates, staged));
        }
    }

    void print(std::vector<UpdatedTable>& ways) const {
        Table table({"table", "clients", "updates/s", "× untracked"});
        for (const UpdatedTable& way : ways) {
            const double ratio = median(way.ratios);
            if (context_.globals.json) {
                JsonObject object;
                object.text("table", way.name)
                    .number("clients", options_.clients)
                    .real("per_second", median(way.rates));
                print_line(object.real("ratio", ratio).str());
            }
            table.add({std::string(way.name), std::to_string(options_.clients),
                       grouped(static_cast<std::int64_t>(median(way.rates))), fmt::format("{:.2f}", ratio)});
        }
        if (!context_.globals.json) {
            for (const std::string& line : table.lines(context_.style)) print_line(line);
            print_line(
                "Medians of the rounds; every way ran once in each. Every update of the tracked table left an entry.");
        }
        tell_bar(context_, {fmt::format("track, UPDATEs, {} clients: × untracked", options_.clients),
                            median(ways[1].ratios), track_ratio_least});
        tell_machine(context_, scratch_);
    }

    const Context& context_;
    const BenchTrackOptions& options_;
    ScratchDatabase scratch_;
    Database owner_;
    Database app_;
};

}  // namespace

Exit bench_track(const Context& context, const BenchTrackOptions& options) {
    return TrackBench(context, options).run();
}

}  // namespace rowlock::cli
