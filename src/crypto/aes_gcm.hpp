// AES-256-GCM (NIST SP 800-38D): secret and unchanged, as long as the key is.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace rowlock {

using AesKey = std::array<std::byte, 32>;
using AesNonce = std::array<std::byte, 12>;

/// The ciphertext and, behind it, the tag of 16 bytes. Never the same nonce for two texts under one key. `bound` is not
/// hidden, but must be the same to open. Throws SetupError where OpenSSL offers no AES-256-GCM.
[[nodiscard]] std::vector<std::byte> aes_gcm_seal(const AesKey& key, const AesNonce& nonce,
                                                  std::span<const std::byte> bound, std::span<const std::byte> plain);

/// Nothing where any of it is not what was sealed.
[[nodiscard]] std::optional<std::vector<std::byte>> aes_gcm_open(const AesKey& key, const AesNonce& nonce,
                                                                 std::span<const std::byte> bound,
                                                                 std::span<const std::byte> sealed);

}  // namespace rowlock
