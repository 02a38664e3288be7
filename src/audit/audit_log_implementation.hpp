#pragma once

#include "audit/chain_keys_cache.hpp"
#include "rowlock/audit_log.hpp"

namespace rowlock {

struct AuditLog::Implementation {
    explicit Implementation(Keyring keyring) : cache(std::move(keyring)) {}
    mutable ChainKeysCache cache;
};

}  // namespace rowlock
