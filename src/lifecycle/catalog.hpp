// A description held against what the catalog says of its tables.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rowlock/lifecycle.hpp"

namespace rowlock {

struct TableFacts {
    std::set<std::string> columns{};  ///< None: there is no such table.
    std::vector<std::string> primary_key{};
    std::vector<std::vector<std::string>> unique_keys{};  ///< Over all rows.
    std::vector<std::vector<std::string>> indexes{};      ///< Likewise; unique ones, too.
};

struct LifecycleFacts {
    TableFacts parent{};
    TableFacts child{};
    /// Of the child, to the parent: pairs (child's column, parent's column).
    std::vector<std::vector<std::pair<std::string, std::string>>> foreign_keys{};
};

/// Fills in keys that were left out: primary keys without the tenant's column, the columns of the only foreign key.
[[nodiscard]] LifecycleDescription completed(LifecycleDescription description, const LifecycleFacts& facts);

/// The first thing that is wrong with a completed description, in words; nothing if all is well.
[[nodiscard]] std::optional<std::string> first_problem(const LifecycleDescription& description,
                                                       const LifecycleFacts& facts);

/// Asks the catalog. Lock: none.
[[nodiscard]] LifecycleFacts read_facts(Transaction& transaction, const LifecycleDescription& description);

}  // namespace rowlock
