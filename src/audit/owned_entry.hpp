// An entry that outlives the row it was read from.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "audit/frame.hpp"

namespace rowlock {

/// A SignedEntry with memory of its own.
struct OwnedEntry {
    OwnedEntry() = default;
    explicit OwnedEntry(const SignedEntry& entry);

    std::int64_t seq = 0;
    std::array<std::byte, 16> entry_id{};
    std::int64_t recorded_at = 0;
    std::optional<std::string> actor;
    std::optional<std::string> action;
    std::optional<std::string> object;
    std::optional<std::string> data;
    std::int16_t format = entry_format;
    std::string key_id;
    std::vector<std::byte> prev_mac;
    std::vector<std::byte> mac;

    /// Valid as long as the entry is, and unchanged.
    [[nodiscard]] SignedEntry view() const;
};

}  // namespace rowlock
