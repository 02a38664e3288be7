#include <algorithm>
#include <optional>

#include "audit/audit_log_implementation.hpp"
#include "audit/chain.hpp"
#include "audit/copy_reader.hpp"
#include "audit/log_reader.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/checkpoint.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

/// Takes no lock.
constexpr Statement other_tenants{"audit.other_tenants",
                                  "SELECT tenant_id FROM rowlock.tenant_seq WHERE tenant_id <> $1 LIMIT 1000"};

/// Of these kinds an entry of another tenant is, too, as long as nobody has asked the other tenants' keys.
bool may_have_foreign_entries(const Verification& verification) {
    return std::ranges::any_of(verification.findings, [](const Finding& finding) {
        return finding.kind == FindingKind::changed || finding.kind == FindingKind::unknown_key ||
               finding.kind == FindingKind::duplicate;
    });
}

}  // namespace

Verification AuditLog::verify(Transaction& transaction, const TenantId& tenant, const VerifyOptions& options) const {
    ChainVerifierOptions chain_options;
    chain_options.checkpoint = mark_of(options.checkpoint, tenant);
    // What retention has dropped while it was to be read is missing only from that reading: the entry that retires it
    // may stand behind the end. Each further reading is one that the dropping has outrun, so there are not many.
    const auto run = [&] {
        while (true) {
            LogRange range;
            read_range(transaction, tenant, range);
            if (options.checkpoint != nullptr) require_same_ledger(*options.checkpoint, range.ledger, "database");
            ChainVerifier verifier(implementation_->cache.keyring(), range.ledger, tenant, chain_options);
            const auto feed = [&](const SignedEntry& entry) { verifier.feed(entry); };
            std::optional<CopyReader> reader;
            const auto next_chunk = [&](std::int64_t begins) {
                if (options.progress) options.progress(verifier.entries(), std::max(range.last, begins));
                reader.emplace(feed);
            };
            const auto piece = [&](std::span<const std::byte> bytes) { reader->take(bytes); };
            read_pieces(transaction, tenant, range,
                        {options.chunk_entries, next_chunk, piece, rest_for_writers(options.gives_way)});
            Verification verification = verifier.finish(range.state);
            const bool found = verification.findings_total > 0;
            if (!found || !begins_later_than(transaction, tenant, range.first)) return verification;
        }
    };
    Verification verification = run();
    if (!may_have_foreign_entries(verification)) return verification;
    // Another tenant's? A second reading tells, with the other tenants' keys to try: rare, and worth it.
    for (const Row row : transaction.execute(other_tenants, {tenant})) {
        chain_options.other_tenants.emplace_back(std::string(row.text(0)));
    }
    return chain_options.other_tenants.empty() ? verification : run();
}

}  // namespace rowlock
