#include "audit/chain_checkpoint.hpp"

#include <algorithm>

#include "audit/own_entries.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

/// The checkpoint's entries behind `after` are given up; one that names the newest of them must name it rightly. A
/// checkpoint from after the resumption is of the log that has gone on since, and may count as few.
bool explains(const Resumption& resumption, const CheckpointMark& mark) {
    if (mark.size <= resumption.after || mark.size > resumption.size) return false;
    if (mark.size == resumption.size) return equal_in_constant_time(mark.mac, resumption.mac);
    return mark.made_at <= resumption.recorded_at;
}

}  // namespace

std::optional<CheckpointMark> mark_of(const Checkpoint* checkpoint, const TenantId& tenant) {
    const ChainHead* const head = checkpoint == nullptr ? nullptr : checkpoint->find(tenant);
    if (head == nullptr) return std::nullopt;
    return CheckpointMark{head->size, head->mac, checkpoint->made_at};
}

void require_same_ledger(const Checkpoint& checkpoint, const LedgerId& ledger, std::string_view what) {
    if (checkpoint.ledger == ledger) return;
    throw SetupError("the checkpoint is of ledger " + EntryId(checkpoint.ledger).text() + ", and this " +
                     std::string(what) + " is ledger " + EntryId(ledger).text() +
                     ": name a checkpoint of this one, or what it was made of");
}

void CheckpointComparison::see(const SignedEntry& entry, const Mac& mac) {
    if (entry.action == resume_action) {
        if (auto resumption = resumption_of(entry)) {
            ++resumptions_total_;
            resumed_ |= mark_ && explains(*resumption, *mark_);
            if (resumptions_.size() < Verification::resumptions_max) resumptions_.push_back(std::move(*resumption));
        }
    }
    if (!mark_ || entry.seq > mark_->size) return;
    if (!first_newer_ && entry.recorded_at > mark_->made_at) first_newer_ = entry.seq;
    if (entry.seq < mark_->size) return;
    seen_ = true;
    comparison_ = equal_in_constant_time(mac, mark_->mac) ? Comparison::agrees : Comparison::diverged;
}

std::int64_t CheckpointComparison::last_before(std::int64_t end) const {
    return first_newer_ ? std::min(*first_newer_ - 1, end) : end;
}

std::optional<FoundAt> CheckpointComparison::finish(std::int64_t end, bool all_gone,
                                                    const std::optional<Retirement>& retired) {
    if (!mark_ || comparison_ == Comparison::agrees) return std::nullopt;
    if (!seen_ && retired && mark_->size <= retired->through) return finish_retired(*retired);
    if (end >= mark_->size && !seen_) {
        comparison_ = Comparison::unknown;
        return std::nullopt;
    }
    if (resumed_) {
        comparison_ = Comparison::resumed;
        return std::nullopt;
    }
    if (seen_ && !first_newer_) {
        return FoundAt{FindingKind::diverged, mark_->size, mark_->size, std::nullopt,
                       "a true entry, and not the one that the checkpoint names"};
    }
    comparison_ = Comparison::rolled_back;
    const std::int64_t last = last_before(end);
    std::string detail = "the checkpoint counts these; the log was put back to entry " + std::to_string(last);
    if (all_gone) detail = "the checkpoint counts these; of the tenant nothing is left";
    if (first_newer_) detail += ", and has gone on to entry " + std::to_string(end);
    return FoundAt{all_gone ? FindingKind::chain_missing : FindingKind::rolled_back, last + 1, mark_->size,
                   std::nullopt, std::move(detail)};
}

/// What the checkpoint names has been dropped: of the last entry that was, the MAC is still known.
std::optional<FoundAt> CheckpointComparison::finish_retired(const Retirement& retired) {
    comparison_ = Comparison::retired;
    if (mark_->size < retired.through || equal_in_constant_time(mark_->mac, retired.mac)) return std::nullopt;
    comparison_ = Comparison::diverged;
    return FoundAt{
        FindingKind::diverged, mark_->size, mark_->size, std::nullopt,
        "entry " + std::to_string(retired.seq) + " retires another entry than the one that the checkpoint names"};
}

void CheckpointComparison::tell(Verification& verification) {
    verification.checkpoint = comparison_;
    verification.checkpoint_size = mark_ ? mark_->size : 0;
    verification.resumptions = std::move(resumptions_);
    verification.resumptions_total = resumptions_total_;
}

}  // namespace rowlock
