// The records of a bundle, and the text of its note. docs/formats/bundle.md is the grammar. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "audit/frame.hpp"
#include "crypto/sha256.hpp"
#include "rowlock/checkpoint.hpp"

namespace rowlock {

inline constexpr std::string_view bundle_magic = "rowlock/bundle/1\n";

enum class BundleRecord : char { header = 'H', entry = 'E', note = 'N', trailer = 'Z' };

inline constexpr std::size_t bundle_record_head = 5;
/// PostgreSQL's largest value has 1 GiB; an entry of ours, somewhat less than two of them.
inline constexpr std::size_t bundle_record_max = (std::size_t{1} << 31U) - 1;

/// A record's type and length.
[[nodiscard]] std::array<std::byte, bundle_record_head> bundle_record_start(BundleRecord type, std::size_t size);

struct BundleHeader {
    LedgerId ledger{};
    std::string_view signer;
};
struct BundleTrailer {
    std::int64_t tenants = 0;
    std::int64_t entries = 0;
};
struct BundleEntry {
    std::string_view tenant;
    SignedEntry entry;
    std::span<const std::byte> hashed;  ///< The payload without its last field.
    Digest hash{};                      ///< The last field.
};
/// One tenant's line of the note.
struct BundleHead {
    TenantId tenant;
    std::int64_t first = 0;
    std::int64_t last = 0;
    Mac mac{};
    std::string key_id;
    Digest hash{};
};

void add_header(Frame& frame, const BundleHeader& header);
void add_trailer(Frame& frame, const BundleTrailer& trailer);
/// All of an entry's payload but the last field.
void add_entry(Frame& frame, const TenantId& tenant, const SignedEntry& entry);

/// Nothing for any bytes that the functions above would not have made. What comes back points into `payload`.
[[nodiscard]] std::optional<BundleHeader> read_header(std::span<const std::byte> payload);
[[nodiscard]] std::optional<BundleTrailer> read_trailer(std::span<const std::byte> payload);
[[nodiscard]] std::optional<BundleEntry> read_entry(std::span<const std::byte> payload);

[[nodiscard]] std::string bundle_text(const LedgerId& ledger, std::int64_t made_at,
                                      const std::vector<BundleHead>& heads);
struct BundleText {
    LedgerId ledger{};
    std::int64_t made_at = 0;
    std::vector<BundleHead> heads;
};
/// What was signed, or what is wrong with the text.
[[nodiscard]] std::variant<BundleText, std::string> parse_bundle_text(std::string_view text);

/// The key that the entry after this one is signed with.
[[nodiscard]] std::string_view next_key_of(const SignedEntry& entry);

}  // namespace rowlock
