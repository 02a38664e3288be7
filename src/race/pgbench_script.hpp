// pgbench's scripts as sessions.
#pragma once

#include <string_view>

#include "race/scenario.hpp"

namespace rowlock::race {

/// Every statement is a step, named by its first word; from `\if` to `\endif` is one. `\gset` is known, pgbench's other
/// commands are not, since they are about load and dice. `name` is the file's, and gives the session's.
/// Throws ScenarioError.
/// Source: https://www.postgresql.org/docs/15/pgbench.html
[[nodiscard]] SessionScript parse_pgbench_script(std::string_view text, std::string_view name);

/// Sessions of one name get a number.
void make_names_unique(Scenario& scenario);

}  // namespace rowlock::race
