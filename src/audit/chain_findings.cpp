#include "audit/chain_findings.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "audit/chain_acknowledgement.hpp"
#include "base/contract.hpp"

namespace rowlock {

namespace {

bool follows(const FoundAt& run, const FoundAt& next) {
    return run.kind == next.kind && next.seq == run.last_seq + 1 && !run.belongs_at && !next.belongs_at;
}

/// Appends the hashes of `next` to those of `run`, if both have all of theirs.
void join(FoundAt& run, const FoundAt& next) {
    if (has_hashes(run) && has_hashes(next)) {
        run.hashes.insert(run.hashes.end(), next.hashes.begin(), next.hashes.end());
    } else {
        run.hashes.clear();
    }
    run.last_seq = next.last_seq;
}

}  // namespace

bool has_hashes(const FoundAt& found) {
    return static_cast<std::int64_t>(found.hashes.size()) == found.last_seq - found.seq + 1;
}

std::optional<FindingKind> finding_kind_of(std::string_view name) {
    for (int i = 0; i <= static_cast<int>(FindingKind::not_signed); ++i) {
        const auto kind = static_cast<FindingKind>(i);
        if (name == name_of(kind)) return kind;
    }
    return std::nullopt;
}

std::optional<BreakClass> class_of(FindingKind kind) {
    switch (kind) {
        case FindingKind::changed:
        case FindingKind::displaced:
        case FindingKind::foreign:
        case FindingKind::unknown_key:
            return BreakClass::entry;
        case FindingKind::unlinked:
            return BreakClass::link;
        case FindingKind::missing:
        case FindingKind::tail_missing:
            return BreakClass::gap;
        default:
            return std::nullopt;
    }
}

Digest entry_hash(const SignedEntry& entry) {
    Frame frame;
    frame.add(entry.key_id);
    frame.add_content(entry);
    frame.add(entry.mac);
    Sha256 hash;
    hash.begin();
    hash.update(frame.bytes());
    return hash.finish();
}

Digest link_hash(const Mac& before, const Digest& entry) {
    Sha256 hash;
    hash.begin();
    hash.update(before);
    hash.update(entry);
    return hash.finish();
}

std::optional<Digest> evidence_of(const FoundAt& found) {
    const auto kind = class_of(found.kind);
    if (!kind || (kind != BreakClass::gap && !has_hashes(found))) return std::nullopt;
    Sha256 hash;
    hash.begin();
    for (const Digest& each : found.hashes) hash.update(each);
    return hash.finish();
}

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
    if (found.hashes.size() > hashes_left_) found.hashes.clear();
    hashes_left_ -= found.hashes.size();
    auto& run = runs_.at(static_cast<std::size_t>(found.kind));
    if (run && follows(*run, found)) return join(*run, found);
    close(run);
    run = std::move(found);
}

void FindingList::close(std::optional<FoundAt>& run) {
    if (!run) return;
    ++total_;
    if (kept_.size() < Verification::findings_max) kept_.push_back(std::move(*run));
    run.reset();
}

std::vector<FoundAt> FindingList::take() {
    for (auto& run : runs_) close(run);
    std::stable_sort(kept_.begin(), kept_.end(), [](const FoundAt& left, const FoundAt& right) {
        return std::tie(left.kind, left.seq) < std::tie(right.kind, right.seq);
    });
    std::vector<FoundAt> joined;
    for (FoundAt& found : kept_) {
        if (!joined.empty() && follows(joined.back(), found)) {
            join(joined.back(), found);
            --total_;
        } else {
            joined.push_back(std::move(found));
        }
    }
    kept_.clear();
    std::stable_sort(joined.begin(), joined.end(),
                     [](const FoundAt& left, const FoundAt& right) { return left.seq < right.seq; });
    return joined;
}

void FindingList::finish(Verification& verification, Acknowledgements& acknowledgements) {
    std::vector<FoundAt> found = take();
    total_ -= static_cast<std::int64_t>(found.size());
    found = acknowledgements.left_of(std::move(found));
    total_ += static_cast<std::int64_t>(found.size());
    for (FoundAt& each : found) {
        verification.findings.push_back(
            {each.kind, tenant_, each.seq, each.last_seq, each.belongs_at, std::move(each.detail), evidence_of(each)});
    }
    verification.findings_total = total_;
}

}  // namespace rowlock
