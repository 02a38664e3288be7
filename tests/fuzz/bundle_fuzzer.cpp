// Feeds what reads bundles, with and without a pinned key and a keyring, in pieces of a length that the first byte
// says. Whatever comes, no bundle is called intact that the pinned key has not signed, and what can't be read is
// damage.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include "rowlock/bundle.hpp"

namespace {

using namespace rowlock;

BundleVerification verify(std::span<const std::uint8_t> bytes, std::size_t step, const BundleVerifyOptions& options) {
    return verify_bundle(
        [&](std::span<std::byte> into) {
            const std::size_t size = std::min({into.size(), bytes.size(), step});
            if (size > 0) std::memcpy(into.data(), bytes.data(), size);
            bytes = bytes.subspan(size);
            return size;
        },
        options);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const Keyring keyring = Keyring::generate();
    static const BundleVerifyOptions pinned{.pinned = {SigningKey::generate("shop.example/audit").public_key()}};
    if (size == 0) return 0;
    const std::span bytes(data + 1, size - 1);
    const std::size_t step = 1 + data[0];
    // Anybody may have signed it.
    const BundleVerification unpinned = verify(bytes, step, {});
    if (is_good(unpinned.verdict)) std::abort();
    const BundleVerification stranger = verify(bytes, step, pinned);
    if (stranger.verdict != Verdict::tampered) std::abort();
    BundleVerifyOptions with_keys;
    with_keys.keyring = keyring;
    if (is_good(verify(bytes, step, with_keys).verdict)) std::abort();
    if (unpinned.entries != stranger.entries || unpinned.tenants != stranger.tenants) std::abort();
    return 0;
}
