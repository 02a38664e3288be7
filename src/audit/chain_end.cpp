// The end of a verification: the state row, and what the suspects turn out to be.
#include <algorithm>
#include <utility>

#include "audit/chain.hpp"

namespace rowlock {

Verification ChainVerifier::finish(const std::optional<StateRow>& state) {
    if (state) {
        finish_tail(*state);
    } else {
        finish_without_state();
    }
    finish_prefix();
    suspects_.locate(keys_, ledger_, std::max(last_good_.seq, state ? state->last_seq : 0));
    if (state) finish_head(*state);
    finish_suspects();
    finish_checkpoint(state);
    findings_.finish(verification_, acknowledgements_);
    verification_.acknowledgements = acknowledgements_.all();
    verification_.verdict = verdict();
    return std::move(verification_);
}

Verdict ChainVerifier::verdict() const {
    const auto only_older = [](const Finding& finding) {
        return finding.kind == FindingKind::rolled_back || finding.kind == FindingKind::chain_missing;
    };
    if (verification_.findings_total > 0) {
        return std::ranges::all_of(verification_.findings, only_older) ? Verdict::rolled_back : Verdict::tampered;
    }
    if (verification_.entries == 0) return Verdict::empty;
    if (verification_.unverifiable_entries > 0) return Verdict::unverifiable;
    const bool known = std::ranges::any_of(verification_.acknowledgements, &Acknowledgement::found);
    return known ? Verdict::acknowledged : Verdict::intact;
}

void ChainVerifier::finish_prefix() {
    for (FoundAt& found : prefix_.finish()) {
        findings_.add(std::move(found));
    }
    verification_.retired_through = prefix_.retired_through();
    verification_.retired_by = prefix_.retirement() ? prefix_.retirement()->seq : 0;
}

void ChainVerifier::finish_checkpoint(const std::optional<StateRow>& state) {
    const std::int64_t end = std::max(last_good_.seq, state ? state->last_seq : 0);
    if (auto found = comparison_.finish(end, !state && verification_.entries == 0, prefix_.retirement()))
        findings_.add(std::move(*found));
    comparison_.tell(verification_);
}

void ChainVerifier::finish_without_state() {
    if (verification_.entries == 0) return;
    flush_gaps();
    const std::int64_t seq = std::max<std::int64_t>(position_.last.seq, 1);
    report(FindingKind::state_changed, seq, seq, "the tenant has entries and no state row");
}

/// What follows these gaps is bad, and may stand far beyond the end: only what the state row counts is missing.
void ChainVerifier::finish_gaps(std::int64_t last_seq) {
    for (const auto& [first, last] : gaps_) {
        if (first > last_seq) break;
        if (last < last_seq) {
            report(FindingKind::missing, first, last, "not there, though an entry after it is");
        } else {
            report(FindingKind::tail_missing, first, last_seq, "the state row counts these");
        }
    }
    gaps_.clear();
}

void ChainVerifier::finish_tail(const StateRow& state) {
    const Last& last = position_.last;
    finish_gaps(state.last_seq);
    if (last_good_.seq > state.last_seq) {
        report(FindingKind::state_changed, std::max<std::int64_t>(state.last_seq, 0) + 1, last_good_.seq,
               "true entries that the state row does not count");
    }
    if (last.seq >= state.last_seq) return;
    const bool ends_here = last.seq > 0 && (equal_in_constant_time(state.head_mac, last.stored) ||
                                            equal_in_constant_time(state.head_mac, last.recomputed));
    if (ends_here) {
        report(FindingKind::state_changed, last.seq, last.seq,
               "last_seq is " + std::to_string(state.last_seq) + ", but head_mac is that of entry " +
                   std::to_string(last.seq));
        return;
    }
    report(FindingKind::tail_missing, last.seq + 1, state.last_seq, "the state row counts these");
    suspects_.add_vacant(last.seq + 1, state.last_seq);
}

void ChainVerifier::finish_head(const StateRow& state) {
    const Last& end = position_.last.seq == state.last_seq ? position_.last : last_good_;
    if (end.seq != state.last_seq || agrees_with_end(state, end)) return;
    report(FindingKind::state_changed, end.seq, end.seq, "head_mac or key_id is not that of the last entry");
}

bool ChainVerifier::agrees_with_end(const StateRow& state, const Last& end) {
    const auto head_is = [&](const Mac& mac) { return equal_in_constant_time(state.head_mac, mac); };
    switch (end.standing) {
        case Standing::none:
            // No entry yet. The row may hold nothing, or what the first entry will follow.
            return state.head_mac.empty() || !keys_.has(state.key_id) || head_is(keys_.genesis(state.key_id));
        case Standing::good:
        case Standing::unverifiable:
            return head_is(end.recomputed) && state.key_id == position_.key_id;
        case Standing::suspect: {
            // Of an entry that came from elsewhere, or of which no copy was kept, the row need know nothing.
            const bool is_changed = end.suspect && !suspects_[*end.suspect].belongs_at;
            return !is_changed || head_is(end.stored) || head_is(end.recomputed);
        }
        case Standing::gap:
        case Standing::rejected:
            return true;
    }
    return true;
}

void ChainVerifier::finish_suspects() {
    for (const Suspect& suspect : suspects_.all()) report_suspect(suspect);
}

void ChainVerifier::report_suspect(const Suspect& suspect) {
    const std::int64_t seq = suspect.seq;
    if (suspect.belongs_at) {
        const std::string place = std::to_string(*suspect.belongs_at);
        const bool foreign = suspect.belongs_to.has_value();
        findings_.add({foreign ? FindingKind::foreign : FindingKind::displaced,
                       seq,
                       seq,
                       suspect.belongs_at,
                       foreign ? "entry " + place + " of tenant " + suspect.belongs_to->text()
                               : "a true entry, numbered " + place + " when it was signed",
                       {entry_hash(suspect.view())}});
        return;
    }
    // A second entry of its seq has been reported as such.
    if (suspect.extra) return;
    if (suspect.key_unexpected) {
        report_entry(FindingKind::unknown_key, seq, entry_hash(suspect.view()),
                     "the chain does not use key " + suspect.key_id + " here");
        return;
    }
    report_entry(FindingKind::changed, seq, entry_hash(suspect.view()), "a column is not what was signed");
    if (!suspect.next_unlinked) return;
    report_entry(FindingKind::unlinked, seq + 1, *suspect.next_unlinked,
                 "a true entry that follows neither the stored nor the signed form of the one before it");
}

}  // namespace rowlock
