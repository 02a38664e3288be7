// What a statement may touch by its text alone: for where the locks that it took can't be looked at any more.
#pragma once

#include "race/statement_analysis.hpp"

namespace rowlock::race {

/// An upper bound: every relation that the text reaches, read, locked and, where the text or what it runs writes
/// anything at all, written. `everything` where what it runs is not written down.
[[nodiscard]] Footprint footprint_by_text(const Analysis& analysis, const Catalog& catalog);

}  // namespace rowlock::race
