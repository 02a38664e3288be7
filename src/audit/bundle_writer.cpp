#include "audit/bundle_writer.hpp"

#include <algorithm>

#include "audit/note.hpp"
#include "base/bytes.hpp"
#include "base/contract.hpp"

namespace rowlock {

BundleWriter::BundleWriter(const LedgerId& ledger, const SigningKey& key,
                           std::function<void(std::span<const std::byte>)> sink)
    : ledger_(ledger), key_(key), sink_(std::move(sink)) {
    sink_(bytes_of(bundle_magic));
    const std::string signer = key_.public_key().text();
    add_header(frame_, {ledger_, signer});
    put(BundleRecord::header, frame_.bytes());
}

void BundleWriter::put(BundleRecord type, std::span<const std::byte> payload) {
    sink_(bundle_record_start(type, payload.size()));
    sink_(payload);
}

void BundleWriter::add(const TenantId& tenant, const SignedEntry& entry) {
    if (heads_.empty() || heads_.back().tenant != tenant) {
        contract(heads_.empty() || heads_.back().tenant < tenant, "tenants come into a bundle in their order");
        heads_.push_back({tenant, entry.seq, entry.seq, {}, {}, {}});
    }
    BundleHead& head = heads_.back();
    frame_.clear();
    add_entry(frame_, tenant, entry);
    hash_.begin();
    hash_.update(head.hash);
    hash_.update(frame_.bytes());
    head.hash = hash_.finish();
    frame_.add(std::span<const std::byte>(head.hash));
    put(BundleRecord::entry, frame_.bytes());
    head.last = entry.seq;
    head.key_id = next_key_of(entry);
    contract(entry.mac.size() == head.mac.size(), "only intact entries come into a bundle");
    std::ranges::copy(entry.mac, head.mac.begin());
    ++entries_;
}

BundleSummary BundleWriter::finish(std::int64_t made_at) {
    put(BundleRecord::note, bytes_of(sign_note(bundle_text(ledger_, made_at, heads_), key_)));
    const BundleSummary summary{static_cast<std::int64_t>(heads_.size()), entries_};
    frame_.clear();
    add_trailer(frame_, {summary.tenants, summary.entries});
    put(BundleRecord::trailer, frame_.bytes());
    return summary;
}

}  // namespace rowlock
