#include "crypto/ed25519.hpp"

#include <openssl/err.h>
#include <openssl/evp.h>

#include <memory>

#include "rowlock/error.hpp"

namespace rowlock {

namespace {

using KeyHandle = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

const unsigned char* octets(std::span<const std::byte> bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
}

void require_ed25519(bool done) {
    if (!done) {
        throw SetupError(
            "OpenSSL does not offer Ed25519; check its configuration (openssl list -signature-algorithms)");
    }
}

KeyHandle private_key(const Ed25519Seed& seed) {
    KeyHandle key(EVP_PKEY_new_raw_private_key_ex(nullptr, "ED25519", nullptr, octets(seed), seed.size()),
                  &EVP_PKEY_free);
    require_ed25519(key != nullptr);
    return key;
}

DigestContext new_context() {
    DigestContext context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
    require_ed25519(context != nullptr);
    return context;
}

}  // namespace

Ed25519PublicKey ed25519_public_key(const Ed25519Seed& seed) {
    const KeyHandle key = private_key(seed);
    Ed25519PublicKey bytes{};
    std::size_t size = bytes.size();
    require_ed25519(EVP_PKEY_get_raw_public_key(key.get(), reinterpret_cast<unsigned char*>(bytes.data()), &size) ==
                        1 &&
                    size == bytes.size());
    return bytes;
}

Ed25519Signature ed25519_sign(const Ed25519Seed& seed, std::span<const std::byte> message) {
    const KeyHandle key = private_key(seed);
    const DigestContext context = new_context();
    // No digest: Ed25519 hashes by itself, and takes a message in one piece only.
    require_ed25519(EVP_DigestSignInit_ex(context.get(), nullptr, nullptr, nullptr, nullptr, key.get(), nullptr) == 1);
    Ed25519Signature signature{};
    std::size_t size = signature.size();
    require_ed25519(EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                                   octets(message), message.size()) == 1 &&
                    size == signature.size());
    return signature;
}

bool ed25519_verify(const Ed25519PublicKey& key, std::span<const std::byte> message,
                    const Ed25519Signature& signature) {
    const KeyHandle handle(EVP_PKEY_new_raw_public_key_ex(nullptr, "ED25519", nullptr, octets(key), key.size()),
                           &EVP_PKEY_free);
    require_ed25519(handle != nullptr);
    const DigestContext context = new_context();
    require_ed25519(EVP_DigestVerifyInit_ex(context.get(), nullptr, nullptr, nullptr, nullptr, handle.get(), nullptr) ==
                    1);
    const bool good =
        EVP_DigestVerify(context.get(), octets(signature), signature.size(), octets(message), message.size()) == 1;
    // A bad signature leaves its reason in OpenSSL's list, where the next caller would take it for its own.
    ERR_clear_error();
    return good;
}

}  // namespace rowlock
