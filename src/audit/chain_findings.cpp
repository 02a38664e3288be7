#include "audit/chain_findings.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/contract.hpp"

namespace rowlock {

namespace {

bool follows(const FoundAt& run, const FoundAt& next) {
    return run.kind == next.kind && next.seq == run.last_seq + 1 && !run.belongs_at && !next.belongs_at;
}

}  // namespace

std::string_view name_of(FindingKind kind) {
    switch (kind) {
        case FindingKind::changed:
            return "changed";
        case FindingKind::missing:
            return "missing";
        case FindingKind::tail_missing:
            return "tail_missing";
        case FindingKind::duplicate:
            return "duplicate";
        case FindingKind::displaced:
            return "displaced";
        case FindingKind::foreign:
            return "foreign";
        case FindingKind::unlinked:
            return "unlinked";
        case FindingKind::unknown_key:
            return "unknown_key";
        case FindingKind::unknown_format:
            return "unknown_format";
        case FindingKind::state_changed:
            return "state_changed";
        case FindingKind::rolled_back:
            return "rolled_back";
        case FindingKind::chain_missing:
            return "chain_missing";
        case FindingKind::diverged:
            return "diverged";
        case FindingKind::not_signed:
            return "not_signed";
    }
    contract(false, "a finding is of a kind that has a name");
    return {};
}

void FindingList::add(FoundAt found) {
    auto& run = runs_.at(static_cast<std::size_t>(found.kind));
    if (run && follows(*run, found)) {
        run->last_seq = found.last_seq;
        return;
    }
    close(run);
    run = std::move(found);
}

void FindingList::close(std::optional<FoundAt>& run) {
    if (!run) return;
    ++total_;
    if (kept_.size() < Verification::findings_max) kept_.push_back(std::move(*run));
    run.reset();
}

void FindingList::finish(Verification& verification) {
    for (auto& run : runs_) close(run);
    std::stable_sort(kept_.begin(), kept_.end(), [](const FoundAt& left, const FoundAt& right) {
        return std::tie(left.kind, left.seq) < std::tie(right.kind, right.seq);
    });
    std::vector<FoundAt> joined;
    for (FoundAt& found : kept_) {
        if (!joined.empty() && follows(joined.back(), found)) {
            joined.back().last_seq = found.last_seq;
            --total_;
        } else {
            joined.push_back(std::move(found));
        }
    }
    std::stable_sort(joined.begin(), joined.end(),
                     [](const FoundAt& left, const FoundAt& right) { return left.seq < right.seq; });
    for (FoundAt& found : joined) {
        verification.findings.push_back(
            {found.kind, tenant_, found.seq, found.last_seq, found.belongs_at, std::move(found.detail)});
    }
    verification.findings_total = total_;
}

}  // namespace rowlock
