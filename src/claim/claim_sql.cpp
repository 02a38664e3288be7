#include "claim/claim_sql.hpp"

#include <fmt/args.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "postgres/advisory_key.hpp"
#include "postgres/advisory_namespace.hpp"
#include "postgres/identifier.hpp"

namespace rowlock {

namespace {

constexpr std::string_view fence_name = "rowlock_fence";

/// Lock: the row's advisory lock, if it is free, until the transaction ends. A statement of its own: the next one's
/// snapshot is then no older than the lock. Hashed are the values as the row has them, whatever they were given as.
constexpr std::string_view look_and_lock_pattern = R"sql(
SELECT t.{key}::text, pg_try_advisory_xact_lock(1919705963, {lock_key})
  FROM {table} AS t
 WHERE {t_is_row}
)sql";
static_assert(claim_namespace.id == 1919705963, "the statement writes it out");

/// Lock: the new row of the used keys, until the transaction ends. From the table and not from the values: whoever kept
/// an old key until it was swept would win with it again. ON CONFLICT DO NOTHING alone waits for whoever is inserting,
/// completing or renewing this very claim: those who insert are kept away by the advisory lock, which is held by now,
/// and for the others it looks before it inserts. The conflict is left to writers who go without the lock.
constexpr std::string_view insert_pattern = R"sql(
INSERT INTO {used} AS u ({columns}, {key}, owner, claimed_at, leased_until)
SELECT {t_columns}, t.{key}, {owner}, {clock}, {clock} + {lease}::bigint * interval '1 millisecond'
  FROM {table} AS t
 WHERE {t_is_row} AND t.{key} = {key_value}
   AND NOT EXISTS (SELECT FROM {used} AS other WHERE {t_is_other} AND other.{key} = t.{key})
    ON CONFLICT ({columns}, {key}) DO NOTHING
RETURNING u.{key}::text, u.epoch
)sql";

/// Lock: the claim's row FOR UPDATE, until the transaction ends; skipped, not waited for, where its holder is writing.
/// completed_at stands in the locked row, so it is looked at again there; the key in the other table would not be.
constexpr std::string_view take_over_pattern = R"sql(
WITH expired AS MATERIALIZED (
    SELECT {u_columns}, u.{key}
      FROM {used} AS u
     WHERE {u_is_row} AND u.{key} = {key_value} AND u.leased_until < {clock} AND u.completed_at IS NULL
       FOR UPDATE OF u SKIP LOCKED)
UPDATE {used} AS u
   SET epoch = u.epoch + 1, owner = {owner}, claimed_at = {clock},
       leased_until = {clock} + {lease}::bigint * interval '1 millisecond'
  FROM expired
 WHERE {u_is_expired} AND u.{key} = expired.{key}
RETURNING u.{key}::text, u.epoch
)sql";

/// Lock: none.
constexpr std::string_view look_at_loss_pattern = R"sql(
SELECT t.{key} = {key_value}, u.owner, (extract(epoch FROM u.leased_until) * 1000000)::bigint
  FROM {table} AS t
  LEFT JOIN {used} AS u ON {t_is_u} AND u.{key} = t.{key}
 WHERE {t_is_row}
)sql";

/// Lock: the claim's row FOR SHARE, until the transaction ends. Without the lock a statement that waits elsewhere
/// writes after a takeover that it has not seen.
constexpr std::string_view fence_pattern =
    "SELECT 1 FROM {used} AS u WHERE {u_is_row} AND u.{key} = {key_value} AND u.epoch = {epoch}"
    " AND u.completed_at IS NULL FOR SHARE";

/// Lock: the claim's row, then the row itself, FOR NO KEY UPDATE (FOR UPDATE where the key is in a unique index), until
/// the transaction ends.
constexpr std::string_view complete_pattern = R"sql(
WITH claim AS MATERIALIZED (
    UPDATE {used} AS u SET completed_at = {clock}
     WHERE {u_is_row} AND u.{key} = {key_value} AND u.epoch = {epoch}
    RETURNING {u_columns}, u.{key})
UPDATE {table} AS t SET {key} = {fresh_key}
  FROM claim
 WHERE {t_is_claim} AND t.{key} = claim.{key}
RETURNING t.{key}::text
)sql";

/// Lock: the claim's row, FOR NO KEY UPDATE, until the transaction ends.
constexpr std::string_view renew_pattern = R"sql(
UPDATE {used} AS u SET leased_until = {clock} + {lease}::bigint * interval '1 millisecond'
 WHERE {u_is_row} AND u.{key} = {key_value} AND u.epoch = {epoch} AND u.completed_at IS NULL
