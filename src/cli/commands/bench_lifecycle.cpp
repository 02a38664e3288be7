#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "cli/commands/commands.hpp"
#include "cli/output.hpp"
#include "cli/scratch_database.hpp"
#include "rowlock/error.hpp"
#include "rowlock/lifecycle.hpp"

namespace rowlock::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int rounds = 5;

constexpr Statement make_tables{
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

double seconds_of(const std::function<void()>& work) {
    const auto start = Clock::now();
    work();
    return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

/// Inserts until the time is up; the rate.
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

}  // namespace

Exit bench_lifecycle(const Context& context, const BenchLifecycleOptions& options) {
    const ScratchDatabase scratch(context, "rowlock_bench");
    Database database(scratch.as_owner());
    database.transact({}, [](Transaction& transaction) {
        transaction.execute_script(make_tables);
        transaction.execute(add_document, {0});
    });
    const Lifecycle documents(database, {.parent = {.table = "bench_document"},
                                         .child = {.table = "bench_claim"},
                                         .retired = "rejected",
                                         .live_children = {"candidate", "confirmed"}});
    const double bare = inserts_per_second(database, options.seconds,
                                           [](Transaction& transaction) { transaction.execute(add_claim, {0}); });
    const double guarded = inserts_per_second(database, options.seconds, [&](Transaction& transaction) {
        const HoldOutcome outcome = documents.hold_open(transaction, 0);
        documents.add_child(std::get<OpenParent>(outcome), {{"status", "candidate"}});
    });

    Progress progress(context.style);
    std::vector<double> by_hand;
    std::vector<double> by_library;
    const TransactionPolicy patient{.lock_wait_max = std::chrono::minutes(1)};
    for (int round = 1; round <= 2 * rounds; ++round) {
        progress.show(fmt::format("retiring: {} of {}", round, 2 * rounds));
        database.transact(patient, [&](Transaction& transaction) {
            transaction.execute(add_document, {round});
            transaction.execute(add_claims, {round, options.children});
        });
        const bool hand = round % 2 == 0;
        const double seconds = seconds_of([&] {
            database.transact(patient, [&](Transaction& transaction) {
                if (!hand) return static_cast<void>(documents.retire(transaction, round));
                transaction.execute(lock_document, {round});
                transaction.execute_all({{retire_claims, {round}}, {retire_document, {round}}});
            });
        });
        (hand ? by_hand : by_library).push_back(seconds);
    }
    progress.clear();
    if (context.globals.json) {
        JsonObject object;
        object.real("bare_inserts_per_second", bare).real("guarded_inserts_per_second", guarded);
        object.number("children", options.children).real("retire_by_hand_seconds", median(by_hand));
        print_line(object.real("retire_seconds", median(by_library)).str());
        return Exit::fine;
    }
    print_line(fmt::format("insert of a child, bare:      {:>8}/s", grouped(static_cast<std::int64_t>(bare))));
    print_line(fmt::format("hold_open, then add_child:    {:>8}/s  ({:.2f} of bare)",
                           grouped(static_cast<std::int64_t>(guarded)), guarded / bare));
    print_line(fmt::format("retire of {} children, by hand: {:.2f} s", grouped(options.children), median(by_hand)));
    print_line(fmt::format("retire of {} children:          {:.2f} s  ({:.2f} of the rate by hand)",
                           grouped(options.children), median(by_library), median(by_hand) / median(by_library)));
    return Exit::fine;
}

}  // namespace rowlock::cli
