// The text of the notes that we sign: whose ledger, when, and a line for each tenant. Pure.
//
// A text is believed only if writing what was read from it gives the same bytes again, so there is one form of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/hmac.hpp"
#include "rowlock/identifiers.hpp"

namespace rowlock {

struct HeadListStart {
    LedgerId ledger{};
    std::int64_t time = 0;
};

/// The lines before those of the tenants. `kind` is the first of them.
[[nodiscard]] std::string head_list_start(std::string_view kind, const HeadListStart& start, std::size_t tenants);

/// A text as a word of a line: what is neither letter, digit, `-`, `.`, `_` nor `~` of ASCII as `%XX`.
[[nodiscard]] std::string note_word(std::string_view text);
[[nodiscard]] std::optional<std::string> from_note_word(std::string_view word);
/// A whole number from 0 on, without leading zeros.
[[nodiscard]] std::optional<std::int64_t> number_of_word(std::string_view word);
/// 32 bytes in base 64.
[[nodiscard]] std::optional<Mac> digest_of_word(std::string_view word);

/// Reads the start and hands over the words of each tenant's line in turn, until `head` says no. Gives back what is
/// wrong, or nothing. The caller compares with what it would have written.
[[nodiscard]] std::optional<std::string> read_head_list(
    std::string_view text, std::string_view kind, HeadListStart& start,
    const std::function<bool(std::span<const std::string_view>)>& head);

}  // namespace rowlock
