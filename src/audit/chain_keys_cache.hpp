// Derived keys, kept so that an append does not derive them while it holds the tenant's lock.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "audit/frame.hpp"

namespace rowlock {

/// Safe for many threads: a ChainKeys is lent to one at a time.
class ChainKeysCache {
  public:
    explicit ChainKeysCache(Keyring keyring) : keyring_(std::move(keyring)) {}

    [[nodiscard]] std::unique_ptr<ChainKeys> take(const LedgerId& ledger, const TenantId& tenant);
    void give_back(std::unique_ptr<ChainKeys> keys);
    [[nodiscard]] const Keyring& keyring() const noexcept { return keyring_; }

  private:
    /// Past so many, everything is forgotten and derived anew: simple, and rare.
    static constexpr std::size_t kept_max = 4096;

    Keyring keyring_;
    std::mutex mutex_;
    std::unordered_map<TenantId, std::vector<std::unique_ptr<ChainKeys>>> kept_;
    std::size_t count_ = 0;
};

}  // namespace rowlock
