// Scenarios by dice: what a reduction has to cope with, in every mixture.
#pragma once

#include <string>

namespace rowlock::race::test {

/// The same text for the same seed, on every machine: tables with one and two unique keys, foreign keys, triggers,
/// lock modes, isolation levels, rollbacks, savepoints, failing steps, time-outs, two and three sessions.
[[nodiscard]] std::string random_scenario(unsigned seed);

/// The same, of statements that name their row by its key.
[[nodiscard]] std::string random_row_scenario(unsigned seed);

}  // namespace rowlock::race::test
