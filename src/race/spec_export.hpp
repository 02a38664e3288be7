// A scenario for PostgreSQL's isolationtester.
#pragma once

#include <string>

#include "race/checker.hpp"
#include "race/scenario.hpp"

namespace rowlock::race {

/// A spec with the file's own permutations, or those of the findings and of the schedules next to them that hold. What
/// isolationtester does not know (variables, branches, `on_error`, roles) is named in a comment at its top; invariants
/// become steps of a session of their own. Step names get their session's in front where two sessions share one.
/// Source: PostgreSQL's src/test/isolation/README
[[nodiscard]] std::string spec_text(const Scenario& scenario, const CheckResult& result);

}  // namespace rowlock::race
