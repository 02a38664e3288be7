#include "rowlock/gapless_sequence.hpp"

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "sequence/numbered_table.hpp"

namespace rowlock {

namespace {

constexpr std::size_t name_bytes_max = 200;
/// The limit of rowlock.set_next_number: a counter at the end of 64 bits could never give another number.
constexpr std::int64_t next_number_max = 1'000'000'000'000'000'000;

/// Lock: the counter's row of rowlock.sequence_counter, FOR UPDATE, until the transaction ends.
constexpr Statement take_number{"sequence.take_next", "SELECT rowlock.next_number($1, $2)", true};

/// Lock: the same.
constexpr Statement lock_counter{"sequence.lock_counter", "SELECT rowlock.lock_counter($1, $2)", true};

/// Lock: the same, which the transaction holds by then.
constexpr Statement set_next{"sequence.set_next", "SELECT rowlock.set_next_number($1, $2, $3)"};
constexpr Statement adopt_numbers{"sequence.adopt", "SELECT rowlock.set_next_number($1, $2, $3, true)"};

/// Lock: none. A start value that was set is no number that was taken.
constexpr Statement read_last_taken{"sequence.last_taken",
                                    "SELECT coalesce((SELECT last_taken FROM rowlock.sequence_counter"
                                    " WHERE tenant_id = $1 AND name = $2 AND last_taken >= first_number), 0)"};

Query check_query(const Transaction& transaction, const NumberedTable& table, const std::string& sql) {
    std::vector<Parameter> parameters{transaction.required_tenant()};
    if (!table.series_column.empty()) parameters.emplace_back(table.series_value);
    return {{"sequence.check_numbers", sql}, std::move(parameters)};
}

NumberReport report_of(const Rows& rows) {
    NumberReport report;
    for (const Row row : rows) {
        add_to_report(report, static_cast<NumberRow>(row.integer(0)), {row.integer(1), row.integer(2)}, row.integer(3));
    }
    return report;
}

void require_start(std::int64_t first) {
    if (first >= 1 && first <= next_number_max) return;
    throw InvalidInput(fmt::format("a sequence starts at a number from 1 to 10^18, not {}", first));
}

}  // namespace

GaplessSequence::GaplessSequence(std::string name) : name_(std::move(name)) {
    if (name_.empty() || name_.size() > name_bytes_max) {
        throw InvalidInput(
            fmt::format("the name of a sequence has 1 to {} bytes, not {}", name_bytes_max, name_.size()));
    }
    if (name_.find('\0') != std::string::npos) throw InvalidInput("the name of a sequence has a NUL in it");
    if (first_invalid_utf8(name_)) throw InvalidInput("the name of a sequence is not UTF-8");
}

std::int64_t GaplessSequence::take_next(Transaction& transaction) const {
    return transaction.execute(take_number, {transaction.required_tenant(), name_}).only().integer(0);
}

std::int64_t GaplessSequence::last_taken(Transaction& transaction) const {
    return transaction.execute(read_last_taken, {transaction.required_tenant(), name_}).only().integer(0);
}

void GaplessSequence::start_at(Transaction& transaction, std::int64_t first) const {
    require_start(first);
    const TenantId& tenant = transaction.required_tenant();
    const std::int64_t last = transaction.execute(lock_counter, {tenant, name_}).only().integer(0);
    if (last != 0) {
        throw InvalidInput(
            fmt::format("sequence \"{}\" can't start at {}: number {} was taken already", name_, first, last));
    }
    transaction.execute(set_next, {tenant, name_, first});
}

NumberReport GaplessSequence::check(Transaction& transaction, const NumberedTable& table) const {
    const std::string sql = check_numbers_sql(table);
    const Query query = check_query(transaction, table, sql);
    return report_of(transaction.execute(query.statement, query.parameters));
}

NumberReport GaplessSequence::adopt(Transaction& transaction, const NumberedTable& table) const {
    // Above READ COMMITTED the snapshot is older than the locks: a row committed in between would be missed, and its
    // number given again.
    if (transaction.isolation() != IsolationLevel::read_committed) {
        throw InvalidInput("numbers are adopted at READ COMMITTED: set it in the policy of the transaction");
    }
    const TenantId& tenant = transaction.required_tenant();
    const std::string lock_sql = lock_table_sql(table);
    const std::string check_sql = check_numbers_sql(table);
    // The counter before the table, as writers do it who take a number and then insert: the other way round deadlocks.
    // One round trip, but statements of their own: each has a snapshot that is no older than the locks before it.
    const std::vector<Rows> answers = transaction.execute_all({{lock_counter, {tenant, name_}},
                                                               {{"sequence.lock_table", lock_sql, true}, {}},
                                                               check_query(transaction, table, check_sql)});
    const NumberReport report = report_of(answers.back());
    if (report.last < 1) return report;
    require_start(report.last);
    transaction.execute(adopt_numbers, {tenant, name_, report.last + 1});
    return report;
}

}  // namespace rowlock
