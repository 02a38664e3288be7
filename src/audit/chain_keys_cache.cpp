#include "audit/chain_keys_cache.hpp"

namespace rowlock {

std::unique_ptr<ChainKeys> ChainKeysCache::take(const LedgerId& ledger, const TenantId& tenant) {
    {
        const std::lock_guard lock(mutex_);
        auto& kept = kept_[tenant];
        while (!kept.empty()) {
            auto keys = std::move(kept.back());
            kept.pop_back();
            --count_;
            // One log may be used with several databases.
            if (keys->ledger() == ledger) return keys;
        }
    }
    return std::make_unique<ChainKeys>(keyring_, ledger, tenant);
}

void ChainKeysCache::give_back(std::unique_ptr<ChainKeys> keys) {
    const std::lock_guard lock(mutex_);
    if (count_ >= kept_max) {
        kept_.clear();
        count_ = 0;
    }
    ++count_;
    const TenantId tenant = keys->tenant();
    kept_[tenant].push_back(std::move(keys));
}

}  // namespace rowlock
