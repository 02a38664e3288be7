#include "audit/bundle_verifier.hpp"

#include <algorithm>
#include <tuple>

#include "audit/bundle_reader.hpp"
#include "audit/note.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

/// Spent on each tenant's bad entries, to tell where they come from. The bundle is a stranger's, and so is the number
/// of its tenants: some milliseconds for each.
constexpr std::size_t trial_bytes = std::size_t{4} << 20U;

/// How often the progress is told, in entries.
constexpr std::int64_t progress_step = 65536;

bool same_bytes(std::span<const std::byte> left, std::span<const std::byte> right) {
    return std::ranges::equal(left, right);
}

std::string_view as_text(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::optional<std::string> BundleVerifier::take(BundleRecord type, std::span<const std::byte> payload) {
    switch (type) {
        case BundleRecord::header:
            return take_header(payload);
        case BundleRecord::entry:
            return take_entry(payload);
        case BundleRecord::note:
            return take_note(payload);
        case BundleRecord::trailer:
            return take_trailer(payload);
    }
    return "no record of a bundle begins like this";
}

std::optional<std::string> BundleVerifier::take_header(std::span<const std::byte> payload) {
    if (phase_ != Phase::header) return "a second header";
    const auto header = read_header(payload);
    if (!header) return "the header is damaged";
    result_.ledger = header->ledger;
    result_.signer = header->signer;
    if (options_.checkpoint != nullptr) require_same_ledger(*options_.checkpoint, result_.ledger, "bundle");
    phase_ = Phase::entries;
    return std::nullopt;
}

std::optional<std::string> BundleVerifier::take_entry(std::span<const std::byte> payload) {
    if (phase_ != Phase::entries) return "an entry, where none can be";
    const auto read = read_entry(payload);
    if (!read) return "the entry's fields are not as they must be";
    ++result_.entries;
    const bool behind = chain_ && read->tenant < chain_->head.tenant.text();
    if (!behind && (!chain_ || chain_->head.tenant.text() != read->tenant) && !open_chain(*read)) {
        return "the entry's tenant is no name of one";
    }
    const SignedEntry& entry = read->entry;
    BundleHead& head = chain_->head;
    if (behind) {
        report(FindingKind::foreign, head.tenant, entry.seq, entry.seq,
               "an entry of tenant " + std::string(read->tenant) + " among these");
        return std::nullopt;
    }
    if (entry.seq <= head.last) {
        report(FindingKind::displaced, head.tenant, entry.seq, entry.seq,
               "stands behind entry " + std::to_string(head.last));
        return std::nullopt;
    }
    const bool both_there = entry.seq == head.last + 1 && entry.seq > head.first;
    const bool before_sound = chain_->sound;
    check_hash(*read);
    if (both_there && before_sound && chain_->sound && !same_bytes(entry.prev_mac, head.mac)) {
        chain_->found.add(
            {FindingKind::unlinked, entry.seq, entry.seq, std::nullopt, "does not follow the entry before it"});
    }
    head.last = entry.seq;
    std::ranges::copy(entry.mac, head.mac.begin());
    head.key_id = next_key_of(entry);
    chain_->comparison.see(entry, head.mac);
    chain_->prefix.see(entry);
    chain_->acknowledgements.see(entry);
    if (chain_->verifier) chain_->verifier->feed(entry);
    return std::nullopt;
}

bool BundleVerifier::open_chain(const BundleEntry& read) {
    close_chain();
    try {
        const TenantId tenant{std::string(read.tenant)};
        chain_.emplace(Chain{{tenant, read.entry.seq, read.entry.seq - 1, {}, {}, {}},
                             {},
                             true,
                             CheckpointComparison(mark_of(options_.checkpoint, tenant)),
                             {},
                             {},
                             FindingList(tenant),
                             std::nullopt});
        if (read.entry.seq > 1) chain_->prefix.lacks_up_to(read.entry.seq - 1);
        if (options_.keyring) {
            ChainVerifierOptions chain_options;
            chain_options.limits.trial_bytes_max = trial_bytes;
            chain_->verifier.emplace(*options_.keyring, result_.ledger, tenant, std::move(chain_options));
        }
        return true;
    } catch (const InvalidInput&) {
        return false;
    }
}

Digest BundleVerifier::hash_after(const Digest& before, std::span<const std::byte> hashed) {
    hash_.begin();
    hash_.update(before);
    hash_.update(hashed);
    return hash_.finish();
}

/// Behind a gap the hash tells whether the entries were missing when the bundle was made: then it follows that of the
/// last entry before the gap. Else the stored hash is taken as it is: the signed one at the end says whether it may be.
void BundleVerifier::check_hash(const BundleEntry& read) {
    Chain& chain = *chain_;
    const std::int64_t seq = read.entry.seq;
    const Digest stored_before = chain.head.hash;
    const Digest computed_before = chain.computed;
    chain.head.hash = read.hash;
    chain.computed = hash_after(stored_before, read.hashed);
    chain.sound = chain.computed == read.hash;
    if (!chain.sound && stored_before != computed_before) {
        // Of the entry before, it may be the stored hash alone that was changed.
        chain.computed = hash_after(computed_before, read.hashed);
        chain.sound = chain.computed == read.hash;
    }
    if (seq > chain.head.last + 1) {
        const std::string detail = "not there, though an entry after it is";
        if (chain.sound) {
            chain.found.add({FindingKind::missing, chain.head.last + 1, seq - 1, std::nullopt, detail});
        } else {
            report(FindingKind::missing, chain.head.tenant, chain.head.last + 1, seq - 1, detail);
            chain.computed = read.hash;
            chain.sound = true;
        }
    }
    if (!chain.sound) report(FindingKind::changed, chain.head.tenant, seq, seq, "not what was hashed");
}

void BundleVerifier::close_chain() {
    if (!chain_) return;
    check_log(*chain_);
    check_chain(*chain_);
    heads_.push_back(chain_->head);
    computed_.push_back(chain_->computed);
    chain_.reset();
}

/// What was wrong with the log when it was exported, what was dropped before, and what a checkpoint says.
void BundleVerifier::check_log(Chain& chain) {
    for (FoundAt& each : chain.prefix.finish()) chain.found.add(std::move(each));
    const std::vector<FoundAt> left = chain.acknowledgements.left_without_keys(chain.found.take(), chain.head.first);
    for (const FoundAt& each : left) report(each.kind, chain.head.tenant, each.seq, each.last_seq, each.detail);
    const auto& retirement = chain.prefix.retirement();
    if (chain.prefix.retired_through() > 0) {
        result_.retired.push_back({chain.head.tenant, chain.prefix.retired_through(), retirement->seq});
    }
    const auto found = chain.comparison.finish(chain.head.last, false, retirement);
    if (found) report(found->kind, chain.head.tenant, found->seq, found->last_seq, found->detail);
}

void BundleVerifier::tell_acknowledged(const TenantId& tenant, const std::vector<Acknowledgement>& acknowledgements) {
    for (const Acknowledgement& each : acknowledgements) {
        result_.any_acknowledged |= each.found;
        if (result_.acknowledged.size() < Verification::findings_max) result_.acknowledged.push_back({tenant, each});
    }
}

/// What the HMACs tell, where it has not been told already.
void BundleVerifier::check_chain(Chain& chain) {
    if (!chain.verifier) return tell_acknowledged(chain.head.tenant, chain.acknowledgements.all());
    const Verification verification =
        chain.verifier->finish(StateRow{chain.head.last, chain.head.mac, chain.head.key_id});
    result_.unverifiable_entries += verification.unverifiable_entries;
    tell_acknowledged(chain.head.tenant, verification.acknowledgements);
    for (const Finding& finding : verification.findings) {
        const bool told = std::ranges::any_of(result_.findings, [&](const Finding& known) {
            return known.kind == finding.kind && known.tenant == finding.tenant && known.seq == finding.seq;
        });
        if (!told) keep(finding);
    }
}

std::optional<std::string> BundleVerifier::take_note(std::span<const std::byte> payload) {
    if (phase_ != Phase::entries) return "a note, where none can be";
    close_chain();
    phase_ = Phase::trailer;
    const std::string_view note = as_text(payload);
    pinned_ = !options_.pinned.empty();
    std::vector<PublicKey> keys = options_.pinned;
    if (!pinned_) {
        try {
            keys.push_back(PublicKey::parse(result_.signer));
        } catch (const InvalidInput&) {
            return "the header names no public key";
        }
    }
    const auto opened = open_note(note, keys);
    if (const auto* const refused = std::get_if<NoteRefused>(&opened)) {
        if (refused->reason == NoteRefused::Reason::damaged) return "the note is damaged: " + refused->detail;
        result_.refused = *refused;
        return std::nullopt;
    }
    const auto parsed = parse_bundle_text(std::get<std::string_view>(opened));
    if (const auto* const wrong = std::get_if<std::string>(&parsed)) return "the note is damaged: " + *wrong;
    const auto& text = std::get<BundleText>(parsed);
    if (text.ledger != result_.ledger) return "the note is of another ledger than the header";
    result_.made_at = text.made_at;
    compare_heads(text.heads);
    return std::nullopt;
}

void BundleVerifier::compare_heads(const std::vector<BundleHead>& signed_heads) {
    for (const BundleHead& each : signed_heads) {
        const auto here = std::ranges::lower_bound(heads_, each.tenant, {}, &BundleHead::tenant);
        if (here != heads_.end() && here->tenant == each.tenant) {
            compare_head(*here, each);
        } else {
            report(FindingKind::chain_missing, each.tenant, each.first, each.last, "signed, and not in the bundle");
        }
    }
    for (const BundleHead& here : heads_) {
        const auto found = std::ranges::lower_bound(signed_heads, here.tenant, {}, &BundleHead::tenant);
        if (found != signed_heads.end() && found->tenant == here.tenant) continue;
        report(FindingKind::not_signed, here.tenant, here.first, here.last, "the signature does not cover the tenant");
    }
}

void BundleVerifier::compare_head(const BundleHead& here, const BundleHead& signed_head) {
    const std::string uncovered = "the signature does not cover these";
    if (here.first > signed_head.first) {
        report(FindingKind::missing, here.tenant, signed_head.first, here.first - 1, "signed, and not in the bundle");
    } else if (here.first < signed_head.first) {
        report(FindingKind::not_signed, here.tenant, here.first, signed_head.first - 1, uncovered);
    }
    if (here.last < signed_head.last) {
        report(FindingKind::tail_missing, here.tenant, here.last + 1, signed_head.last,
               "signed, and not in the bundle");
        return;
    }
    if (here.last > signed_head.last) {
        report(FindingKind::not_signed, here.tenant, signed_head.last + 1, here.last, uncovered);
        return;
    }
    const Digest& computed = computed_[static_cast<std::size_t>(&here - heads_.data())];
    if (here.hash != signed_head.hash && computed != signed_head.hash) {
        report(FindingKind::changed, here.tenant, here.first, here.last, "these are not the entries that were signed");
    }
}

std::optional<std::string> BundleVerifier::take_trailer(std::span<const std::byte> payload) {
    if (phase_ != Phase::trailer) return "a trailer, where none can be";
    const auto trailer = read_trailer(payload);
    if (!trailer) return "the trailer is damaged";
    phase_ = Phase::done;
    const auto tenants = static_cast<std::int64_t>(heads_.size());
    if (trailer->tenants == tenants && trailer->entries == result_.entries) return std::nullopt;
    return "the trailer counts " + std::to_string(trailer->entries) + " entries of " +
           std::to_string(trailer->tenants) + " tenants, and there are " + std::to_string(result_.entries) + " of " +
           std::to_string(tenants);
}

void BundleVerifier::report(FindingKind kind, const TenantId& tenant, std::int64_t first, std::int64_t last,
                            std::string detail) {
    if (!result_.findings.empty()) {
        Finding& before = result_.findings.back();
        if (before.kind == kind && before.tenant == tenant && before.last_seq + 1 == first) {
            before.last_seq = last;
            return;
        }
    }
    keep({kind, tenant, first, last, std::nullopt, std::move(detail)});
}

void BundleVerifier::keep(Finding finding) {
    ++result_.findings_total;
    if (result_.findings.size() < Verification::findings_max) result_.findings.push_back(std::move(finding));
}

void BundleVerifier::tell_not_in_bundle() {
    if (options_.checkpoint == nullptr) return;
    for (const ChainHead& each : options_.checkpoint->heads) {
        if (!std::ranges::binary_search(heads_, each.tenant, {}, &BundleHead::tenant)) {
            result_.not_in_bundle.push_back(each.tenant);
        }
    }
}

BundleVerification BundleVerifier::finish(std::optional<BundleDamage> damage) {
    close_chain();
    if (!damage) tell_not_in_bundle();
    result_.damage = std::move(damage);
    result_.tenants = static_cast<std::int64_t>(heads_.size());
    std::ranges::stable_sort(result_.findings, [](const Finding& left, const Finding& right) {
        return std::tie(left.tenant, left.seq) < std::tie(right.tenant, right.seq);
    });
    result_.verdict = verdict();
    return std::move(result_);
}

Verdict BundleVerifier::verdict() const {
    if (result_.damage || result_.refused) return Verdict::tampered;
    const auto only_older = [](const Finding& finding) { return finding.kind == FindingKind::rolled_back; };
    if (result_.findings_total > 0) {
        return std::ranges::all_of(result_.findings, only_older) ? Verdict::rolled_back : Verdict::tampered;
    }
    if (result_.entries == 0) return Verdict::empty;
    if (!pinned_ || result_.unverifiable_entries > 0) return Verdict::unverifiable;
    return result_.any_acknowledged ? Verdict::acknowledged : Verdict::intact;
}

BundleVerification verify_bundle(const std::function<std::size_t(std::span<std::byte>)>& source,
                                 const BundleVerifyOptions& options) {
    BundleReader reader(source);
    BundleVerifier verifier(options);
    auto begun = reader.begin();
    if (auto* const damage = std::get_if<BundleDamage>(&begun)) return verifier.finish(std::move(*damage));
    std::int64_t offset = 0;
    std::int64_t told = 0;
    while (true) {
        auto next = reader.next();
        if (auto* const damage = std::get_if<BundleDamage>(&next)) return verifier.finish(std::move(*damage));
        const auto* const record = std::get_if<BundleReader::Record>(&next);
        if (record == nullptr) break;
        offset = record->offset + static_cast<std::int64_t>(bundle_record_head + record->payload.size());
        if (verifier.complete()) return verifier.finish(BundleDamage{record->offset, "bytes behind the end"});
        if (auto wrong = verifier.take(record->type, record->payload)) {
            return verifier.finish(BundleDamage{record->offset, std::move(*wrong)});
        }
        if (options.progress && verifier.entries() >= told + progress_step) options.progress(told = verifier.entries());
    }
    if (verifier.complete()) return verifier.finish(std::nullopt);
    return verifier.finish(BundleDamage{offset, "the file is cut off here"});
}

}  // namespace rowlock
