// The audit log: entries numbered and chained per tenant, in the caller's transaction.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "rowlock/identifiers.hpp"
#include "rowlock/keyring.hpp"
#include "rowlock/transaction.hpp"

namespace rowlock {

/// What the caller says of one event. Texts are UTF-8 without a NUL byte (InvalidInput).
struct AuditEntry {
    /// Keep it for a retry: the same id is appended once, whatever happens to the link.
    EntryId id = EntryId::generate();
    std::optional<std::string> actor{};
    /// Must not begin with "rowlock.": those are the log's own.
    std::optional<std::string> action{};
    std::optional<std::string> object{};
    /// JSON text, kept and signed byte for byte. What PostgreSQL's jsonb can't hold is refused (22P02, 22P05, 22003,
    /// 54001).
    std::optional<std::string> data{};
};

struct Appended {
    std::int64_t seq;
};
/// An entry with this id and the same content is there: whatever else the transaction is about to write was very likely
/// written by an earlier try, too. Not to be ignored.
struct AlreadyAppended {
    std::int64_t seq;
};
/// An entry with this id and other content is there. Nothing was appended.
struct EntryIdTaken {
    std::int64_t seq;
};
using AppendOutcome = std::variant<Appended, AlreadyAppended, EntryIdTaken>;

struct TenantEntry {
    TenantId tenant;
    AuditEntry entry;
};

/// An entry as it stands in the log.
struct StoredEntry {
    std::int64_t seq = 0;
    EntryId id{std::array<std::byte, 16>{}};
    /// Microseconds since 1970-01-01 UTC, by the server's clock at the time of the append, or of the staging where it
    /// was staged: then it can be earlier than that of the entry before it.
    std::int64_t recorded_at = 0;
    std::optional<std::string> actor{};
    std::optional<std::string> action{};
    std::optional<std::string> object{};
    std::optional<std::string> data{};
    std::string key_id;
};

/// An entry by which an operator said that the log was put back to an older state (a restore from a backup), and goes
/// on from there. It stays in the log for ever.
struct Resumption {
    std::int64_t seq = 0;             ///< Its own number.
    std::int64_t after = 0;           ///< The last entry that was still there; what came behind it is lost.
    std::int64_t size = 0;            ///< So many entries the newest checkpoint counted.
    std::array<std::byte, 32> mac{};  ///< The MAC of the last of them.
    std::int64_t recorded_at = 0;
    std::string actor{};
    std::string reason{};
};

enum class FindingKind {
    changed,         ///< A column is not what was signed.
    missing,         ///< Entries seq … last_seq are not there.
    tail_missing,    ///< The state row counts entries up to last_seq; they are not there.
    duplicate,       ///< A second entry with this seq.
    displaced,       ///< A true entry of this tenant, at a place that is not its own; see belongs_at.
    foreign,         ///< A true entry of another tenant.
    unlinked,        ///< A true entry that does not follow the one before it.
    unknown_key,     ///< Signed with a key that neither genesis nor a rotation entry introduced.
    unknown_format,  ///< A format that this chain never had.
    state_changed,   ///< The state row does not agree with the last entry.
    rolled_back,     ///< A checkpoint counts entries up to last_seq; the log, true as it is, has not had them since.
    chain_missing,   ///< The same, where nothing of the tenant is left.
    diverged,        ///< Another entry than the one that a checkpoint names.
    not_signed,      ///< In a bundle: what its signature does not cover.
};
[[nodiscard]] std::string_view name_of(FindingKind kind);
/// Nothing for what is no kind's name.
[[nodiscard]] std::optional<FindingKind> finding_kind_of(std::string_view name);

struct Finding {
    FindingKind kind;
    TenantId tenant;
    std::int64_t seq;       ///< The first bad one.
    std::int64_t last_seq;  ///< The last of a run of the same kind.
    std::optional<std::int64_t> belongs_at;
    std::string detail;
    /// A hash of what stands there, by which an acknowledgement names it. Nothing where none can: what was put back has
    /// `resume`, a state row is put right by its owner, and rewritten history stays what it is.
    std::optional<std::array<std::byte, 32>> evidence{};
};

/// An entry by which an operator said that a break is known, so that the next one stands out. It puts nothing right.
struct Acknowledgement {
    std::int64_t seq = 0;  ///< Its own number.
    FindingKind kind{};    ///< Of the finding, as of the next three.
    std::int64_t first_seq = 0;
    std::int64_t last_seq = 0;
    std::array<std::byte, 32> evidence{};
    std::int64_t recorded_at = 0;
    std::string actor{};
    std::string reason{};
    /// The break is still there as it was. Else nothing is hidden by it: it was dropped, or put right, or is another.
    bool found = false;
};

enum class Verdict {
    intact,        ///< Every entry is as it was signed, and the chain ends where the state row says.
    tampered,      ///< At least one finding.
    unverifiable,  ///< Nothing wrong was found, but a key is not at hand for some entries.
    empty,         ///< There was nothing to look at, which proves nothing.
    rolled_back,   ///< Nothing but this: the log is in an older state than a checkpoint saw it in.
    acknowledged,  ///< Intact but for breaks that entries of the log acknowledge.
};
/// Nothing is wrong that the log itself does not tell of.
[[nodiscard]] constexpr bool is_good(Verdict verdict) {
    return verdict == Verdict::intact || verdict == Verdict::acknowledged;
}

/// What a checkpoint said of a tenant's chain.
enum class Comparison {
    none,         ///< There was no checkpoint, or it does not name the tenant.
    agrees,       ///< The entry at its size is the one that it names.
    resumed,      ///< It is not, and a resume entry says why.
    retired,      ///< That entry has been dropped in order.
    rolled_back,  ///< See FindingKind, as for the next.
    diverged,
    unknown,  ///< The entry at its size can't be judged: the findings say why.
};

struct Verification {
    Verdict verdict = Verdict::empty;
    std::int64_t entries = 0;
    std::int64_t unverifiable_entries = 0;
    std::vector<std::string> missing_keys;
    /// Entries 1 … retired_through have been dropped, as entry retired_by says; 0 where none have.
    std::int64_t retired_through = 0;
    std::int64_t retired_by = 0;
    Comparison checkpoint = Comparison::none;
    std::int64_t checkpoint_size = 0;  ///< What the checkpoint counted.
    /// At most `resumptions_max`; `resumptions_total` counts all.
    std::vector<Resumption> resumptions;
    std::int64_t resumptions_total = 0;
    static constexpr std::size_t resumptions_max = 100;
    /// At most `findings_max`, the first ones: breaks that others acknowledge stay findings.
    std::vector<Acknowledgement> acknowledgements;
    /// What no entry acknowledges. At most `findings_max`; `findings_total` counts all.
    std::vector<Finding> findings;
    std::int64_t findings_total = 0;
    static constexpr std::size_t findings_max = 1000;
};

struct Checkpoint;

struct VerifyOptions {
    /// Compared with: it must outlive the call. A checkpoint of another ledger is refused (SetupError).
    const Checkpoint* checkpoint = nullptr;
    /// Called after every chunk with the number of entries read so far and the number to read.
    std::function<void(std::int64_t, std::int64_t)> progress{};
    /// Entries read under one snapshot; at least one.
    std::int64_t chunk_entries = 50000;
    /// Rest twice as long after each chunk as it took, if a transaction that wrote anything ended on the server
    /// meanwhile: so that reading a long log does not take the writers' cores. Never on a standby, nor above READ
    /// COMMITTED, where one snapshot can't tell.
    bool gives_way = true;
};

/// Why a log that was put back to an older state may go on.
struct ResumeRequest {
    /// Keep it for a retry, as that of an AuditEntry.
    EntryId id = EntryId::generate();
    std::string reason;
    std::optional<std::string> actor{};
};
struct Resumed {
    std::int64_t seq;    ///< Of the resume entry.
    std::int64_t after;  ///< The last entry that was still there.
};
/// The log agrees with the checkpoint, or has been resumed after it, or is tampered with, which no entry puts right.
struct NothingToResume {
    Verification verification;
};
using ResumeOutcome = std::variant<Resumed, NothingToResume>;

/// Which entries may go.
struct RetirementRequest {
    std::int64_t through = 0;  ///< Entries 1 … through.
    std::string reason;
    std::optional<std::string> actor{};
    EntryId id = EntryId::generate();  ///< As that of ResumeRequest.
};
struct EntriesRetired {
    std::int64_t seq;  ///< Of the retirement entry.
};
/// The log is not intact, the checkpoint does not cover the entries, or they are not there.
struct EntriesNotRetired {
    std::string reason;
    Verification verification;
};
using RetirementOutcome = std::variant<EntriesRetired, EntriesNotRetired>;

/// Which finding is known, as `verify` tells it.
struct AcknowledgeRequest {
    std::int64_t seq = 0;               ///< A number that the finding is about.
    std::optional<FindingKind> kind{};  ///< Needed where there are several at this number.
    std::string reason;
    std::optional<std::string> actor{};
    EntryId id = EntryId::generate();  ///< As that of ResumeRequest.
};
struct Acknowledged {
    std::int64_t seq;  ///< Of the entry that says so.
    Finding finding;
};
/// There is no such finding, or it is of a kind that no entry can acknowledge.
struct NotAcknowledged {
    std::string reason;
    Verification verification;
};
using AcknowledgeOutcome = std::variant<Acknowledged, NotAcknowledged>;

/// The log of all tenants. Cheap to make; holds no connection. Safe for use by many threads.
///
/// Promise: for one tenant, entries are numbered 1, 2, 3 … with no gap and no duplicate; each carries an HMAC-SHA-256
/// over all of its columns and the HMAC before it. Entry and number are part of the caller's transaction: both happen
/// or neither does.
class AuditLog {
  public:
    explicit AuditLog(Keyring keyring);
    ~AuditLog();
    AuditLog(AuditLog&&) noexcept;
    AuditLog& operator=(AuditLog&&) noexcept;

