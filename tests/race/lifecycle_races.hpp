// Race files made of the lifecycle's own statements, so that what is raced is what the library sends.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lifecycle/statements.hpp"
#include "rowlock/lifecycle_rule.hpp"

namespace rowlock::race::test {

/// The query as one text: its `$n` as literals, which the server reads as it does parameters.
[[nodiscard]] std::string literal_sql(const Query& query);

struct LifecycleRace {
    std::string name;
    std::string text;  ///< Of the race file.
};

/// Something of a statement that may be taken out: a lock, or a second look at what the lock protects.
struct LockClause {
    std::string statement;  ///< The whole of it, as it stands in race files.
    std::string clause;
    [[nodiscard]] std::string without() const;
};

class LifecycleRaces {
  public:
    LifecycleRaces();

    /// One race for each promise. The gate is left out unless asked for: it is there for fairness alone, and must not
    /// be what makes the others come out right.
    [[nodiscard]] std::vector<LifecycleRace> all(bool with_gate) const;
    /// Clients that know nothing of the library, before this rule (a script that installs it).
    [[nodiscard]] std::vector<LifecycleRace> before_rule(const std::string& rule_sql) const;
    [[nodiscard]] const LifecycleDescription& description() const noexcept { return statements_.description(); }
    /// What people write first: the guard and the write in one statement, no lock, too weak a lock.
    [[nodiscard]] std::vector<LifecycleRace> twins() const;
    /// Every lock and every second look in the library's statements.
    [[nodiscard]] std::vector<LockClause> clauses() const;

  private:
    struct Session {
        std::string name;
        std::vector<std::pair<std::string, std::string>> steps;
    };
    [[nodiscard]] Session retirer(const std::string& name, int document, bool with_gate) const;
    [[nodiscard]] Session holder(const std::string& name, ParentLock lock, const std::string& write,
                                 bool with_gate) const;
    [[nodiscard]] Session mover(const std::string& name, int from, int to, bool with_gate) const;
    [[nodiscard]] static std::string file(const std::vector<Session>& sessions, const std::string& more_setup = {});

    LifecycleStatements statements_;
};

}  // namespace rowlock::race::test
