#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "cli/commands/commands.hpp"
#include "cli/contest.hpp"
#include "cli/output.hpp"
#include "cli/scratch_database.hpp"
#include "lifecycle/statements.hpp"
#include "rowlock/error.hpp"
#include "rowlock/lifecycle.hpp"

namespace rowlock::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int retire_rounds = 5;

constexpr Statement make_documents{
    "bench.tables",
    "CREATE TABLE bench_document (id int PRIMARY KEY, status text NOT NULL);"
    "CREATE TABLE bench_claim (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
    "                          document_id int NOT NULL REFERENCES bench_document, status text NOT NULL);"
    "CREATE INDEX ON bench_claim (document_id)"};
constexpr Statement add_document{"bench.document", "INSERT INTO bench_document VALUES ($1, 'open')"};
constexpr Statement add_claims{"bench.claims",
                               "INSERT INTO bench_claim (document_id, status)"
                               " SELECT $1, 'candidate' FROM generate_series(1, $2::int)"};
constexpr Statement add_claim{"bench.claim", "INSERT INTO bench_claim (document_id, status) VALUES ($1, 'candidate')"};
/// What one writes by hand: the same locks, nothing told.
constexpr Statement lock_document{"bench.lock", "SELECT status FROM bench_document WHERE id = $1 FOR UPDATE"};
constexpr Statement retire_claims{"bench.retire",
                                  "UPDATE bench_claim SET status = 'rejected'"
                                  " WHERE document_id = $1 AND status IN ('candidate', 'confirmed')"
                                  " RETURNING id, status"};
constexpr Statement retire_document{"bench.mark", "UPDATE bench_document SET status = 'rejected' WHERE id = $1"};

/// Inserts for a slice of time; the rate.
double inserts_per_second(Database& database, double seconds, const std::function<void(Transaction&)>& insert) {
    std::int64_t count = 0;
    const double taken = seconds_of([&] {
        const auto end = Clock::now() + std::chrono::duration<double>(seconds);
        while (Clock::now() < end) {
            database.transact({}, insert);
            ++count;
        }
    });
    return static_cast<double>(count) / taken;
}

struct InsertRates {
    std::vector<double> bare{};
    std::vector<double> guarded{};
};

InsertRates measure_inserts(Database& database, const Lifecycle& documents, double seconds, Progress& progress) {
    InsertRates rates;
    const auto bare = [](Transaction& transaction) { transaction.execute(add_claim, {0}); };
    const auto guarded = [&](Transaction& transaction) {
        const HoldOutcome outcome = documents.hold_open(transaction, 0);
        documents.add_child(std::get<OpenParent>(outcome), {{"status", "candidate"}});
    };
    for (int round = 1; round <= retire_rounds; ++round) {
        progress.show(fmt::format("inserting: {} of {}", round, retire_rounds));
        rates.bare.push_back(inserts_per_second(database, seconds, bare));
        rates.guarded.push_back(inserts_per_second(database, seconds, guarded));
    }
    return rates;
}

struct RetireSeconds {
    std::vector<double> plain{};  ///< One UPDATE: the earlier statuses stay unknown, the order of locks is open.
    std::vector<double> same{};   ///< The library's statement, its rows thrown away.
    std::vector<double> by_library{};
};

RetireSeconds measure_retires(Database& database, const Lifecycle& documents, std::int64_t children,
                              Progress& progress) {
    RetireSeconds seconds;
    const TransactionPolicy patient{.lock_wait_max = std::chrono::minutes(1)};
    const LifecycleStatements statements(documents.description());
    for (int round = 1; round <= 3 * retire_rounds; ++round) {
        progress.show(fmt::format("retiring: {} of {}", round, 3 * retire_rounds));
        database.transact(patient, [&](Transaction& transaction) {
            transaction.execute(add_document, {round});
            transaction.execute(add_claims, {round, children});
        });
        const auto retire = [&](Transaction& transaction) {
            if (round % 3 == 0) return static_cast<void>(documents.retire(transaction, round));
            transaction.execute(lock_document, {round});
            const Query update = round % 3 == 1 ? Query{retire_claims, {round}} : statements.retire_children({round});
            transaction.execute_all({update, {retire_document, {round}}});
        };
        auto& list = round % 3 == 0 ? seconds.by_library : round % 3 == 1 ? seconds.plain : seconds.same;
        list.push_back(seconds_of([&] { database.transact(patient, retire); }));
    }
    return seconds;
}

}  // namespace

Exit bench_lifecycle(const Context& context, const BenchLifecycleOptions& options) {
    const ScratchDatabase scratch(context, "rowlock_bench");
    Database database(scratch.as_owner());
    database.transact({}, [](Transaction& transaction) {
        transaction.execute_script(make_documents);
        transaction.execute(add_document, {0});
    });
    const Lifecycle documents(database, {.parent = {.table = "bench_document"},
                                         .child = {.table = "bench_claim"},
                                         .retired = "rejected",
                                         .live_children = {"candidate", "confirmed"}});
    Progress progress(context.style);
    const InsertRates inserts = measure_inserts(database, documents, options.seconds, progress);
    const RetireSeconds retires = measure_retires(database, documents, options.children, progress);
    progress.clear();
    const double bare = median(inserts.bare);
    const double guarded = median(inserts.guarded);
    const double plain = median(retires.plain);
    const double same = median(retires.same);
    const double by_library = median(retires.by_library);
    if (context.globals.json) {
        JsonObject object;
        object.real("bare_inserts_per_second", bare).real("guarded_inserts_per_second", guarded);
        object.number("children", options.children).real("plain_update_seconds", plain);
        print_line(object.real("same_statement_seconds", same).real("retire_seconds", by_library).str());
        return Exit::fine;
    }
    const auto rate = [](double value) { return grouped(static_cast<std::int64_t>(value)); };
    print_line(fmt::format("medians of {} rounds in turn", retire_rounds));
    print_line(fmt::format("insert of a child, bare        {:>8}/s", rate(bare)));
    print_line(fmt::format("hold_open, then add_child      {:>8}/s  ({:.2f} of bare)", rate(guarded), guarded / bare));
    print_line(fmt::format("{} children retired by:", grouped(options.children)));
    print_line(fmt::format("  a plain UPDATE               {:>8.2f} s", plain));
    print_line(fmt::format("  retire's statement by hand   {:>8.2f} s", same));
    print_line(fmt::format("  retire                       {:>8.2f} s  ({:.2f} of the rate by hand, bar 0.80: {})",
                           by_library, same / by_library, same / by_library >= 0.8 ? "met" : "missed"));
    print_line(fmt::format("                                          ({:.2f} of the rate of the plain UPDATE)",
                           plain / by_library));
    return Exit::fine;
}

}  // namespace rowlock::cli
