#include "rowlock/quota.hpp"

#include <fmt/format.h>

#include "base/utf8.hpp"
#include "postgres/identifier.hpp"
#include "quota/quota_sql.hpp"

namespace rowlock {

namespace {

constexpr std::size_t quota_name_bytes_max = 200;

void require_name(std::string_view name, std::string_view what) {
    if (name.empty() || name.size() > quota_name_bytes_max) {
        throw InvalidInput(
            fmt::format("the name of a {} has 1 to {} bytes, not {}", what, quota_name_bytes_max, name.size()));
    }
    if (name.find('\0') != std::string_view::npos)
        throw InvalidInput(fmt::format("the name of a {} has a NUL in it", what));
    if (first_invalid_utf8(name)) throw InvalidInput(fmt::format("the name of a {} is not UTF-8", what));
}

void require_amount(std::int64_t amount) {
    if (amount >= 1) return;
    throw InvalidInput(fmt::format("an amount of a quota is 1 or more, not {}", amount));
}

QuotaState state_of(const Row& row) {
    return {row.integer(0), row.integer(1)};
}

/// Done in one statement, or else what stands there now; in one round trip.
template <class Done, class Refused>
std::variant<Done, Refused, NoQuota> change(Transaction& transaction, const Statement& statement,
                                            const std::string& name, std::int64_t amount) {
    require_amount(amount);
    const TenantId& tenant = transaction.required_tenant();
    const std::vector<Rows> answers =
        transaction.execute_all({{statement, {tenant, name, amount}}, {look_at_quota, {tenant, name}}});
    if (!answers[0].empty()) return Done{state_of(answers[0][0])};
    if (!answers[1].empty()) return Refused{state_of(answers[1][0])};
    return NoQuota{};
}

}  // namespace

std::string count_sql(const CountedTable& table) {
    const std::string counted = table.amount_column.empty() ? "count(*)"
                                                            : fmt::format("coalesce(sum({}), 0)::bigint",
                                                                          quote_identifier(table.amount_column));
    const std::string with_status =
        table.statuses.empty() ? ""
                               : fmt::format(" AND {}::text = ANY ($2::text[])", quote_identifier(table.status_column));
    return fmt::format("SELECT {} FROM {} WHERE {} = $1{}", counted, quote_qualified_name(table.schema, table.table),
                       quote_identifier(table.tenant_column), with_status);
}

Quota::Quota(std::string name) : name_(std::move(name)) {
    require_name(name_, "quota");
}

std::variant<Reserved, Full, NoQuota> Quota::reserve(Transaction& transaction, std::int64_t amount) const {
    return change<Reserved, Full>(transaction, reserve_quota, name_, amount);
}

std::variant<Released, NotThatMuch, NoQuota> Quota::release(Transaction& transaction, std::int64_t amount) const {
    return change<Released, NotThatMuch>(transaction, release_quota, name_, amount);
}

QuotaState Quota::set_cap(Transaction& transaction, std::int64_t cap) const {
    if (cap < 0) throw InvalidInput(fmt::format("a cap is 0 or more, not {}", cap));
    return state_of(transaction.execute(set_quota_cap, {transaction.required_tenant(), name_, cap}).only());
}

std::optional<QuotaState> Quota::look(Transaction& transaction) const {
    const Rows rows = transaction.execute(look_at_quota, {transaction.required_tenant(), name_});
    if (rows.empty()) return std::nullopt;
    return state_of(rows[0]);
}

std::variant<Recount, NoQuota> Quota::recount(Transaction& transaction, const CountedTable& table) const {
    if (transaction.isolation() != IsolationLevel::read_committed) {
        throw InvalidInput("quotas are recounted at READ COMMITTED: set it in the policy of the transaction");
    }
    const TenantId& tenant = transaction.required_tenant();
    const std::string sql = count_sql(table);
    std::vector<Parameter> parameters{tenant};
    if (!table.statuses.empty()) {
        const std::vector<std::optional<std::string>> statuses(table.statuses.begin(), table.statuses.end());
        parameters.push_back(Parameter::array(statuses));
    }
    const std::vector<Rows> answers =
        transaction.execute_all({{lock_quota, {tenant, name_}}, {{"quota.count", sql}, std::move(parameters)}});
    if (answers[0].empty()) return NoQuota{};
    const QuotaState before = state_of(answers[0][0]);
    const std::int64_t counted = answers[1].only().integer(0);
    if (counted == before.used) return Recount{before, before};
    return Recount{before, state_of(transaction.execute(set_quota_used, {tenant, name_, counted}).only())};
}

std::vector<Quota::Named> Quota::list(Transaction& transaction) {
    std::vector<Named> quotas;
    for (const Row row : transaction.execute(list_quotas, {transaction.required_tenant()})) {
        quotas.push_back({std::string(row.text(0)), {row.integer(1), row.integer(2)}});
    }
    return quotas;
}

AdvisoryRule::AdvisoryRule(std::string name) : name_(std::move(name)) {
    require_name(name_, "rule");
}

void AdvisoryRule::hold(Transaction& transaction, std::string_view key) const {
    if (transaction.isolation() == IsolationLevel::repeatable_read) {
        throw InvalidInput("a rule is held at READ COMMITTED: at REPEATABLE READ the snapshot is older than the lock");
    }
    const std::string sql = hold_rule_sql();
    const std::string tenant = transaction.tenant() ? transaction.tenant()->text() : std::string();
    transaction.execute({"quota.hold_rule", sql, true}, {tenant, name_, key});
}

}  // namespace rowlock
