#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <random>

#include "cli/commands/commands.hpp"
#include "cli/contest.hpp"
#include "cli/crowd.hpp"
#include "cli/output.hpp"
#include "cli/scratch_database.hpp"
#include "postgres/session.hpp"
#include "rowlock/error.hpp"
#include "rowlock/sealer.hpp"

namespace rowlock::cli {

namespace {

constexpr int stage_rounds = 3;
constexpr int staging_tenants = 1000;
constexpr double stage_bar = 0.85;
constexpr double seal_bar = 30000;

constexpr std::string_view staged_data =
    R"({"invoice":4711,"total":"129.90","currency":"EUR","lines":[{"sku":"A-100","quantity":3},{"sku":"B-7","quantity":1}]})";

constexpr Statement make_table{"bench.tables",
                               "CREATE TABLE public.plain_audit (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
                               "    tenant_id text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp(),"
                               "    actor text, action text, object text, data json)"};
constexpr Statement begin{"bench.begin", "BEGIN"};
constexpr Statement set_tenant{"bench.set_tenant", "SELECT set_config('rowlock.tenant', $1, true)"};
constexpr Statement plain_audit_insert{"bench.plain_insert",
                                       "INSERT INTO public.plain_audit (tenant_id, actor, action, object, data)"
                                       " VALUES ($1, 'ann', 'invoice.paid', 'invoice 4711', $2)"};
constexpr Statement stage{"bench.stage", "SELECT rowlock.stage($1, 'invoice.paid', 'invoice 4711', $2, 'ann')"};
constexpr Statement commit{"bench.commit", "COMMIT"};

/// A transaction that a service might have, in one round trip.
void write_one(Session& session, const Statement& write, const std::string& tenant) {
    session.queue(begin, {});
    session.queue(set_tenant, {tenant});
    session.queue(write, {tenant, staged_data});
    session.queue(commit, {});
    const auto outcome = session.flush();
    if (outcome.failed) throw ServerError(outcome.failed->report, Recovery::give_up);
}

class StageBench {
  public:
    StageBench(const Context& context, const BenchStageOptions& options)
        : context_(context), options_(options), scratch_(context, "rowlock_bench"), owner_(scratch_.as_owner()) {
        owner_.transact({}, [](Transaction& transaction) { transaction.execute_script(make_table); });
        sessions_.resize(static_cast<std::size_t>(options.clients));
        run_crowd(sessions_.size(), [&](std::size_t i) {
            sessions_[i] = std::make_unique<Session>(scratch_.as_owner(), std::source_location::current());
            for (const Statement* const write : {&plain_audit_insert, &stage})
                write_one(*sessions_[i], *write, "warm-up");
        });
    }

    Exit run() {
        Progress progress(context_.style);
        for (const int tenants : {1, staging_tenants}) {
            std::vector<double> plain;
            std::vector<double> staged;
            std::vector<double> ratios;
            for (int round = 1; round <= stage_rounds; ++round) {
                progress.show(fmt::format("staging, {} tenants: {} of {}", tenants, round, stage_rounds));
                plain.push_back(rate(plain_audit_insert, tenants));
                staged.push_back(rate(stage, tenants));
                ratios.push_back(staged.back() / plain.back());
            }
            progress.clear();
            tell_staging(tenants, median(plain), median(staged), median(ratios));
        }
        progress.show("sealing");
        tell_sealing(progress);
        return Exit::fine;
    }

  private:
    double rate(const Statement& write, int tenants) {
        return run_contest(options_.clients, options_.seconds,
                           [&](Tally& tally) {
                               write_one(*sessions_[tally.client], write,
                                         fmt::format("tenant {}", tally.dice() % static_cast<unsigned>(tenants)));
                               ++tally.done;
                           })
            .per_second;
    }

    void tell_staging(int tenants, double plain, double staged, double ratio) const {
        if (context_.globals.json) {
            JsonObject object;
            object.number("tenants", tenants).number("clients", options_.clients);
            object.real("plain_inserts_per_second", plain).real("staged_per_second", staged);
            return print_line(object.real("ratio", ratio).str());
        }
        print_line(fmt::format("{:>5} {}, {} clients: plain INSERT {:>7}/s, stage {:>7}/s  ({:.2f}, bar {:.2f}: {})",
                               tenants, tenants == 1 ? "tenant " : "tenants", options_.clients,
                               grouped(static_cast<std::int64_t>(plain)), grouped(static_cast<std::int64_t>(staged)),
                               ratio, stage_bar, ratio >= stage_bar ? "met" : "missed"));
    }

    /// A long backlog of two tenants, by one sealer.
    void tell_sealing(Progress& progress) {
        static constexpr Statement fill{"bench.fill",
                                        "SELECT count(rowlock.stage($1, 'invoice.paid', 'invoice ' || n, $2, 'ann')) "
                                        "FROM generate_series(1, $3) n"};
        static constexpr Statement empty{"bench.empty", "TRUNCATE rowlock.audit_staged"};
        owner_.transact({}, [](Transaction& transaction) { transaction.execute(empty); });
        for (const char* const tenant : {"long one", "long two"}) {
            owner_.transact({.tenant = TenantId(tenant), .deadline = std::chrono::minutes(5)},
                            [&](Transaction& transaction) {
                                transaction.execute(fill, {tenant, staged_data, options_.backlog / 2});
                            });
        }
        DatabaseOptions as_sealer = scratch_.as_owner();
        as_sealer.role = "rowlock_sealer";
        Database database(as_sealer);
        const AuditLog log(Keyring::generate());
        Sealer sealer(database, log);
        std::int64_t sealed = 0;
        const double seconds = seconds_of([&] {
            for (bool more = true; more;) {
                const SealRound round = sealer.round();
                sealed += round.sealed.appended;
                more = round.sealed.more;
                progress.show(fmt::format("sealing: {}", grouped(sealed)));
            }
        });
        progress.clear();
        const double per_second = static_cast<double>(sealed) / seconds;
        if (context_.globals.json) {
            return print_line(JsonObject().number("sealed", sealed).real("sealed_per_second", per_second).str());
        }
        print_line(fmt::format("sealing {} of 2 tenants, one sealer: {}/s  (bar {}: {})",
                               counted(sealed, "entry", "entries"), grouped(static_cast<std::int64_t>(per_second)),
                               grouped(static_cast<std::int64_t>(seal_bar)),
                               per_second >= seal_bar ? "met" : "missed"));
    }

    const Context& context_;
    const BenchStageOptions& options_;
    ScratchDatabase scratch_;
    Database owner_;
    std::vector<std::unique_ptr<Session>> sessions_;
};

}  // namespace

Exit bench_stage(const Context& context, const BenchStageOptions& options) {
    return StageBench(context, options).run();
}

}  // namespace rowlock::cli
