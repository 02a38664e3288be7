// The statements of a key claim, built once from the description of the user's tables.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "rowlock/key_claim.hpp"

namespace rowlock {

/// Parameters: $1 … the row (the tenant first, if there is one), then the key; then what each one says.
struct ClaimStatements {
    std::string look_and_lock;  ///< The row alone.
    std::string insert;         ///< Then the owner and the milliseconds of the lease.
    std::string take_over;      ///< The same.
    std::string look_at_loss;   ///< The row and the key.
    std::string fence;          ///< Then the epoch.
    std::string complete;       ///< Then the epoch and the fresh key.
    std::string renew;          ///< Then the epoch and the milliseconds of the lease.
    std::string sweep;          ///< $1 milliseconds, $2 rows; with a tenant it is $3.
    std::string count;          ///< With a tenant it is $1.
    std::string list_open;      ///< $1 rows; with a tenant it is $2.
    std::string create_used_keys;
};

/// `clock` is the SQL that tells the time: a race of the statements brings a clock of its own.
[[nodiscard]] ClaimStatements claim_statements(const ClaimedTable& table, std::string_view clock = "clock_timestamp()");

/// The columns that name a row: the tenant's first, if there is one.
[[nodiscard]] std::vector<std::string> row_columns(const ClaimedTable& table);

/// The fence put before a statement whose own parameters are $1 … $`parameters`; its own come behind them.
/// Throws InvalidInput for a statement that begins or ends otherwise than one that can be fenced.
[[nodiscard]] std::string fenced_sql(const ClaimedTable& table, std::string_view statement, std::size_t parameters);

}  // namespace rowlock
