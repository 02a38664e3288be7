// What is worked out once of a text, and used in every execution.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "race/footprint_tracker.hpp"
#include "race/statement_analysis.hpp"

namespace rowlock::race {

/// What a text does does not change from execution to execution, so it is worked out once.
class AnalysisCache {
  public:
    /// `schema_is_fixed`: nothing that runs makes or changes a table, so that a statement's locks can be known, too.
    AnalysisCache(const Catalog& catalog, bool schema_is_fixed)
        : catalog_(&catalog), schema_is_fixed_(schema_is_fixed) {}
    [[nodiscard]] const Analysis& of(const std::string& text);

    /// The locks that a statement with fixed ones left a transaction with that held `before`; null: not seen yet.
    [[nodiscard]] const std::vector<HeldLock>* locks_after(const std::string& text, const ResourceSet& before) const;
    void keep_locks(const std::string& text, const ResourceSet& before, const std::vector<HeldLock>& after);

  private:
    const Catalog* catalog_;
    bool schema_is_fixed_;
    std::unordered_map<std::string, Analysis> known_;
    std::map<std::pair<std::string, ResourceSet>, std::vector<HeldLock>> locks_;
};

}  // namespace rowlock::race
