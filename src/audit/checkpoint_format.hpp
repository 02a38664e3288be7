// A checkpoint as text, and back. docs/formats/checkpoint.md is the grammar. Pure.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "rowlock/checkpoint.hpp"

namespace rowlock {

[[nodiscard]] std::string checkpoint_text(const Checkpoint& checkpoint);

/// The checkpoint, or what is wrong with the text.
[[nodiscard]] std::variant<Checkpoint, std::string> parse_checkpoint(std::string_view text);

}  // namespace rowlock
