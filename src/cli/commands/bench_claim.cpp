// One row that many want to change: who is told what, and when.
#include <fmt/format.h>

#include <string_view>
#include <thread>

#include "cli/commands/commands.hpp"
#include "cli/contest.hpp"
#include "cli/output.hpp"
#include "cli/scratch_database.hpp"

namespace rowlock::cli {

namespace {

constexpr int contenders_max = 128;

constexpr Statement make_room{"bench.room",
                              "CREATE TABLE room (id int PRIMARY KEY, pebbles bigint NOT NULL, version bigint NOT NULL,"
                              " key uuid NOT NULL DEFAULT gen_random_uuid()) WITH (fillfactor = 50);"
                              "INSERT INTO room VALUES (1, 0, 0)"};
constexpr Statement read_room{"bench.read", "SELECT pebbles, version, key FROM room WHERE id = 1"};
constexpr Statement lock_room{"bench.lock", "SELECT pebbles FROM room WHERE id = 1 FOR UPDATE", true};
constexpr Statement set_pebbles{"bench.set", "UPDATE room SET pebbles = $1 WHERE id = 1"};
constexpr Statement set_version{
    "bench.set_version", "UPDATE room SET pebbles = $1, version = version + 1 WHERE id = 1 AND version = $2", true};
constexpr Statement set_fenced{"bench.set_fenced",
                               "UPDATE room SET pebbles = $1 WHERE id = 1 AND EXISTS (SELECT FROM rowlock_fence)"};

class ClaimBench {
  public:
    ClaimBench(const Context& context, const BenchClaimOptions& options)
        : context_(context),
          options_(options),
          scratch_(context, "rowlock_bench"),
          database_(scratch_.as_owner(contenders_max)) {
        database_.transact({}, [&](Transaction& transaction) {
            transaction.execute_script(make_room);
            transaction.execute_script({"bench.used_keys", rooms_.used_keys_sql()});
        });
    }

    Exit run() {
        const std::vector<int> contenders = options_.contenders.empty() ? std::vector<int>{2, 32} : options_.contenders;
        Progress progress(context_.style);
        Table table({"way", "contenders", "changes/s", "told yes, ms", "told no, ms", "p99 ms", "times told no"});
        for (const int count : contenders) {
            add(table, progress, "key claim", count, [&](Tally& tally) { by_claim(tally); });
            add(table, progress, "SELECT … FOR UPDATE", count, [&](Tally& tally) { by_row_lock(tally); });
            add(table, progress, "version column", count, [&](Tally& tally) { by_version(tally); });
        }
        progress.clear();
        if (context_.globals.json) return Exit::fine;
        for (const std::string& line : table.lines(context_.style)) print_line(line);
        print_line(fmt::format(
            "\nWho may change the row works {} ms on it. With a version column one is told no after the work.",
            options_.work));
        return Exit::fine;
    }

  private:
    void work() const { std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(options_.work)); }
    /// Who was told no looks after something else for a while.
    void wait_a_little(Tally& tally) const {
        const auto share = static_cast<double>(tally.dice() % 1000) / 1000;
        std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(options_.work * share));
    }

    void by_claim(Tally& tally) {
        const bool won = database_.transact(policy(), [&](Transaction& transaction) {
            const Stopwatch watch;
            const ClaimOutcome outcome = rooms_.claim(transaction, {1});
            const auto* const claimed = std::get_if<Claimed>(&outcome);
            (claimed == nullptr ? tally.refusals : tally.answers).push_back(watch.milliseconds());
            if (claimed == nullptr) return false;
            const std::int64_t pebbles = transaction.execute(read_room).only().integer(0);
            work();
            return std::holds_alternative<Rows>(rooms_.write(transaction, *claimed, set_fenced, {pebbles + 1})) &&
                   std::holds_alternative<Completed>(rooms_.complete(transaction, *claimed));
        });
        if (won) {
            ++tally.done;
        } else {
            wait_a_little(tally);
        }
    }

    void by_row_lock(Tally& tally) {
        database_.transact(policy(), [&](Transaction& transaction) {
            const Stopwatch watch;
            const std::int64_t pebbles = transaction.execute(lock_room).only().integer(0);
            tally.answers.push_back(watch.milliseconds());
            work();
            transaction.execute(set_pebbles, {pebbles + 1});
        });
        ++tally.done;
    }

    void by_version(Tally& tally) {
        const Stopwatch watch;
        const bool won = database_.transact(policy(), [&](Transaction& transaction) {
            const Rows seen = transaction.execute(read_room);
            work();
            return transaction.execute(set_version, {seen.only().integer(0) + 1, seen.only().integer(1)}).affected() ==
                   1;
        });
        (won ? tally.answers : tally.refusals).push_back(watch.milliseconds());
        if (won) ++tally.done;
    }

    static TransactionPolicy policy() { return {.lock_wait_max = std::chrono::seconds(60)}; }

    void add(Table& table, Progress& progress, std::string_view way, int contenders,
             const std::function<void(Tally&)>& once) {
        progress.show(fmt::format("{}, {} contenders", way, contenders));
        const ContestResult result = run_contest(contenders, options_.seconds, once);
        if (context_.globals.json) {
            print_line(JsonObject()
                           .text("way", way)
                           .number("contenders", contenders)
                           .real("per_second", result.per_second)
                           .real("yes_median_ms", result.answer_median)
                           .real("no_median_ms", result.refusal_median)
                           .real("no_p99_ms", result.refusal_p99)
                           .number("no", result.refusals)
                           .str());
            return;
        }
        const bool refuses = result.refusals > 0;
        table.add({std::string(way), std::to_string(contenders), grouped(static_cast<std::int64_t>(result.per_second)),
                   fmt::format("{:.2f}", result.answer_median),
                   refuses ? fmt::format("{:.2f}", result.refusal_median) : "–",
                   refuses ? fmt::format("{:.2f}", result.refusal_p99) : "–", grouped(result.refusals)});
    }

    const Context& context_;
    const BenchClaimOptions& options_;
    ScratchDatabase scratch_;
    Database database_;
    const KeyClaim rooms_{{.table = "room", .id = {"id"}, .key = "key", .used_keys = "used"}};
};

}  // namespace

Exit bench_claim(const Context& context, const BenchClaimOptions& options) {
    return ClaimBench(context, options).run();
}

}  // namespace rowlock::cli
