#include "audit/chain_suspects.hpp"

#include <algorithm>
#include <utility>

namespace rowlock {

namespace {

/// About what hashing it costs, padding included.
std::size_t cost_of(const SignedEntry& entry) {
    std::size_t size = 320 + entry.key_id.size() + entry.prev_mac.size() + entry.mac.size();
    for (const auto& field : {entry.actor, entry.action, entry.object, entry.data}) size += field.value_or("").size();
    return size;
}

}  // namespace

std::optional<std::size_t> SuspectList::add(const SignedEntry& entry) {
    const std::size_t size = cost_of(entry);
    if (suspects_.size() >= limits_.entries_max || size > limits_.bytes_max - bytes_) return std::nullopt;
    bytes_ += size;
    suspects_.emplace_back(entry);
    return suspects_.size() - 1;
}

void SuspectList::add_vacant(std::int64_t first, std::int64_t last) {
    for (std::int64_t seq = first; seq <= last && vacant_.size() < limits_.entries_max; ++seq) vacant_.push_back(seq);
}

bool SuspectList::fits(ChainKeys& keys, const Suspect& suspect, std::int64_t seq) {
    SignedEntry entry = suspect.view();
    const std::size_t cost = cost_of(entry);
    if (cost > trial_bytes_left_ || !keys.has(entry.key_id)) return false;
    trial_bytes_left_ -= cost;
    entry.seq = seq;
    return equal_in_constant_time(keys.mac(entry), entry.mac);
}

bool SuspectList::locate_at_candidates(ChainKeys& keys, Suspect& suspect) {
    const auto try_at = [&](std::int64_t seq) {
        if (seq == suspect.seq || !fits(keys, suspect, seq)) return false;
        suspect.belongs_at = seq;
        return true;
    };
    return std::any_of(suspects_.begin(), suspects_.end(), [&](const Suspect& other) { return try_at(other.seq); }) ||
           std::any_of(vacant_.begin(), vacant_.end(), try_at);
}

bool SuspectList::locate_anywhere(ChainKeys& keys, Suspect& suspect, std::int64_t seq_max, std::size_t bytes_to_leave) {
    for (std::int64_t seq = 1; seq <= seq_max && trial_bytes_left_ > bytes_to_leave; ++seq) {
        if (!fits(keys, suspect, seq)) continue;
        suspect.belongs_at = seq;
        return true;
    }
    return false;
}

bool SuspectList::locate_in_others(std::vector<ChainKeys>& others, Suspect& suspect, std::int64_t seq_max,
                                   std::size_t bytes_to_leave) {
    for (std::size_t i = 0; i < others.size(); ++i) {
        // An equal share of what is left to each.
        const std::size_t left = trial_bytes_left_ > bytes_to_leave ? trial_bytes_left_ - bytes_to_leave : 0;
        if (!locate_anywhere(others[i], suspect, seq_max, trial_bytes_left_ - left / (others.size() - i))) continue;
        suspect.belongs_to = others[i].tenant();
        return true;
    }
    return false;
}

void SuspectList::locate_with_share(ChainKeys& keys, std::vector<ChainKeys>& others, Suspect& suspect,
                                    const Share& share) {
    const auto other = std::find_if(others.begin(), others.end(),
                                    [&](ChainKeys& keys_there) { return fits(keys_there, suspect, suspect.seq); });
    if (other != others.end()) {
        suspect.belongs_at = suspect.seq;
        suspect.belongs_to = other->tenant();
        return;
    }
    // Half of it for this tenant, half for the others.
    const std::size_t floor = trial_bytes_left_ > share.bytes ? trial_bytes_left_ - share.bytes : 0;
    if (locate_anywhere(keys, suspect, share.seq_max, others.empty() ? floor : floor + share.bytes / 2)) return;
    // What this tenant's log has no room for may still be a number of another's.
    locate_in_others(others, suspect, std::max<std::int64_t>(share.seq_max, 10000), floor);
}

void SuspectList::locate(ChainKeys& keys, const LedgerId& ledger, std::int64_t seq_max) {
    if (suspects_.empty()) return;
    trial_bytes_left_ = limits_.trial_bytes_max;
    std::vector<ChainKeys> others;
    others.reserve(other_tenants_.size());
    for (const TenantId& tenant : other_tenants_) {
        if (tenant != keys.tenant()) others.emplace_back(keys.keyring(), ledger, tenant);
    }
    std::vector<Suspect*> unplaced;
    for (Suspect& suspect : suspects_) {
        if (!locate_at_candidates(keys, suspect)) unplaced.push_back(&suspect);
    }
    for (std::size_t done = 0; done < unplaced.size(); ++done) {
        locate_with_share(keys, others, *unplaced[done], {trial_bytes_left_ / (unplaced.size() - done), seq_max});
    }
}

}  // namespace rowlock
