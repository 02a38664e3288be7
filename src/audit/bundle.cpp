// Bundles: from a database into one, and from one to a verdict.
#include "rowlock/bundle.hpp"

#include <algorithm>
#include <optional>

#include "audit/bundle_reader.hpp"
#include "audit/bundle_verifier.hpp"
#include "audit/bundle_writer.hpp"
#include "audit/copy_reader.hpp"
#include "audit/log_reader.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

/// Takes no lock.
constexpr Statement read_ledger{
    "audit.read_ledger",
    "SELECT ledger_id, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM rowlock.ledger"};

/// How often the progress is told, in entries.
constexpr std::int64_t progress_step = 65536;

Verification export_tenant(Transaction& transaction, const Keyring& keyring, const TenantId& tenant,
                           BundleWriter& writer, const ExportOptions& options) {
    LogRange range;
    read_range(transaction, tenant, range);
    ChainVerifier verifier(keyring, range.ledger, tenant);
    const auto take = [&](const SignedEntry& entry) {
        verifier.feed(entry);
        // What is no MAC is found by the verifier, and then nothing is exported.
        if (entry.mac.size() == sizeof(Mac) && entry.prev_mac.size() == sizeof(Mac)) writer.add(tenant, entry);
    };
    std::optional<CopyReader> reader;
    const auto next_chunk = [&](std::int64_t begins) {
        if (options.progress) options.progress(tenant, verifier.entries(), std::max(range.last, begins));
        reader.emplace(take);
    };
    const auto piece = [&](std::span<const std::byte> bytes) { reader->take(bytes); };
    read_pieces(transaction, tenant, range, {VerifyOptions{}.chunk_entries, next_chunk, piece});
    return verifier.finish(range.state);
}

}  // namespace

ExportOutcome export_bundle(Transaction& transaction, const Keyring& keyring, std::span<const TenantId> tenants,
                            const SigningKey& key, const ExportOptions& options) {
    const Rows rows = transaction.execute(read_ledger);
    if (rows.empty()) throw SetupError("rowlock.ledger is empty: the schema is damaged, its one row is gone");
    BundleWriter writer(EntryId::parse(rows[0].text(0)).bytes(), key, options.sink);
    std::vector<TenantId> ordered(tenants.begin(), tenants.end());
    std::ranges::sort(ordered);
    const auto [first_again, end] = std::ranges::unique(ordered);
    ordered.erase(first_again, end);
    for (const TenantId& tenant : ordered) {
        Verification verification = export_tenant(transaction, keyring, tenant, writer, options);
        if (verification.verdict != Verdict::intact && verification.verdict != Verdict::empty) {
            return NotExported{tenant, std::move(verification)};
        }
    }
    return writer.finish(transaction.execute(read_ledger).only().integer(1));
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
