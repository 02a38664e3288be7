// Where PostgreSQL's programs are on this machine.
#pragma once

#include <optional>

#include "server/account.hpp"
#include "server/server_rules.hpp"

namespace rowlock {

/// Looks in the versioned folders of Debian and of the PGDG packages, then where `pg_config` and PATH point. Programs
/// are asked for their version under `account`, so that root never runs what PATH happens to name.
/// `wanted` is the major version of a cluster that exists; nothing: the newest.
/// Throws SetupError, saying what to install, if there is none or none that is new enough.
[[nodiscard]] Installation find_installation(const Account& account, std::optional<int> wanted);

}  // namespace rowlock
