#include "crypto/sha256.hpp"

#include <openssl/evp.h>

#include "rowlock/error.hpp"

namespace rowlock {

namespace {

/// Looked up once: fetching an algorithm takes a lock and a search through the providers.
const EVP_MD* sha256_algorithm() {
    static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    return algorithm;
}

void require_sha256(bool done) {
    if (!done) throw SetupError("OpenSSL does not offer SHA-256; check its configuration (openssl list -digests)");
}

}  // namespace

struct Sha256::Context {
    EVP_MD_CTX* handle = EVP_MD_CTX_new();

    Context() = default;
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;
    ~Context() { EVP_MD_CTX_free(handle); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
    require_sha256(sha256_algorithm() != nullptr && context_->handle != nullptr);
    require_sha256(EVP_DigestInit_ex2(context_->handle, sha256_algorithm(), nullptr) == 1);
}

Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::begin() {
    // No algorithm: the one that is set.
    require_sha256(EVP_DigestInit_ex2(context_->handle, nullptr, nullptr) == 1);
}

void Sha256::update(std::span<const std::byte> bytes) {
    require_sha256(EVP_DigestUpdate(context_->handle, bytes.data(), bytes.size()) == 1);
}

Digest Sha256::finish() {
    Digest digest;
    unsigned length = 0;
    require_sha256(EVP_DigestFinal_ex(context_->handle, reinterpret_cast<unsigned char*>(digest.data()), &length) ==
                       1 &&
                   length == digest.size());
    return digest;
}

}  // namespace rowlock
