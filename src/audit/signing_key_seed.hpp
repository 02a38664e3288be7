// What a SigningKey holds.
#pragma once

#include "crypto/ed25519.hpp"
#include "crypto/hmac.hpp"
#include "rowlock/signing_key.hpp"

namespace rowlock {

struct SigningKey::Seed {
    Ed25519Seed bytes{};

    Seed() = default;
    Seed(const Seed&) = delete;
    Seed& operator=(const Seed&) = delete;
    ~Seed() { wipe(std::span(bytes)); }
};

}  // namespace rowlock
