// The Ed25519 keys that checkpoints and bundles are signed with: for those who must trust the log and have no HMAC key.
//
// Format of notes and keys: https://c2sp.org/signed-note
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace rowlock {

/// The public half of a signing key: what an auditor pins. Its text is `name+hash+base64`, on one line.
class PublicKey {
  public:
    /// Throws InvalidInput, with what is wrong, for a text that is no Ed25519 key of this form.
    static PublicKey parse(std::string_view text);
    /// A name is UTF-8 of 1 to 256 bytes without blanks, control characters and `+` (InvalidInput). A host and a path
    /// of one's own, such as shop.example/audit, keeps it from being somebody else's, too.
    PublicKey(std::string name, const std::array<std::byte, 32>& key);

    [[nodiscard]] std::string text() const;
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    /// The first four bytes of a hash of name and key: with the name it says whose a signature is.
    [[nodiscard]] const std::array<std::byte, 4>& id() const noexcept { return id_; }
    [[nodiscard]] const std::array<std::byte, 32>& bytes() const noexcept { return key_; }
    bool operator==(const PublicKey&) const = default;

  private:
    std::string name_;
    std::array<std::byte, 32> key_;
    std::array<std::byte, 4> id_;
};

/// A private key with its name. Copies share the key, which is wiped from memory with the last of them. It never
/// reaches the database.
class SigningKey {
  public:
    static SigningKey generate(std::string name);
    /// Reads a signing key file. Throws SetupError, with what to do, if it is missing, can be read or written by others
    /// (any mode but 0600 or 0400), belongs to another user, or is damaged.
    static SigningKey load(const std::filesystem::path& path);
    /// Reads the text of such a file; `origin` names the source in messages.
    static SigningKey parse(std::string_view text, std::string_view origin);

    /// Writes a new file with mode 0600, all of it or nothing, made durable before it returns. An existing file is
    /// refused (SetupError).
    void create_file(const std::filesystem::path& path) const;

    [[nodiscard]] PublicKey public_key() const;

    struct Seed;
    /// For src/audit.
    [[nodiscard]] const Seed& seed() const noexcept { return *seed_; }

  private:
    SigningKey(std::string name, std::shared_ptr<const Seed> seed) : name_(std::move(name)), seed_(std::move(seed)) {}

    std::string name_;
    std::shared_ptr<const Seed> seed_;
};

}  // namespace rowlock
