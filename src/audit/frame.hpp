// What is signed, byte for byte, and the keys that sign it. docs/formats/audit-entry.md is the grammar.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/hmac.hpp"
#include "rowlock/identifiers.hpp"
#include "rowlock/keyring.hpp"

namespace rowlock {

inline constexpr std::int16_t entry_format = 1;
/// An entry with this action names, as its object, the key that signs the entries after it.
inline constexpr std::string_view rotation_action = "rowlock.key_rotation";
/// An entry with this action says that the log was put back to an older state, and goes on from there.
inline constexpr std::string_view resume_action = "rowlock.resume";
/// An entry with this action says that the entries up to some number have been dropped.
inline constexpr std::string_view retirement_action = "rowlock.retirement";
/// An entry with this action says that a break before it is known.
inline constexpr std::string_view acknowledge_action = "rowlock.acknowledge";

/// The domain that an entry's frame begins with is chosen by its action.
struct EntryDomain {
    std::string_view action;  ///< Empty: every action that is none of the others.
    std::string_view domain;
};
inline constexpr std::array<EntryDomain, 5> entry_domains{{{"", "rowlock/entry/1"},
                                                           {rotation_action, "rowlock/rotation/1"},
                                                           {resume_action, "rowlock/resume/1"},
                                                           {retirement_action, "rowlock/retirement/1"},
                                                           {acknowledge_action, "rowlock/acknowledge/1"}}};
/// The place in entry_domains.
[[nodiscard]] std::size_t entry_domain_of(const std::optional<std::string_view>& action);

inline constexpr std::string_view mac_algorithm = "HMAC-SHA-256";

/// An entry as stored, seen in place: what it points at must outlive the call that it is given to. What may not be NULL
/// in the table and yet is, is empty here. The tenant is that of the ChainKeys.
struct SignedEntry {
    std::int64_t seq = 0;
    std::array<std::byte, 16> entry_id{};
    std::int64_t recorded_at = 0;  ///< Microseconds since 1970-01-01 UTC.
    std::optional<std::string_view> actor;
    std::optional<std::string_view> action;
    std::optional<std::string_view> object;
    std::optional<std::string_view> data;
    std::int16_t format = entry_format;
    std::string_view key_id;
    std::span<const std::byte> prev_mac;
    std::span<const std::byte> mac;
};

/// Fields one behind the other, each as: presence (1 byte), length (4 bytes, big-endian), bytes. So NULL is not empty,
/// and no two lists of fields give the same bytes. Keeps its memory from one frame to the next.
class Frame {
  public:
    void clear() { used_ = 0; }
    /// A field of at most 4 GiB - 1; InvalidInput for a longer one.
    void add(const std::optional<std::string_view>& text);
    void add(std::span<const std::byte> bytes);
    /// Eight bytes, big-endian, two's complement.
    void add(std::int64_t number);
    /// Bytes of a frame made before.
    void append(std::span<const std::byte> fields);
    /// The last eight fields of an entry's frame, from `seq` to `prev_mac`.
    void add_content(const SignedEntry& entry);

    [[nodiscard]] std::span<const std::byte> bytes() const { return std::span(buffer_).first(used_); }

  private:
    std::byte* grow(std::size_t size);

    std::vector<std::byte> buffer_;
    std::size_t used_ = 0;
};

/// The keys of one tenant's chain in one ledger, each derived when first asked for. Not for use by two threads at once.
class ChainKeys {
  public:
    ChainKeys(Keyring keyring, const LedgerId& ledger, TenantId tenant);

    [[nodiscard]] bool has(std::string_view key_id);
    /// What the first entry has as its previous MAC. The key must be at hand.
    [[nodiscard]] Mac genesis(std::string_view key_id);
    /// The MAC of all that the entry has but `mac`, under the key that it names, which must be at hand. Chooses the
    /// domain by the action. No allocation once the largest entry has been seen.
    [[nodiscard]] Mac mac(const SignedEntry& entry);

    [[nodiscard]] const TenantId& tenant() const noexcept { return tenant_; }
    [[nodiscard]] const LedgerId& ledger() const noexcept { return ledger_; }
    [[nodiscard]] const Keyring& keyring() const noexcept { return keyring_; }

  private:
    struct Key {
        std::string id;
        Hmac hmac;
        /// The fields that are the same in all frames of one domain, for each of them.
        std::array<std::vector<std::byte>, entry_domains.size()> starts;
    };

    Key* find(std::string_view key_id);
    Key& required(std::string_view key_id);
    Key derive(std::string_view key_id, std::span<const std::byte> secret);
    std::vector<std::byte> start_of(std::string_view domain, std::string_view key_id);

    Keyring keyring_;
    LedgerId ledger_;
    TenantId tenant_;
    std::vector<Key> keys_;
    std::size_t last_used_ = 0;
    Frame frame_;
};

}  // namespace rowlock
