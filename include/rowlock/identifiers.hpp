// The names that every table of rowlock is keyed by.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace rowlock {

/// Who a row belongs to: any text of 1 to 256 bytes of UTF-8 without a NUL (a UUID, a number, a slug).
/// Compared byte by byte, as the database does it (COLLATE "C").
class TenantId {
  public:
    /// Throws InvalidInput for an empty, too long or malformed text: '' means "no tenant" to the server.
    explicit TenantId(std::string text);

    [[nodiscard]] const std::string& text() const noexcept { return text_; }
    auto operator<=>(const TenantId&) const = default;

  private:
    std::string text_;
};

/// The database's own UUID, made with the schema: the same tenant in another database has other keys.
using LedgerId = std::array<std::byte, 16>;

/// The caller's own name for one audit entry (a UUID): appending the same id again adds nothing.
class EntryId {
  public:
    /// A new time-ordered id (UUID version 7, RFC 9562), from the system's random generator.
    static EntryId generate();
    /// Reads the usual 36-character form, in either case; throws InvalidInput for anything else.
    static EntryId parse(std::string_view text);
    explicit EntryId(const std::array<std::byte, 16>& bytes) : bytes_(bytes) {}

    [[nodiscard]] std::string text() const;
    [[nodiscard]] const std::array<std::byte, 16>& bytes() const noexcept { return bytes_; }
    auto operator<=>(const EntryId&) const = default;

  private:
    std::array<std::byte, 16> bytes_;
};

}  // namespace rowlock

template <>
struct std::hash<rowlock::TenantId> {
    std::size_t operator()(const rowlock::TenantId& tenant) const noexcept {
        return std::hash<std::string>{}(tenant.text());
    }
};
