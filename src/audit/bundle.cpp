// Bundles: from a database into one.
#include "rowlock/bundle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "audit/bundle_writer.hpp"
#include "audit/chain.hpp"
#include "audit/copy_reader.hpp"
#include "audit/log_reader.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

/// Takes no lock.
constexpr Statement read_ledger{
    "audit.read_ledger",
    "SELECT ledger_id, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM rowlock.ledger"};

Verification export_tenant(Transaction& transaction, const Keyring& keyring, const TenantId& tenant,
                           BundleWriter& writer, const ExportOptions& options) {
    LogRange range;
    read_range(transaction, tenant, range);
    if (options.checkpoint != nullptr) require_same_ledger(*options.checkpoint, range.ledger, "database");
    ChainVerifierOptions chain_options;
    chain_options.checkpoint = mark_of(options.checkpoint, tenant);
    ChainVerifier verifier(keyring, range.ledger, tenant, std::move(chain_options));
    bool all_written = true;
    const auto take = [&](const SignedEntry& entry) {
        verifier.feed(entry);
        // What is no MAC is found by the verifier, and then nothing is exported.
        const bool writable = entry.mac.size() == sizeof(Mac) && entry.prev_mac.size() == sizeof(Mac);
        if (writable) writer.add(tenant, entry);
        all_written &= writable;
    };
    std::optional<CopyReader> reader;
    const auto next_chunk = [&](std::int64_t begins) {
        if (options.progress) options.progress(tenant, verifier.entries(), std::max(range.last, begins));
        reader.emplace(take);
    };
    const auto piece = [&](std::span<const std::byte> bytes) { reader->take(bytes); };
    read_pieces(transaction, tenant, range,
                {VerifyOptions{}.chunk_entries, next_chunk, piece, rest_for_writers(options.gives_way)});
    Verification verification = verifier.finish(range.state);
    if (verification.findings_total > 0 && begins_later_than(transaction, tenant, range.first)) {
        throw ServerError({.sqlstate = "40001",
                           .message = fmt::format(
                               "entries of tenant {} were dropped by a retention while they were read", tenant.text()),
                           .hint = "export again"},
                          Recovery::run_again);
    }
    // Acknowledged or not, a bundle has no form for it.
    if (!all_written) verification.verdict = Verdict::tampered;
    return verification;
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
        if (!is_good(verification.verdict) && verification.verdict != Verdict::empty) {
            return NotExported{tenant, std::move(verification)};
        }
    }
    return writer.finish(transaction.execute(read_ledger).only().integer(1));
}

}  // namespace rowlock
