#include "crypto/aes_gcm.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <climits>
#include <memory>

#include "rowlock/error.hpp"

namespace rowlock {

namespace {

constexpr std::size_t tag_bytes = 16;
using CipherContext = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

const unsigned char* in(std::span<const std::byte> bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
}

unsigned char* out(std::byte* bytes) {
    return reinterpret_cast<unsigned char*>(bytes);
}

void require_aes(bool done) {
    if (!done) {
        throw SetupError(
            "OpenSSL does not offer AES-256-GCM; check its configuration (openssl list -cipher-algorithms)");
    }
}

int size_of(std::span<const std::byte> bytes) {
    if (bytes.size() > INT_MAX) throw InvalidInput("a text of 2 GiB or more can't be encrypted");
    return static_cast<int>(bytes.size());
}

CipherContext started(const AesKey& key, const AesNonce& nonce, std::span<const std::byte> bound, bool to_seal) {
    CipherContext context(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
    require_aes(context != nullptr);
    require_aes(EVP_CipherInit_ex2(context.get(), EVP_aes_256_gcm(), in(key), in(nonce), to_seal ? 1 : 0, nullptr) ==
                1);
    int length = 0;
    require_aes(EVP_CipherUpdate(context.get(), nullptr, &length, in(bound), size_of(bound)) == 1);
    return context;
}

}  // namespace

std::vector<std::byte> aes_gcm_seal(const AesKey& key, const AesNonce& nonce, std::span<const std::byte> bound,
                                    std::span<const std::byte> plain) {
    const CipherContext context = started(key, nonce, bound, true);
    std::vector<std::byte> sealed(plain.size() + tag_bytes);
    int length = 0;
    require_aes(EVP_CipherUpdate(context.get(), out(sealed.data()), &length, in(plain), size_of(plain)) == 1);
    require_aes(EVP_CipherFinal_ex(context.get(), out(sealed.data()) + length, &length) == 1);
    require_aes(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, tag_bytes, sealed.data() + plain.size()) ==
                1);
    return sealed;
}

std::optional<std::vector<std::byte>> aes_gcm_open(const AesKey& key, const AesNonce& nonce,
                                                   std::span<const std::byte> bound,
                                                   std::span<const std::byte> sealed) {
    if (sealed.size() < tag_bytes) return std::nullopt;
    const auto secret = sealed.first(sealed.size() - tag_bytes);
    const auto stored_tag = sealed.last(tag_bytes);
    const CipherContext context = started(key, nonce, bound, false);
    std::vector<std::byte> plain(secret.size());
    int length = 0;
    require_aes(EVP_CipherUpdate(context.get(), out(plain.data()), &length, in(secret), size_of(secret)) == 1);
    std::array<std::byte, tag_bytes> tag{};
    std::copy(stored_tag.begin(), stored_tag.end(), tag.begin());
    require_aes(EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, tag_bytes, tag.data()) == 1);
    if (EVP_CipherFinal_ex(context.get(), out(plain.data()) + length, &length) != 1) return std::nullopt;
    return plain;
}

}  // namespace rowlock