    /// Appends for the transaction's tenant. One round trip here; the entry itself travels with the COMMIT (or the next
    /// statement), which is where a failure of it is thrown.
    ///
    /// Locks: at READ COMMITTED a transaction-scoped advisory lock per tenant, a fair queue; then the tenant's row of
    /// rowlock.tenant_seq FOR UPDATE, held until the transaction ends. So append last. Above READ COMMITTED a wait
    /// ends in 40001, which `transact` runs again.
    /// Throws Busy after the policy's lock limit, InvalidInput (no tenant, reserved action, a NUL byte), SetupError
    /// (the role bypasses row-level security; the chain's key is not in the keyring), ServerError (3F000 or 42P01
    /// where the schema is not installed: `require_schema` says so beforehand).
    /// Entries of several tenants in one transaction go through `append_all`, once: a second tenant later is a contract
    /// failure, since two such transactions would deadlock.
    [[nodiscard]] AppendOutcome append(Transaction& transaction, const AuditEntry& entry) const;

    /// Appends many entries, of one tenant or several, in one call: locks are taken in one order for all callers.
    /// The outcomes stand in the order of the entries. Without a tenant in the policy each entry's own is set in turn.
    [[nodiscard]] std::vector<AppendOutcome> append_all(Transaction& transaction,
                                                        std::span<const TenantEntry> entries) const;

