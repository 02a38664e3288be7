#include "audit/chain.hpp"

#include <algorithm>
#include <utility>

#include "audit/keyring_keys.hpp"

namespace rowlock {

namespace {

constexpr std::size_t gaps_max = 1000;
constexpr std::size_t missing_keys_max = 1000;

/// A MAC of another length than 32 never fits anything.
Mac mac_of(std::span<const std::byte> bytes) {
    Mac mac{};
    if (bytes.size() == mac.size()) std::copy(bytes.begin(), bytes.end(), mac.begin());
    return mac;
}

}  // namespace

ChainVerifier::ChainVerifier(Keyring keyring, const LedgerId& ledger, TenantId tenant, ChainVerifierOptions options)
    : keys_(std::move(keyring), ledger, tenant),
      ledger_(ledger),
      suspects_(options.limits, std::move(options.other_tenants)),
      comparison_(options.checkpoint),
      findings_(std::move(tenant)) {}

void ChainVerifier::feed(const SignedEntry& entry) {
    ++verification_.entries;
    const std::int64_t last_seq = position_.last.seq;
    if (entry.seq < 1) return stray(entry, false);
    if (last_seq >= 1 && entry.seq <= last_seq) return repeated(entry);
    if (entry.seq > last_seq + 1) note_gap(last_seq + 1, entry.seq - 1);
    judge(entry);
}

void ChainVerifier::report(FindingKind kind, std::int64_t first, std::int64_t last, std::string detail) {
    findings_.add({kind, first, last, std::nullopt, std::move(detail)});
}

void ChainVerifier::report_entry(FindingKind kind, std::int64_t seq, const Digest& hash, std::string detail) {
    findings_.add({kind, seq, seq, std::nullopt, std::move(detail), {hash}});
}

void ChainVerifier::report_unlinked(const SignedEntry& entry, const Mac& before, std::string detail) {
    report_entry(FindingKind::unlinked, entry.seq, link_hash(before, entry_hash(entry)), std::move(detail));
}

/// An entry at no place of the chain: it does not move the chain on.
void ChainVerifier::stray(const SignedEntry& entry, bool extra) {
    if (const auto index = suspects_.add(entry)) {
        suspects_[*index].extra = extra;
    } else if (!extra) {
        report(FindingKind::changed, entry.seq, entry.seq, "no entry is numbered so");
    }
}

void ChainVerifier::repeated(const SignedEntry& entry) {
    report(FindingKind::duplicate, entry.seq, entry.seq, "a second entry has this number");
    const bool at_hand = entry.format == entry_format && keys_.has(entry.key_id);
    const bool authentic = at_hand && equal_in_constant_time(keys_.mac(entry), entry.mac);
    if (at_hand && !authentic) return stray(entry, true);
    const Last& last = position_.last;
    const bool replaces = authentic && entry.seq == last.seq &&
                          (last.standing == Standing::suspect || last.standing == Standing::rejected);
    if (!replaces) return;
    // The first one was the intruder. (If a key or a format told so, that has been reported.)
    if (last.suspect) suspects_[*last.suspect].extra = true;
    position_ = before_;
    if (entry.seq == begun_at_) position_.key_id.clear();
    judge(entry);
}

void ChainVerifier::judge(const SignedEntry& entry) {
    if (position_.key_id.empty()) begin_with(entry);
    if (entry.key_id.empty()) return reject(entry, FindingKind::unknown_key, "no key is named");
    if (entry.format != entry_format) {
        return reject(entry, FindingKind::unknown_format, "format " + std::to_string(entry.format));
    }
    if (!keys_.has(entry.key_id)) return judge_without_key(entry);
    const Mac recomputed = keys_.mac(entry);
    if (!equal_in_constant_time(recomputed, entry.mac)) return suspect(entry, recomputed);
    if (!is_chain_key(entry)) {
        if (!position_.key_open || !may_adopt(entry.key_id)) {
            return reject(
                entry, FindingKind::unknown_key,
                "key " + std::string(entry.key_id) + " is not the chain's here, which is " + position_.key_id);
        }
        change_key(entry.key_id);
    }
    accept(entry, Standing::good, recomputed);
}

void ChainVerifier::judge_without_key(const SignedEntry& entry) {
    const bool named = position_.key_open && position_.named_key == entry.key_id && !entry.key_id.empty();
    if (!is_chain_key(entry) && !named) {
        return reject(entry, FindingKind::unknown_key,
                      "neither genesis nor a rotation names key " + std::string(entry.key_id) + " here");
    }
    position_.key_id = entry.key_id;
    ++verification_.unverifiable_entries;
    auto& missing = verification_.missing_keys;
    const bool listed = !missing.empty() && (missing.back() == entry.key_id ||
                                             std::find(missing.begin(), missing.end(), entry.key_id) != missing.end());
    if (!listed && missing.size() < missing_keys_max) missing.emplace_back(entry.key_id);
    accept(entry, Standing::unverifiable, mac_of(entry.mac));
}

void ChainVerifier::reject(const SignedEntry& entry, FindingKind kind, std::string detail) {
    report_entry(kind, entry.seq, entry_hash(entry), std::move(detail));
    before_ = position_;
    // It may be a rotation whose key id or format was changed. One that its own key signed truly is no such thing.
    position_.key_open |= entry.format != entry_format || !keys_.has(entry.key_id);
    position_.last = {entry.seq, Standing::rejected, mac_of(entry.mac), mac_of(entry.mac), std::nullopt};
}

void ChainVerifier::suspect(const SignedEntry& entry, const Mac& recomputed) {
    const auto index = suspects_.add(entry);
    if (index) {
        suspects_[*index].key_unexpected = !is_chain_key(entry) && !position_.key_open;
    } else {
        report_entry(FindingKind::changed, entry.seq, entry_hash(entry), "a column is not what was signed");
    }
    before_ = position_;
    position_.key_open = true;
    if (entry.action == rotation_action) position_.named_key = entry.object.value_or("");
    position_.last = {entry.seq, Standing::suspect, mac_of(entry.mac), recomputed, index};
}

void ChainVerifier::accept(const SignedEntry& entry, Standing standing, const Mac& recomputed) {
    if (!gaps_.empty()) flush_gaps();
    check_link(entry);
    position_.last = {entry.seq, standing, mac_of(entry.mac), recomputed, std::nullopt};
    // Which key a chain goes on with whose beginning has been dropped, an entry further on tells: until then the first
    // entry's own word for a key that is not at hand is not to make all others strangers.
    position_.key_open = standing == Standing::unverifiable && entry.seq == begun_at_ && entry.seq > 1;
    position_.named_key.clear();
    last_good_ = position_.last;
    comparison_.see(entry, recomputed);
    // Who has no key might be shown one that nobody signed.
    if (standing == Standing::good) acknowledgements_.see(entry);
    prefix_.see(entry);
    if (entry.action == rotation_action) introduce_key(entry);
}

void ChainVerifier::note_gap(std::int64_t first, std::int64_t last) {
    if (gaps_.size() >= gaps_max) flush_gaps();
    gaps_.emplace_back(first, last);
    suspects_.add_vacant(first, last);
    position_.last = {last, Standing::gap, {}, {}, std::nullopt};
    position_.key_open = true;
}

void ChainVerifier::flush_gaps() {
    for (const auto& [first, last] : gaps_) {
        if (first == 1) {
            // An entry further on may say that these have been dropped.
            prefix_.lacks_up_to(last);
            continue;
        }
        report(FindingKind::missing, first, last, "not there, though an entry after it is");
    }
    gaps_.clear();
}

/// Which key did genesis name? The previous MAC of entry 1 tells, for every key at hand. Otherwise the entry is
/// believed: another key in it would be one that is not at hand, or its MAC does not fit.
void ChainVerifier::begin_with(const SignedEntry& entry) {
    begun_at_ = entry.seq;
    position_.key_id = entry.key_id;
    if (entry.seq != 1) return;
    for (const Keyring::Keys::Key& key : keys_.keyring().keys().all) {
        if (equal_in_constant_time(keys_.genesis(key.id), entry.prev_mac)) position_.key_id = key.id;
    }
}

bool ChainVerifier::is_chain_key(const SignedEntry& entry) const {
    return entry.key_id == position_.key_id;
}

/// A key that a rotation has ended may have been given up because it leaked.
bool ChainVerifier::may_adopt(std::string_view key_id) const {
    return std::find(retired_keys_.begin(), retired_keys_.end(), key_id) == retired_keys_.end();
}

void ChainVerifier::check_link(const SignedEntry& entry) {
    const Last& last = position_.last;
    const auto follows = [&](const Mac& mac) { return equal_in_constant_time(entry.prev_mac, mac); };
    switch (last.standing) {
        case Standing::none:
            if (keys_.has(position_.key_id) && !follows(keys_.genesis(position_.key_id))) {
                report_unlinked(entry, Mac{}, "the first entry does not follow genesis");
            }
            return;
        case Standing::good:
        case Standing::unverifiable:
            if (!follows(last.recomputed)) {
                report_unlinked(entry, last.recomputed, "a true entry that does not follow the one before it");
            }
            return;
        case Standing::suspect:
            // Judged when it is known what the suspect is: after a displaced entry nothing could follow.
            if (last.suspect && !follows(last.stored) && !follows(last.recomputed)) {
                suspects_[*last.suspect].next_unlinked = link_hash(last.recomputed, entry_hash(entry));
            }
            return;
        case Standing::gap:
        case Standing::rejected:
            return;
    }
}

void ChainVerifier::introduce_key(const SignedEntry& entry) {
    const std::string_view named = entry.object.value_or("");
    if (!named.empty() && named != position_.key_id) change_key(named);
}

/// Only keys at hand can sign what is accepted, so no others need to be remembered, and the keyring bounds the list.
void ChainVerifier::change_key(std::string_view key_id) {
    if (keys_.has(position_.key_id)) retired_keys_.push_back(position_.key_id);
    std::erase(retired_keys_, key_id);
    position_.key_id = key_id;
}

}  // namespace rowlock
