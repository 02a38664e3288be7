#include "rowlock/key_claim.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>

#include "base/hex.hpp"
#include "claim/claim_sql.hpp"
#include "claim/description.hpp"
#include "crypto/hmac.hpp"

namespace rowlock {

namespace {

constexpr std::size_t key_bytes = 16;

/// Of its own name: the claim is inside of whatever savepoint the caller has.
constexpr Statement set_claim_savepoint{"claim.savepoint", "SAVEPOINT rowlock_claim"};
constexpr Statement release_claim{"claim.release", "RELEASE SAVEPOINT rowlock_claim"};
constexpr Statement roll_back_claim{"claim.roll_back", "ROLLBACK TO SAVEPOINT rowlock_claim"};

std::vector<std::string> parts_of(std::string_view text, char separator) {
    std::vector<std::string> parts;
    for (std::size_t end = 0; end != std::string_view::npos;) {
        end = text.find(separator);
        parts.emplace_back(text.substr(0, end));
        if (end != std::string_view::npos) text.remove_prefix(end + 1);
    }
    return parts;
}

ClaimCatalog read_catalog(Transaction& transaction, const ClaimedTable& table) {
    constexpr char separator = '\x1f';
    const std::array<std::optional<std::string>, 2> names{table.table, table.used_keys};
    const std::vector<Parameter> parameters{table.schema, Parameter::array(names)};
    const std::vector<Rows> answers =
        transaction.execute_all({{columns_statement, parameters}, {unique_indexes_statement, parameters}});
    ClaimCatalog catalog;
    for (const Row row : answers[0]) {
        catalog.columns.push_back(
            {std::string(row.text(0)), std::string(row.text(1)), std::string(row.text(2)), row.boolean(3)});
    }
    for (const Row row : answers[1]) {
        catalog.uniques.push_back({std::string(row.text(0)), parts_of(row.text(1), separator)});
    }
    return catalog;
}

/// Nothing where the first column is true and nothing else is known: whose it is stands in an open transaction.
LostTo lost_to(const Row& row) {
    if (!row.boolean(0)) return {LostTo::How::completed, {}, {}};
    if (row.is_null(2)) return {LostTo::How::being_claimed, {}, {}};
    return {LostTo::How::claimed, std::string(row.text(1)), row.integer(2)};
}

void require_lease(std::chrono::milliseconds lease, std::chrono::milliseconds lease_max) {
    if (lease.count() >= 1 && lease <= lease_max) return;
    throw InvalidInput(
        fmt::format("a lease is 1 ms to lease_max ({} ms), not {} ms", lease_max.count(), lease.count()));
}

}  // namespace

struct KeyClaim::Implementation {
    explicit Implementation(ClaimedTable described) : table(std::move(described)), sql(claim_statements(table)) {}

    /// The parameters that every statement of one claim begins with.
    [[nodiscard]] std::vector<Parameter> row(const Transaction& transaction, const RowId& id) const {
        if (id.size() != table.id.size()) {
            throw InvalidInput(
                fmt::format("a row of {} has {} values in its id, not {}", table.table, table.id.size(), id.size()));
        }
        std::vector<Parameter> parameters;
        if (!table.tenant.empty()) parameters.emplace_back(transaction.required_tenant());
        parameters.insert(parameters.end(), id.begin(), id.end());
        return parameters;
    }
    [[nodiscard]] std::vector<Parameter> row_and_epoch(const Transaction& transaction, const Claimed& claimed) const {
        std::vector<Parameter> parameters = row(transaction, claimed.id);
        parameters.emplace_back(claimed.key);
        parameters.emplace_back(claimed.epoch);
        return parameters;
    }
    [[nodiscard]] std::vector<Parameter> with_tenant(const Transaction& transaction,
                                                     std::vector<Parameter> parameters) const {
        if (!table.tenant.empty()) parameters.emplace_back(transaction.required_tenant());
        return parameters;
    }
    /// The catalog is read by the first transaction that comes; several at once read it each.
    void check_once(Transaction& transaction) const {
        if (transaction.isolation() != IsolationLevel::read_committed) {
            throw InvalidInput("keys are claimed at READ COMMITTED: above it the snapshot is older than the claim");
        }
        if (!checked) check(transaction);
    }
    void check(Transaction& transaction) const {
        const ClaimCatalog catalog = read_catalog(transaction, table);
        const std::string objection = objection_to(table, catalog);
        if (!objection.empty()) throw SetupError(objection);
        is_bytea = key_is_bytea(table, catalog);
        checked = true;
    }
    [[nodiscard]] std::string fresh_key() const {
        std::array<std::byte, key_bytes> bytes{};
        fill_random(bytes);
        return (is_bytea ? "\\x" : "") + to_hex(bytes);
    }

