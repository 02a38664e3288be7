// Ed25519 signatures (RFC 8032, the pure form: of the message itself and not of a hash of it).
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace rowlock {

using Ed25519Seed = std::array<std::byte, 32>;  ///< The private key.
using Ed25519PublicKey = std::array<std::byte, 32>;
using Ed25519Signature = std::array<std::byte, 64>;

/// All three throw SetupError where OpenSSL offers no Ed25519.
[[nodiscard]] Ed25519PublicKey ed25519_public_key(const Ed25519Seed& seed);
/// The same signature for the same message, always.
[[nodiscard]] Ed25519Signature ed25519_sign(const Ed25519Seed& seed, std::span<const std::byte> message);
/// False also for bytes that are no public key.
[[nodiscard]] bool ed25519_verify(const Ed25519PublicKey& key, std::span<const std::byte> message,
                                  const Ed25519Signature& signature);

}  // namespace rowlock
