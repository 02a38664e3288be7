// The statements of quotas and rules. Here, and not beside the functions that run them, since races are made of them,
// too.
#pragma once

#include <string>

#include "postgres/advisory_key.hpp"
#include "postgres/advisory_namespace.hpp"
#include "rowlock/quota.hpp"

namespace rowlock {

/// Lock: the quota's row, FOR NO KEY UPDATE, until the transaction ends. The condition is read again after a wait.
/// `used <= cap - amount` and not `used + amount <= cap`: the latter overflows at the largest amount there is.
constexpr Statement reserve_quota{"quota.reserve",
                                  "UPDATE rowlock.quota SET used = used + $3::bigint"
                                  " WHERE tenant_id = $1 AND name = $2 AND used <= cap - $3::bigint"
                                  " RETURNING used, cap",
                                  true};

/// Lock: the same.
constexpr Statement release_quota{"quota.release",
                                  "UPDATE rowlock.quota SET used = used - $3::bigint"
                                  " WHERE tenant_id = $1 AND name = $2 AND used >= $3::bigint"
                                  " RETURNING used, cap",
                                  true};

/// Lock: the same; for a new quota, the new row.
constexpr Statement set_quota_cap{"quota.set_cap",
                                  "INSERT INTO rowlock.quota (tenant_id, name, cap) VALUES ($1, $2, $3)"
                                  " ON CONFLICT (tenant_id, name) DO UPDATE SET cap = excluded.cap"
                                  " RETURNING used, cap",
                                  true};

/// Lock: none.
constexpr Statement look_at_quota{"quota.look",
                                  "SELECT used, cap FROM rowlock.quota WHERE tenant_id = $1 AND name = $2"};
constexpr Statement list_quotas{"quota.list",
                                "SELECT name, used, cap FROM rowlock.quota WHERE tenant_id = $1 ORDER BY name"};

/// Lock: the quota's row, FOR UPDATE, until the transaction ends. A statement of its own, since the count needs a
/// snapshot that is no older than the lock.
constexpr Statement lock_quota{
    "quota.lock", "SELECT used, cap FROM rowlock.quota WHERE tenant_id = $1 AND name = $2 FOR UPDATE", true};

/// Lock: none that is not held by now.
constexpr Statement set_quota_used{"quota.set_used",
                                   "UPDATE rowlock.quota SET used = $3 WHERE tenant_id = $1 AND name = $2"
                                   " RETURNING used, cap"};

/// $1 the tenant, $2 the statuses if the table is described with some. Lock: none.
[[nodiscard]] std::string count_sql(const CountedTable& table);

/// $1 tenant, $2 rule, $3 key. Lock: the advisory lock, until the transaction ends. A statement of its own: what
/// follows has a snapshot that is no older than the lock.
[[nodiscard]] inline std::string hold_rule_sql() {
    static_assert(quota_rule_namespace.id == 1919709557, "the statement writes it out");
    return "SELECT pg_advisory_xact_lock(1919709557, " +
           advisory_key_sql("concat_ws(E'\\x1f', $1::text, $2::text, $3::text)") + ")";
}

}  // namespace rowlock