    ClaimedTable table;
    ClaimStatements sql;
    mutable std::atomic<bool> checked = false;
    mutable std::atomic<bool> is_bytea = false;
};

KeyClaim::KeyClaim(ClaimedTable table) {
    if (table.id.empty()) throw InvalidInput("a claim needs the columns that name a row: id is empty");
    if (table.lease_max.count() < 1) throw InvalidInput("lease_max is at least 1 ms");
    implementation_ = std::make_unique<const Implementation>(std::move(table));
}
KeyClaim::~KeyClaim() = default;
KeyClaim::KeyClaim(KeyClaim&&) noexcept = default;
KeyClaim& KeyClaim::operator=(KeyClaim&&) noexcept = default;

std::string KeyClaim::used_keys_sql() const {
    return implementation_->sql.create_used_keys;
}

void KeyClaim::check(Transaction& transaction) const {
    implementation_->check(transaction);
}

ClaimOutcome KeyClaim::claim(Transaction& transaction, const RowId& id, const ClaimOptions& options) const {
    const Implementation& self = *implementation_;
    require_lease(options.lease, self.table.lease_max);
    std::vector<Parameter> parameters = self.row(transaction, id);
    self.check_once(transaction);
    const Rows seen =
        transaction
            .execute_all({{set_claim_savepoint, {}}, {{"claim.look_and_lock", self.sql.look_and_lock}, parameters}})
            .back();
    if (seen.empty()) {
        transaction.execute_all({{roll_back_claim, {}}, {release_claim, {}}});
        return Missing{};
    }
    parameters.emplace_back(options.key ? *options.key : std::string(seen[0].text(0)));
    const std::vector<Parameter> row_and_key = parameters;
    if (seen[0].boolean(1)) {
        parameters.emplace_back(options.owner);
        parameters.emplace_back(options.lease.count());
        // In this order: a short lease may be over before the next statement, which would take the new claim over.
        const std::vector<Rows> answers = transaction.execute_all(
            {{{"claim.take_over", self.sql.take_over}, parameters}, {{"claim.insert", self.sql.insert}, parameters}});
        for (const Rows& rows : answers) {
            if (rows.empty()) continue;
            transaction.enqueue(release_claim);
            return Claimed{id, std::string(rows[0].text(0)), rows[0].integer(1)};
        }
    }
    // Back to the savepoint: a loser that works on would keep the next one out with the advisory lock.
    const Rows loss = transaction
                          .execute_all({{roll_back_claim, {}},
                                        {release_claim, {}},
                                        {{"claim.look_at_loss", self.sql.look_at_loss}, row_and_key}})
                          .back();
    if (loss.empty()) return Missing{};
    return lost_to(loss[0]);
}

std::variant<Rows, Fenced> KeyClaim::write(Transaction& transaction, const Claimed& claimed, const Statement& statement,
                                           std::vector<Parameter> parameters) const {
    const Implementation& self = *implementation_;
    const std::vector<Parameter> own = self.row_and_epoch(transaction, claimed);
    const std::string sql = fenced_sql(self.table, statement.sql, parameters.size());
    parameters.insert(parameters.end(), own.begin(), own.end());
    self.check_once(transaction);
    // The second says whether the first was fenced: a write of no row says nothing. Both see the same, since an epoch
    // only rises, and stays as it is while the first one's lock is held.
    std::vector<Rows> answers = transaction.execute_all(
        {{{statement.name, sql, true}, std::move(parameters)}, {{"claim.fence", self.sql.fence, true}, own}});
    if (answers[1].empty()) return Fenced{};
    return std::move(answers[0]);
}

std::variant<Completed, Fenced> KeyClaim::complete(Transaction& transaction, const Claimed& claimed) const {
    const Implementation& self = *implementation_;
    std::vector<Parameter> parameters = self.row_and_epoch(transaction, claimed);
    self.check_once(transaction);
    parameters.emplace_back(self.fresh_key());
    const Rows rows = transaction.execute({"claim.complete", self.sql.complete, true}, std::move(parameters));
    if (rows.empty()) return Fenced{};
    return Completed{std::string(rows[0].text(0))};
}

std::variant<Renewed, Fenced> KeyClaim::renew(Transaction& transaction, const Claimed& claimed,
                                              std::chrono::milliseconds lease) const {
    const Implementation& self = *implementation_;
    require_lease(lease, self.table.lease_max);
    std::vector<Parameter> parameters = self.row_and_epoch(transaction, claimed);
    parameters.emplace_back(lease.count());
    self.check_once(transaction);
    const Rows rows = transaction.execute({"claim.renew", self.sql.renew, true}, std::move(parameters));
    if (rows.empty()) return Fenced{};
    return Renewed{rows[0].integer(0)};
}

std::int64_t KeyClaim::sweep(Transaction& transaction, std::chrono::milliseconds older_than,
                             std::int64_t batch_max) const {
    const Implementation& self = *implementation_;
    if (older_than < self.table.lease_max) {
        throw InvalidInput(fmt::format("used keys are kept for lease_max ({} ms) at least, not {} ms",
                                       self.table.lease_max.count(), older_than.count()));
    }
    if (batch_max < 1) throw InvalidInput("a batch has at least one row");
    self.check_once(transaction);
    return transaction
        .execute({"claim.sweep", self.sql.sweep}, self.with_tenant(transaction, {older_than.count(), batch_max}))
        .affected();
}

ClaimCounts KeyClaim::count(Transaction& transaction) const {
    const Implementation& self = *implementation_;
    self.check_once(transaction);
    const Rows rows = transaction.execute({"claim.count", self.sql.count}, self.with_tenant(transaction, {}));
    const Row row = rows.only();
    return {row.integer(0), row.integer(1), row.integer(2)};
}

std::vector<OpenClaim> KeyClaim::list_open(Transaction& transaction, std::int64_t count_max) const {
    const Implementation& self = *implementation_;
    self.check_once(transaction);
    std::vector<OpenClaim> claims;
    for (const Row row :
         transaction.execute({"claim.list_open", self.sql.list_open}, self.with_tenant(transaction, {count_max}))) {
        claims.push_back({std::string(row.text(0)), std::string(row.text(1)), row.integer(2), row.integer(3),
                          row.integer(4), row.boolean(5)});
    }
    return claims;
}

}  // namespace rowlock
