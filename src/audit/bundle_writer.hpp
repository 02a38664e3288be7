// Writes a bundle, piece by piece. Pure: time and entries come in as values.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "audit/bundle_format.hpp"
#include "rowlock/bundle.hpp"

namespace rowlock {

class BundleWriter {
  public:
    BundleWriter(const LedgerId& ledger, const SigningKey& key, std::function<void(std::span<const std::byte>)> sink);

    /// Tenants ascending, the entries of each in order of seq.
    void add(const TenantId& tenant, const SignedEntry& entry);
    /// Signs, and ends the bundle. To be called once.
    BundleSummary finish(std::int64_t made_at);

  private:
    void put(BundleRecord type, std::span<const std::byte> payload);

    LedgerId ledger_;
    const SigningKey& key_;
    std::function<void(std::span<const std::byte>)> sink_;
    std::vector<BundleHead> heads_;
    std::int64_t entries_ = 0;
    Sha256 hash_;
    Frame frame_;
};

}  // namespace rowlock
