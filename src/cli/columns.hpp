// How many columns UTF-8 text takes on a terminal; no I/O.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rowlock::cli {

/// Near enough for a table: 2 for the wide characters of East Asia and for emoji, 0 for marks that combine with the
/// character before them, 1 for every other one. A byte that is not UTF-8 counts 1.
[[nodiscard]] std::size_t columns_of(std::string_view text);

/// The text on one line of at most `width` columns: control characters become spaces, so that no text of others moves
/// the cursor, and the rest is cut with "…".
[[nodiscard]] std::string one_line(std::string_view text, std::size_t width);

}  // namespace rowlock::cli
