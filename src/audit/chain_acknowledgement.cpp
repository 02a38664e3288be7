#include "audit/chain_acknowledgement.hpp"

#include <algorithm>
#include <utility>

#include "audit/own_entries.hpp"

namespace rowlock {

namespace {

bool overlaps(const FoundAt& found, BreakClass kind, std::int64_t first, std::int64_t last) {
    return class_of(found.kind) == kind && found.seq <= last && found.last_seq >= first;
}

/// Part of a run: entries first … last of it.
FoundAt part_of(const FoundAt& found, std::int64_t first, std::int64_t last) {
    FoundAt part{found.kind, first, last, found.belongs_at, found.detail, {}};
    if (has_hashes(found)) {
        part.hashes.assign(found.hashes.begin() + (first - found.seq), found.hashes.begin() + (last - found.seq + 1));
    }
    return part;
}

/// Is all that the acknowledgement names found, and as it was?
bool is_found(const Acknowledgement& named, BreakClass kind, const std::vector<FoundAt>& found) {
    Sha256 hash;
    hash.begin();
    std::int64_t next = named.first_seq;
    for (const FoundAt& each : found) {
        if (!overlaps(each, kind, named.first_seq, named.last_seq)) continue;
        // A hole, or a second thing at the same number.
        if (std::max(each.seq, named.first_seq) != next) return false;
        const std::int64_t last = std::min(each.last_seq, named.last_seq);
        if (kind != BreakClass::gap && !has_hashes(each)) return false;
        for (const Digest& digest : part_of(each, next, last).hashes) hash.update(digest);
        next = last + 1;
    }
    return next > named.last_seq && hash.finish() == named.evidence;
}

std::vector<FoundAt> without(std::vector<FoundAt> found, BreakClass kind, std::int64_t first, std::int64_t last) {
    std::vector<FoundAt> left;
    for (FoundAt& each : found) {
        if (!overlaps(each, kind, first, last)) {
            left.push_back(std::move(each));
            continue;
        }
        if (each.seq < first) left.push_back(part_of(each, each.seq, first - 1));
        if (each.last_seq > last) left.push_back(part_of(each, last + 1, each.last_seq));
    }
    return left;
}

}  // namespace

void Acknowledgements::see(const SignedEntry& entry) {
    if (entry.action != acknowledge_action || all_.size() >= Verification::findings_max) return;
    auto acknowledgement = acknowledgement_of(entry);
    if (acknowledgement && class_of(acknowledgement->kind)) all_.push_back(std::move(*acknowledgement));
}

std::vector<FoundAt> Acknowledgements::left_of(std::vector<FoundAt> found) {
    for (Acknowledgement& each : all_) {
        const BreakClass kind = *class_of(each.kind);
        if (!is_found(each, kind, found)) continue;
        each.found = true;
        found = without(std::move(found), kind, each.first_seq, each.last_seq);
    }
    return found;
}

std::vector<FoundAt> Acknowledgements::left_without_keys(std::vector<FoundAt> found, std::int64_t first) {
    found = left_of(std::move(found));
    for (Acknowledgement& each : all_) {
        if (class_of(each.kind) == BreakClass::gap || each.last_seq < first) continue;
        each.found = true;
        found = without(std::move(found), BreakClass::link, each.first_seq, each.last_seq + 1);
    }
    return found;
}

}  // namespace rowlock