RETURNING (extract(epoch FROM u.leased_until) * 1000000)::bigint
)sql";

/// Lock: the rows that it removes, until the transaction ends; skips what others hold. A current key stays: with it the
/// epoch would be lost, and a late writer's claim be taken for the next one's.
constexpr std::string_view sweep_pattern = R"sql(
WITH old AS MATERIALIZED (
    SELECT {u_columns}, u.{key}
      FROM {used} AS u
     WHERE greatest(u.leased_until, u.completed_at) < {clock} - $1::bigint * interval '1 millisecond'
       AND NOT EXISTS (SELECT FROM {table} AS t WHERE {t_is_u} AND t.{key} = u.{key}){own_rows}
     LIMIT $2::bigint
       FOR UPDATE OF u SKIP LOCKED)
DELETE FROM {used} AS u USING old WHERE {u_is_old} AND u.{key} = old.{key}
)sql";

/// Lock: none.
constexpr std::string_view count_pattern = R"sql(
SELECT count(*) FILTER (WHERE current AND u.leased_until >= {clock}),
       count(*) FILTER (WHERE current AND u.leased_until < {clock}),
       count(*) FILTER (WHERE NOT current)
  FROM {used} AS u,
       LATERAL (SELECT EXISTS (SELECT FROM {table} AS t WHERE {t_is_u} AND t.{key} = u.{key}) AS current) AS state
 WHERE true{own_rows}
)sql";

/// Lock: none.
constexpr std::string_view list_open_pattern = R"sql(
SELECT concat_ws(', ', {u_columns}), u.owner, u.epoch, (extract(epoch FROM u.claimed_at) * 1000000)::bigint,
       (extract(epoch FROM u.leased_until) * 1000000)::bigint, u.leased_until < {clock}
  FROM {used} AS u
  JOIN {table} AS t ON {t_is_u} AND t.{key} = u.{key}
 WHERE true{own_rows}
 ORDER BY u.claimed_at
 LIMIT $1::bigint
)sql";

/// The columns of the user's come with their types from his table; CREATE TABLE … AS takes their NOT NULL away.
constexpr std::string_view create_used_keys_pattern = R"sql(
CREATE TABLE {used} AS SELECT {columns}, {key} FROM {table} WITH NO DATA;
ALTER TABLE {used}
    ADD COLUMN owner text NOT NULL DEFAULT '',
    ADD COLUMN epoch bigint NOT NULL DEFAULT 1,
    ADD COLUMN claimed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    ADD COLUMN leased_until timestamptz NOT NULL,
    ADD COLUMN completed_at timestamptz,
    ADD PRIMARY KEY ({columns}, {key});
)sql";

/// "$3": the parameters are counted from 1.
std::string parameter(std::size_t number) {
    return "$" + std::to_string(number);
}

std::string separated(const std::vector<std::string>& parts, std::string_view between) {
    return fmt::format("{}", fmt::join(parts, between));
}

/// What the patterns' names stand for.
class Pieces {
  public:
    explicit Pieces(const ClaimedTable& table)
        : columns_(quote_identifiers(row_columns(table))), key_(quote_identifier(table.key)) {
        set("key", key_);
        set("table", quote_qualified_name(table.schema, table.table));
        set("used", quote_qualified_name(table.schema, table.used_keys));
        set("columns", separated(columns_, ", "));
        set("t_columns", separated(of("t"), ", "));
        set("u_columns", separated(of("u"), ", "));
        set("t_is_u", same("t", "u"));
        set("t_is_other", same("t", "other"));
        set("t_is_claim", same("t", "claim"));
        set("u_is_expired", same("u", "expired"));
        set("u_is_old", same("u", "old"));
    }

    void set(const char* name, const std::string& text) { arguments_.push_back(fmt::arg(name, text)); }

    /// The row and the key as parameters, from this number on; the next ones are free for `rest`.
    void number_from(std::size_t first, std::initializer_list<const char*> rest) {
        std::size_t next = first + columns_.size();
        set("t_is_row", is_row("t", first));
        set("u_is_row", is_row("u", first));
        set("key_value", parameter(next));
        for (const char* const name : rest) set(name, parameter(++next));
    }

    [[nodiscard]] std::string fill(std::string_view pattern) const { return fmt::vformat(pattern, arguments_); }
    [[nodiscard]] const std::vector<std::string>& columns() const { return columns_; }

