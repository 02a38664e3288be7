#include "crypto/hmac.hpp"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <algorithm>
#include <climits>

#include "base/contract.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

const unsigned char* raw(std::span<const std::byte> bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
}

/// Looked up once: fetching an algorithm takes a lock and a search through the providers.
EVP_MAC* hmac_algorithm() {
    static EVP_MAC* const algorithm = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
    return algorithm;
}

void require(bool done) {
    if (!done)
        throw SetupError("OpenSSL does not offer HMAC-SHA-256; check its configuration (openssl list -mac-algorithms)");
}

}  // namespace

struct Hmac::Context {
    EVP_MAC_CTX* handle = nullptr;

    Context() = default;
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;
    ~Context() { EVP_MAC_CTX_free(handle); }
};

Hmac::Hmac(std::span<const std::byte> key) : context_(std::make_unique<Context>()) {
    require(hmac_algorithm() != nullptr);
    context_->handle = EVP_MAC_CTX_new(hmac_algorithm());
    require(context_->handle != nullptr);
    // OpenSSL's parameters are not const, but it does not write to this one.
    char digest[] = "SHA256";
    const std::array<OSSL_PARAM, 2> parameters{OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                                               OSSL_PARAM_construct_end()};
    // A null key would mean "the key set before", so an empty one needs an address.
    const unsigned char empty = 0;
    require(EVP_MAC_init(context_->handle, key.empty() ? &empty : raw(key), key.size(), parameters.data()) == 1);
}

Hmac::~Hmac() = default;
Hmac::Hmac(Hmac&&) noexcept = default;
Hmac& Hmac::operator=(Hmac&&) noexcept = default;

void Hmac::begin() {
    require(EVP_MAC_init(context_->handle, nullptr, 0, nullptr) == 1);
}

void Hmac::update(std::span<const std::byte> bytes) {
    require(EVP_MAC_update(context_->handle, raw(bytes), bytes.size()) == 1);
}

Mac Hmac::finish() {
    Mac mac;
    std::size_t length = 0;
    require(EVP_MAC_final(context_->handle, reinterpret_cast<unsigned char*>(mac.data()), &length, mac.size()) == 1);
    contract(length == mac.size(), "an HMAC-SHA-256 has 32 bytes");
    return mac;
}

Mac Hmac::of(std::span<const std::byte> message) {
    begin();
    update(message);
    return finish();
}

void hkdf_sha256(std::span<const std::byte> key, std::span<const std::byte> salt, std::span<const std::byte> info,
                 std::span<std::byte> output) {
    contract(output.size() <= 255 * sizeof(Mac), "HKDF gives at most 255 blocks");
    Mac pseudo_random_key = Hmac(salt).of(key);
    Hmac expand(pseudo_random_key);
    Mac block{};
    std::byte counter{1};
    for (std::size_t done = 0; done < output.size(); done += block.size()) {
        expand.begin();
        if (done != 0) expand.update(block);
        expand.update(info);
        expand.update({&counter, 1});
        block = expand.finish();
        const std::size_t length = std::min(block.size(), output.size() - done);
        std::copy_n(block.begin(), length, output.begin() + static_cast<std::ptrdiff_t>(done));
        counter = static_cast<std::byte>(std::to_integer<unsigned>(counter) + 1);
    }
    wipe(pseudo_random_key);
    wipe(block);
}

bool equal_in_constant_time(std::span<const std::byte> left, std::span<const std::byte> right) {
    if (left.size() != right.size()) return false;
    return CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

void fill_random(std::span<std::byte> bytes) {
    contract(bytes.size() <= INT_MAX, "random bytes are asked for in small numbers");
    if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size())) != 1) {
        throw SetupError("OpenSSL has no random bytes to give; check that /dev/urandom can be read");
    }
}

void wipe(std::span<std::byte> secret) noexcept {
    OPENSSL_cleanse(secret.data(), secret.size());
}

void wipe(std::string& secret) noexcept {
    // Up to the capacity: a longer text may have stood there before. This never allocates.
    secret.resize(secret.capacity());
    OPENSSL_cleanse(secret.data(), secret.size());
    secret.clear();
}

}  // namespace rowlock
