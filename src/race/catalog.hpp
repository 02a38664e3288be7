// The part of a database's catalog that says what a statement may touch besides the tables that it names.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "race/footprint.hpp"

namespace rowlock::race {

/// A primary key of one column that is the table's only unique or exclusion constraint.
struct RowKey {
    std::string type;       ///< A whole number, text under a deterministic collation, or uuid.
    std::size_t place = 0;  ///< Of the column, counted from 1.
    std::string column{};
};

struct Relation {
    ResourceId id = 0;
    std::string name{};
    bool is_sequence = false;
    /// Tables whose rows a write here locks or changes by foreign keys, in both directions.
    std::set<ResourceId> foreign_keys{};
    /// Code that a use of the relation may run: triggers, rules, views, defaults, checks, policies.
    std::string code{};
    std::optional<RowKey> row_key{};
};

struct Catalog {
    std::map<ResourceId, Relation> relations{};
    std::map<std::uint64_t, ResourceId> ids{};  ///< By oid.
    std::multimap<std::string, ResourceId, std::less<>> relations_by_name{};
    std::multimap<std::string, std::string, std::less<>> functions_by_name{};  ///< Name to source text.
    std::set<ResourceId> by_row{};   ///< Tables of which each row is a resource of its own.
    bool has_deferrable = false;     ///< A COMMIT may still check something.
    bool runs_unnamed_code = false;  ///< Operators, casts, aggregates, domains: code that no word names.

    void add_relation(Relation relation);
};

/// Everything that running a text may touch: its words are followed into tables, views, functions, triggers and
/// foreign keys, strings included, since they may be run.
struct Reach {
    std::map<ResourceId, int> named{};           ///< How often a relation is named, in code or text.
    std::set<ResourceId> by_foreign_key{};       ///< Reached over a foreign key alone.
    std::set<std::string, std::less<>> words{};  ///< All words seen.
    bool runs_code = false;                      ///< A trigger, a view, a default, a function of the user's …
    bool unbounded = false;                      ///< Something is run that is not written down (EXECUTE, CALL …).

    [[nodiscard]] bool may_touch(ResourceId id) const {
        return unbounded || named.contains(id) || by_foreign_key.contains(id);
    }
};

[[nodiscard]] Reach reach_of(std::string_view text, const Catalog& catalog);

}  // namespace rowlock::race