  private:
    [[nodiscard]] std::vector<std::string> of(std::string_view alias) const {
        std::vector<std::string> named;
        for (const std::string& column : columns_) named.push_back(fmt::format("{}.{}", alias, column));
        return named;
    }
    [[nodiscard]] std::string same(std::string_view one, std::string_view other) const {
        std::vector<std::string> equal;
        for (const std::string& column : columns_)
            equal.push_back(fmt::format("{0}.{2} = {1}.{2}", one, other, column));
        return separated(equal, " AND ");
    }
    [[nodiscard]] std::string is_row(std::string_view alias, std::size_t first) const {
        std::vector<std::string> equal;
        for (const std::string& column : columns_) {
            equal.push_back(fmt::format("{}.{} = {}", alias, column, parameter(first + equal.size())));
        }
        return separated(equal, " AND ");
    }

    std::vector<std::string> columns_;
    std::string key_;
    fmt::dynamic_format_arg_store<fmt::format_context> arguments_;
};

/// The name of the row for the advisory lock: the table and the row's values, apart by a byte that no name has. The
/// functions of sql/006_key_claim.sql have the same.
std::string lock_key_of(const ClaimedTable& table) {
    std::string text = quote_literal(table.schema + "." + table.table);
    for (const std::string& column : row_columns(table)) text += ", t." + quote_identifier(column) + "::text";
    return advisory_key_sql("concat_ws(E'\\x1f', " + text + ")");
}

Pieces pieces_of(const ClaimedTable& table, std::string_view clock, std::initializer_list<const char*> rest) {
    Pieces pieces(table);
    pieces.set("clock", std::string(clock));
    pieces.number_from(1, rest);
    return pieces;
}

/// Only the rows of the transaction's tenant, where there are tenants.
Pieces pieces_of_all(const ClaimedTable& table, std::string_view clock, std::size_t tenant_number) {
    Pieces pieces(table);
    pieces.set("clock", std::string(clock));
    pieces.set("own_rows", table.tenant.empty() ? std::string()
                                                : fmt::format(" AND u.{} = {}", quote_identifier(table.tenant),
                                                              parameter(tenant_number)));
    return pieces;
}

std::string upper_case_first_word(std::string_view statement) {
    const std::size_t begin = statement.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) return {};
    std::string word(statement.substr(begin, statement.find_first_of(" \t\r\n", begin) - begin));
    std::ranges::transform(word, word.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return word;
}

}  // namespace

std::vector<std::string> row_columns(const ClaimedTable& table) {
    std::vector<std::string> columns = table.id;
    if (!table.tenant.empty()) columns.insert(columns.begin(), table.tenant);
    return columns;
}

ClaimStatements claim_statements(const ClaimedTable& table, std::string_view clock) {
    const Pieces claim = pieces_of(table, clock, {"owner", "lease"});
    Pieces locking = pieces_of(table, clock, {});
    locking.set("lock_key", lock_key_of(table));
    const Pieces fence = pieces_of(table, clock, {"epoch"});
    const Pieces all = pieces_of_all(table, clock, 1);
    return {.look_and_lock = locking.fill(look_and_lock_pattern),
            .insert = claim.fill(insert_pattern),
            .take_over = claim.fill(take_over_pattern),
            .look_at_loss = fence.fill(look_at_loss_pattern),
            .fence = fence.fill(fence_pattern),
            .complete = pieces_of(table, clock, {"epoch", "fresh_key"}).fill(complete_pattern),
            .renew = pieces_of(table, clock, {"epoch", "lease"}).fill(renew_pattern),
            .sweep = pieces_of_all(table, clock, 3).fill(sweep_pattern),
            .count = all.fill(count_pattern),
            .list_open = pieces_of_all(table, clock, 2).fill(list_open_pattern),
            .create_used_keys = all.fill(create_used_keys_pattern)};
}

std::string fenced_sql(const ClaimedTable& table, std::string_view statement, std::size_t parameters) {
    const std::string word = upper_case_first_word(statement);
    if (word != "INSERT" && word != "UPDATE" && word != "DELETE" && word != "MERGE") {
        throw InvalidInput("a write through a claim begins with INSERT, UPDATE, DELETE or MERGE");
    }
    if (statement.find(fence_name) == std::string_view::npos) {
        throw InvalidInput(
            "a write through a claim refers to rowlock_fence, such as AND EXISTS (SELECT FROM rowlock_fence); else it "
            "is carried out whoever has the claim");
    }
    Pieces pieces(table);
    pieces.number_from(parameters + 1, {"epoch"});
    return fmt::format("WITH {} AS MATERIALIZED ({})\n{}", fence_name, pieces.fill(fence_pattern), statement);
}

}  // namespace rowlock
