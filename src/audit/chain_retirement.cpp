#include "audit/chain_retirement.hpp"

#include <algorithm>

namespace rowlock {

void RetiredPrefix::see(const SignedEntry& entry) {
    if (lacking_ == 0) return;
    if (entry.seq == lacking_ + 1) {
        remaining_ =
            Remaining{{entry.prev_mac.begin(), entry.prev_mac.end()}, std::string(entry.key_id), entry_hash(entry)};
    }
    if (entry.action != retirement_action) return;
    auto retirement = retirement_of(entry);
    if (retirement && (!last_ || retirement->through > last_->through)) last_ = std::move(retirement);
}

std::vector<FoundAt> RetiredPrefix::finish() {
    std::vector<FoundAt> found;
    if (lacking_ == 0) return found;
    const std::int64_t through = last_ ? last_->through : 0;
    retired_through_ = std::min(through, lacking_);
    if (through < lacking_) {
        found.push_back({FindingKind::missing, through + 1, lacking_, std::nullopt,
                         last_ ? "not there, and entry " + std::to_string(last_->seq) + " retires only those up to " +
                                     std::to_string(through)
                               : "not there, though an entry after it is"});
        return found;
    }
    // Where some of the retired entries still stand, the chain itself tells whether the next one follows them.
    if (through > lacking_ || !remaining_) return found;
    const std::int64_t next = lacking_ + 1;
    const std::string says = "entry " + std::to_string(last_->seq);
    if (!equal_in_constant_time(remaining_->prev_mac, last_->mac)) {
        found.push_back({FindingKind::unlinked,
                         next,
                         next,
                         std::nullopt,
                         "does not follow the entry that " + says + " retires",
                         {link_hash(last_->mac, remaining_->hash)}});
    }
    if (remaining_->key_id != last_->key_id) {
        found.push_back({FindingKind::unknown_key,
                         next,
                         next,
                         std::nullopt,
                         says + " says that key " + last_->key_id + " comes here, and it is " + remaining_->key_id,
                         {remaining_->hash}});
    }
    return found;
}

}  // namespace rowlock
