#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <random>

#include "cli/bars.hpp"
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

/// An audit table as one makes it by hand, and one with the columns, keys and checks of the staged entries.
constexpr Statement make_tables_of_peers{
    "bench.tables",
    "CREATE TABLE public.plain_audit (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
    "    tenant_id text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp(),"
    "    actor text, action text, object text, data json);"
    "CREATE TABLE public.like_staged (LIKE rowlock.audit_staged INCLUDING ALL);"
    "GRANT INSERT ON public.plain_audit, public.like_staged TO rowlock_app"};
constexpr Statement become_app{"bench.role", "SET ROLE rowlock_app"};
constexpr Statement begin{"bench.begin", "BEGIN"};
constexpr Statement set_tenant{"bench.set_tenant", "SELECT set_config('rowlock.tenant', $1, true)"};
constexpr Statement plain_audit_insert{"bench.plain_insert",
                                       "INSERT INTO public.plain_audit (tenant_id, actor, action, object, data)"
                                       " VALUES ($1, 'ann', 'invoice.paid', 'invoice 4711', $2)"};
constexpr Statement like_staged_insert{
    "bench.like_staged_insert",
    "INSERT INTO public.like_staged (tenant_id, entry_id, actor, action, object, data)"
    " VALUES ($1, gen_random_uuid(), 'ann', 'invoice.paid', 'invoice 4711', $2)"};
constexpr Statement stage{"bench.stage", "SELECT rowlock.stage($1, 'invoice.paid', 'invoice 4711', $2, 'ann')"};
constexpr Statement commit{"bench.commit", "COMMIT"};

/// A transaction that a service might have, in one round trip.
void write_one(Session& session, const Statement& write, const std::string& tenant) {
    session.queue(begin, {});
    session.queue(set_tenant, {tenant});
    session.queue(write, {tenant, staged_data});
    session.queue(commit, {});
    session.flush().rows_or_throw();
}

struct StageRates {
    std::vector<double> plain{}, like_staged{}, staged{};
};

class StageBench {
  public:
    StageBench(const Context& context, const BenchStageOptions& options)
        : context_(context), options_(options), scratch_(context, "rowlock_bench"), owner_(scratch_.as_owner()) {
        owner_.transact({}, [](Transaction& transaction) { transaction.execute_script(make_tables_of_peers); });
        sessions_.resize(static_cast<std::size_t>(options.clients));
        run_crowd(sessions_.size(), [&](std::size_t i) {
            sessions_[i] = std::make_unique<Session>(scratch_.as_owner(), std::source_location::current());
            sessions_[i]->run_script(become_app).rows_or_throw();  // as a service, which is no superuser
            for (const Statement* const write : {&plain_audit_insert, &like_staged_insert, &stage})
                write_one(*sessions_[i], *write, "warm-up");
        });
    }

    Exit run() {
        Progress progress(context_.style);
        for (const int tenants : {1, staging_tenants}) {
            StageRates rates;
            for (int round = 1; round <= stage_rounds; ++round) {
                progress.show(fmt::format("staging, {} tenants: {} of {}", tenants, round, stage_rounds));
                rates.plain.push_back(rate(plain_audit_insert, tenants));
                rates.like_staged.push_back(rate(like_staged_insert, tenants));
                rates.staged.push_back(rate(stage, tenants));
            }
            progress.clear();
            tell_staging(tenants, rates);
        }
        progress.show("sealing");
        tell_sealing(progress);
        tell_machine(context_, scratch_);
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

    void tell_staging(int tenants, const StageRates& rates) const {
        const double of_plain = median_ratio(rates.staged, rates.plain);
        const double of_like_staged = median_ratio(rates.staged, rates.like_staged);
        if (context_.globals.json) {
            JsonObject object;
            object.number("tenants", tenants).number("clients", options_.clients);
            object.real("plain_inserts_per_second", median(rates.plain));
            object.real("inserts_like_staged_per_second", median(rates.like_staged));
            object.real("staged_per_second", median(rates.staged)).real("ratio", of_plain);
            print_line(object.real("ratio_to_like_staged", of_like_staged).str());
        } else {
            const auto shown_rate = [](const std::vector<double>& some) {
                return grouped(static_cast<std::int64_t>(median(some)));
            };
            print_line(
                fmt::format("{} {}, {} clients: plain INSERT {}/s, into a table with our keys and checks {}/s, "
                            "stage {}/s ({:.2f} of the latter)",
                            tenants, tenants == 1 ? "tenant" : "tenants", options_.clients, shown_rate(rates.plain),
                            shown_rate(rates.like_staged), shown_rate(rates.staged), of_like_staged));
        }
        tell_bar(context_,
                 {fmt::format("stage, {}: × plain INSERT", tenants == 1 ? "1 tenant" : grouped(tenants) + " tenants"),
                  of_plain, stage_bar});
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
            print_line(JsonObject().number("sealed", sealed).real("sealed_per_second", per_second).str());
        } else {
            print_line(fmt::format("sealed {} of 2 tenants, one sealer", counted(sealed, "entry", "entries")));
        }
        tell_bar(context_, {"seal, one sealer: entries/s", per_second, seal_bar});
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
