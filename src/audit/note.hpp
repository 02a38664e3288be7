// Signed notes: a text, an empty line, and signatures of it. Source: https://c2sp.org/signed-note
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "rowlock/checkpoint.hpp"

namespace rowlock {

/// The note of a text that ends in a line end and is UTF-8 without other control characters.
[[nodiscard]] std::string sign_note(std::string_view text, const SigningKey& key);

/// The text of the note, once it is known that one of `pinned` has signed it; it points into `note`. Signatures of
/// other keys are passed over. One of a pinned key that does not fit spoils the note, whoever else signed it.
[[nodiscard]] std::variant<std::string_view, NoteRefused> open_note(std::string_view note,
                                                                    std::span<const PublicKey> pinned);

}  // namespace rowlock
