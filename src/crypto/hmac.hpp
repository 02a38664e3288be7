// HMAC-SHA-256 (RFC 2104, FIPS 180-4) and what belongs to keys.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace rowlock {

using Mac = std::array<std::byte, 32>;

/// One key, any number of messages, one after the other. Setting the key costs as much as several short messages, so
/// keep the object. Not for use by two threads at once. Throws SetupError where OpenSSL offers no HMAC-SHA-256.
class Hmac {
  public:
    explicit Hmac(std::span<const std::byte> key);
    ~Hmac();
    Hmac(Hmac&&) noexcept;
    Hmac& operator=(Hmac&&) noexcept;

    /// Starts a message; what was under way is dropped.
    void begin();
    void update(std::span<const std::byte> bytes);
    /// The MAC of what came since `begin`. The next message needs a `begin`.
    [[nodiscard]] Mac finish();
    /// A whole message in one go.
    [[nodiscard]] Mac of(std::span<const std::byte> message);

  private:
    struct Context;
    std::unique_ptr<Context> context_;
};

/// HKDF with SHA-256 (RFC 5869): extract, then expand into `output`, at most 255 × 32 bytes.
void hkdf_sha256(std::span<const std::byte> key, std::span<const std::byte> salt, std::span<const std::byte> info,
                 std::span<std::byte> output);

/// Takes as long for a difference in the first byte as for none. Spans of different length differ.
[[nodiscard]] bool equal_in_constant_time(std::span<const std::byte> left, std::span<const std::byte> right);

/// Bytes of the system's random generator, good for keys. Throws SetupError if there are none to be had.
void fill_random(std::span<std::byte> bytes);

/// Overwrites a secret; the compiler can't leave it out.
void wipe(std::span<std::byte> secret) noexcept;
/// Overwrites all that the string holds, and empties it.
void wipe(std::string& secret) noexcept;

/// Wipes what it was given when it goes.
class Wiped {
  public:
    explicit Wiped(std::string text) : text_(std::move(text)) {}
    Wiped(const Wiped&) = delete;
    Wiped& operator=(const Wiped&) = delete;
    ~Wiped() { wipe(text_); }
    [[nodiscard]] std::string_view view() const { return text_; }

  private:
    std::string text_;
};

}  // namespace rowlock
