// Bundles: entries in one file, signed, for those who have neither the database nor the HMAC keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "rowlock/audit_log.hpp"
#include "rowlock/checkpoint.hpp"
#include "rowlock/keyring.hpp"
#include "rowlock/signing_key.hpp"
#include "rowlock/transaction.hpp"

namespace rowlock {

struct BundleSummary {
    std::int64_t tenants = 0;
    std::int64_t entries = 0;
};
/// A tenant's chain is not intact as far as the keyring can tell, but for breaks that the log itself acknowledges: a
/// signature would only cover that up.
struct NotExported {
    TenantId tenant;
    Verification verification;
};
using ExportOutcome = std::variant<BundleSummary, NotExported>;

struct ExportOptions {
    /// Is given the bundle piece by piece (docs/formats/bundle.md).
    std::function<void(std::span<const std::byte>)> sink;
    std::function<void(const TenantId&, std::int64_t done, std::int64_t all)> progress{};
    /// Compared with, as by `AuditLog::verify`: a log that is behind it is not exported. It must outlive the call.
    const Checkpoint* checkpoint = nullptr;
    bool gives_way = true;  ///< As that of VerifyOptions.
};

/// Writes all entries of the tenants, and verifies each chain with the keyring while it goes by; tenants without
/// entries are left out. Takes no lock; memory does not grow with the log. The role must see the tenants' rows. What
/// went to the sink before NotExported, or before a throw, is of no use: run it with one attempt
/// (`TransactionPolicy::attempts_max`), and throw away what was written. Throws ServerError (40001) where a retention
/// dropped entries that were still to be read.
[[nodiscard]] ExportOutcome export_bundle(Transaction& transaction, const Keyring& keyring,
                                          std::span<const TenantId> tenants, const SigningKey& key,
                                          const ExportOptions& options);

struct BundleVerifyOptions {
    /// Those whose signature is believed. With none, a good bundle is `unverifiable`: anybody can sign.
    std::vector<PublicKey> pinned{};
    /// With it the HMACs are checked, too.
    std::optional<Keyring> keyring{};
    /// Compared with, as by `AuditLog::verify`. It must outlive the call.
    const Checkpoint* checkpoint = nullptr;
    std::function<void(std::int64_t entries)> progress{};
};

/// Where the file itself is not a bundle any more: nothing behind it was read.
struct BundleDamage {
    std::int64_t offset = 0;  ///< Of the record that does not fit, in bytes.
    std::string detail;
};

/// Entries 1 … through of the tenant were dropped before the export, as entry `seq` says.
struct BundleRetired {
    TenantId tenant;
    std::int64_t through = 0;
    std::int64_t seq = 0;
};

/// An entry of the tenant acknowledges a break. Without a keyring it is taken at its word, which the signer vouches
/// for.
struct BundleAcknowledged {
    TenantId tenant;
    Acknowledgement acknowledgement;
};

struct BundleVerification {
    /// What all of it comes to, as for a tenant's log.
    Verdict verdict = Verdict::empty;
    std::optional<BundleDamage> damage{};
    /// Why the signature is not believed.
    std::optional<NoteRefused> refused{};
    LedgerId ledger{};
    std::int64_t made_at = 0;
    std::string signer{};  ///< The public key that the bundle itself names; believe it only if you pinned it.
    std::int64_t tenants = 0;
    std::int64_t entries = 0;
    std::int64_t unverifiable_entries = 0;  ///< By the keyring, where one was given.
    /// Tenants that the checkpoint names and the bundle has no entry of. No finding: a bundle is of those tenants that
    /// it was asked for. But who asked for all of them should know.
    std::vector<TenantId> not_in_bundle{};
    std::vector<BundleRetired> retired{};
    std::vector<BundleAcknowledged> acknowledged{};  ///< At most Verification::findings_max.
    bool any_acknowledged = false;                   ///< Is a break of the entries here acknowledged?
    /// In order of tenant and number; at most Verification::findings_max, `findings_total` counts all.
    std::vector<Finding> findings{};
    std::int64_t findings_total = 0;
};

/// Reads a bundle to its end and checks it: needs no database. `source` fills a span and says with how many bytes, 0 at
/// the end. Memory does not grow with the bundle, but for the largest entry and 200 bytes for each tenant.
[[nodiscard]] BundleVerification verify_bundle(const std::function<std::size_t(std::span<std::byte>)>& source,
                                               const BundleVerifyOptions& options);

}  // namespace rowlock
