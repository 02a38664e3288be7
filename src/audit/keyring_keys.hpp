// What a Keyring holds.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/hmac.hpp"
#include "rowlock/keyring.hpp"

namespace rowlock {

struct Keyring::Keys {
    struct Key {
        std::string id;
        std::array<std::byte, 32> secret{};

        Key() = default;
        Key(const Key&) = default;
        Key& operator=(const Key&) = default;
        ~Key() { wipe(std::span(secret)); }
    };

    std::vector<Key> all;  ///< In the order of their making.
    std::size_t active = 0;

    /// Null where there is none of this id.
    [[nodiscard]] const Key* find(std::string_view id) const;
};

/// "k" and twelve hexadecimal digits, by HKDF from the key itself: a key that was copied wrongly no longer fits its id.
[[nodiscard]] std::string key_id_of(std::span<const std::byte, 32> secret);

}  // namespace rowlock
