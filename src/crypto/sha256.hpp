// SHA-256 (FIPS 180-4), for what needs no key.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

namespace rowlock {

using Digest = std::array<std::byte, 32>;

/// Any number of messages, one after the other. Making one costs as much as several short messages, so keep it. Not for
/// use by two threads at once. Throws SetupError where OpenSSL offers no SHA-256.
class Sha256 {
  public:
    Sha256();
    ~Sha256();
    Sha256(Sha256&&) noexcept;
    Sha256& operator=(Sha256&&) noexcept;

    /// Starts a message; what was under way is dropped.
    void begin();
    void update(std::span<const std::byte> bytes);
    /// The hash of what came since `begin`. The next message needs a `begin`.
    [[nodiscard]] Digest finish();

  private:
    struct Context;
    std::unique_ptr<Context> context_;
};

}  // namespace rowlock
