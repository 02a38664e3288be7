// The HMAC keys of the audit log. They never reach the database.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rowlock {

/// A set of named 256-bit keys, one of them active: it signs what is appended from now on, the others verify what was
/// appended before. A key's id is derived from the key, so that two keys never share one. Copies share the keys, which
/// are wiped from memory with the last of them.
class Keyring {
  public:
    /// A keyring in memory with one new key.
    static Keyring generate();
    /// Reads a keyring file. Throws SetupError, with what to do, if it is missing, can be read or written by others
    /// (any mode but 0600 or 0400), belongs to another user, or is damaged.
    static Keyring load(const std::filesystem::path& path);
    /// Reads the JSON text of a keyring, as from a command that asks a key management service.
    /// `origin` names the source in messages.
    static Keyring parse(std::string_view json, std::string_view origin);

    /// Writes a new file with mode 0600, all of it or nothing, made durable before it returns. An existing file is
    /// refused (SetupError): its keys are the only way to verify what they signed.
    void create_file(const std::filesystem::path& path) const;
    /// Replaces an existing file in one step.
    void replace_file(const std::filesystem::path& path) const;

    /// The same keyring with a new key, which is the active one.
    [[nodiscard]] Keyring rotated() const;

    [[nodiscard]] const std::string& active_id() const;
    [[nodiscard]] std::vector<std::string> ids() const;
    [[nodiscard]] bool contains(std::string_view id) const;

    struct Keys;
    /// For src/audit.
    explicit Keyring(std::shared_ptr<const Keys> keys) : keys_(std::move(keys)) {}
    [[nodiscard]] const Keys& keys() const noexcept { return *keys_; }

  private:
    std::shared_ptr<const Keys> keys_;
};

}  // namespace rowlock
