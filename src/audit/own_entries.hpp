// What the log's own entries say in their data, as JSON, and back. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "audit/frame.hpp"
#include "rowlock/audit_log.hpp"

namespace rowlock {

/// An entry that says which entries before it have been dropped.
struct Retirement {
    std::int64_t seq = 0;      ///< Its own number.
    std::int64_t through = 0;  ///< The last of those that were dropped: 1 … through.
    Mac mac{};                 ///< That entry's MAC, which the first remaining entry follows.
    std::string key_id;        ///< The key that the first remaining entry is signed with.
    std::string reason;
};

[[nodiscard]] std::string resumption_json(const Resumption& resumption);
[[nodiscard]] std::string retirement_json(const Retirement& retirement);
[[nodiscard]] std::string acknowledgement_json(const Acknowledgement& acknowledgement);

/// Nothing where the data is not of the form that the functions above write. The action is the caller's to look at.
[[nodiscard]] std::optional<Resumption> resumption_of(const SignedEntry& entry);
[[nodiscard]] std::optional<Retirement> retirement_of(const SignedEntry& entry);
[[nodiscard]] std::optional<Acknowledgement> acknowledgement_of(const SignedEntry& entry);

}  // namespace rowlock