    /// Entries from `first_seq` on, in order, of the transaction's tenant. Takes no lock.
    [[nodiscard]] static std::vector<StoredEntry> list(Transaction& transaction, std::int64_t first_seq,
                                                       std::int64_t count_max);

    /// Reads the whole chain of a tenant and checks it. Takes no lock; memory does not grow with the log. At READ
    /// COMMITTED, the default, each chunk has a snapshot of its own, so that the server can clean up meanwhile.
    /// The role must see the tenant's rows: the tenant of the policy, or rowlock_auditor.
    [[nodiscard]] Verification verify(Transaction& transaction, const TenantId& tenant,
                                      const VerifyOptions& options = {}) const;

    /// Appends the entry that makes a rolled back log good again: it names the size and the MAC of the checkpoint,
    /// which should be the newest there is, and the last entry that is still there. From then on `verify` takes any
    /// checkpoint of the entries between for explained, and tells of the resumption for ever. For the transaction's
    /// tenant; verifies the whole log first (without a lock), then appends, with the locks and refusals of `append`.
    [[nodiscard]] ResumeOutcome resume(Transaction& transaction, const Checkpoint& checkpoint,
                                       const ResumeRequest& request) const;

    /// Appends the entry that retires entries 1 … through, so that `drop_retired_entries` may drop them and `verify`
    /// still finds the log intact. Only what the checkpoint covers: the whole log is verified against it first (without
    /// a lock). For the transaction's tenant, with the locks and refusals of `append`; as a role that may append.
    [[nodiscard]] RetirementOutcome retire(Transaction& transaction, const Checkpoint& checkpoint,
                                           const RetirementRequest& request) const;

    /// Appends the entry that acknowledges one finding: by its kind, its numbers and a hash of what stands there. From
    /// then on `verify` tells it apart from the others, for ever, and the log is `acknowledged` and not `tampered`.
    /// Another break, be it at the same place, is found as before. For the transaction's tenant; verifies the whole log
    /// first (without a lock), then appends, with the locks and refusals of `append`.
    [[nodiscard]] AcknowledgeOutcome acknowledge(Transaction& transaction, const AcknowledgeRequest& request) const;

    /// Drops at most `entries_max` of the entries that entry `retired_by` of the transaction's tenant retires, oldest
    /// first, and returns how many; call it, each time in a transaction of its own, until it returns 0. As
    /// rowlock_owner. Reads no more than it drops. Locks the dropped entries and not the state row, so others may
    /// append meanwhile. Throws ServerError RL009 where that entry retires none.
    [[nodiscard]] static std::int64_t drop_retired(Transaction& transaction, std::int64_t retired_by,
                                                   std::int64_t entries_max);

    /// All tenants that have a state row or entries, in order, that the role can see.
    [[nodiscard]] static std::vector<TenantId> tenants(Transaction& transaction);

    struct Implementation;
    /// For src/audit.
    [[nodiscard]] const Implementation& implementation() const noexcept { return *implementation_; }

  private:
    std::unique_ptr<const Implementation> implementation_;
};

}  // namespace rowlock
