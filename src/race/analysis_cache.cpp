#include "race/analysis_cache.hpp"

namespace rowlock::race {

const Analysis& AnalysisCache::of(const std::string& text) {
    const auto known = known_.find(text);
    if (known != known_.end()) return known->second;
    return known_.emplace(text, analyse(text, *catalog_)).first->second;
}

const std::vector<HeldLock>* AnalysisCache::locks_after(const std::string& text, const ResourceSet& before) const {
    const auto known = locks_.find({text, before});
    return known == locks_.end() ? nullptr : &known->second;
}

void AnalysisCache::keep_locks(const std::string& text, const ResourceSet& before, const std::vector<HeldLock>& after) {
    if (schema_is_fixed_) locks_.insert_or_assign({text, before}, after);
}

}  // namespace rowlock::race
