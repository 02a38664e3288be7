// The list of what a verification found.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "audit/frame.hpp"
#include "crypto/sha256.hpp"
#include "rowlock/audit_log.hpp"

namespace rowlock {

/// One thing found, without the tenant that all of them share.
struct FoundAt {
    FindingKind kind;
    std::int64_t seq;
    std::int64_t last_seq;
    std::optional<std::int64_t> belongs_at;
    std::string detail;
    /// One for each entry of the run (entry_hash, link_hash), of which an acknowledgement's evidence is made; none
    /// where nothing stands there, and where there are too many to keep.
    std::vector<Digest> hashes{};
};

/// Whether two kinds tell of the same break, seen with other keys at hand or with more or less time to look.
enum class BreakClass {
    entry,  ///< What stands there is not the entry that was signed for this place.
    link,   ///< A true entry that does not follow the one before it.
    gap,    ///< Nothing stands there.
};
/// Nothing for what no entry can acknowledge.
[[nodiscard]] std::optional<BreakClass> class_of(FindingKind kind);

/// An entry as it stands, MAC and all: SHA-256 over a frame of ten fields.
[[nodiscard]] Digest entry_hash(const SignedEntry& entry);
/// The same with the MAC that the entry should have followed.
[[nodiscard]] Digest link_hash(const Mac& before, const Digest& entry);
/// Are all hashes of the run there?
[[nodiscard]] bool has_hashes(const FoundAt& found);
/// Of a finding, or nothing: SHA-256 over its hashes.
[[nodiscard]] std::optional<Digest> evidence_of(const FoundAt& found);

class Acknowledgements;

/// Takes findings, kind by kind in order of seq, joins runs of one kind, and keeps at most Verification::findings_max.
class FindingList {
  public:
    explicit FindingList(TenantId tenant) : tenant_(std::move(tenant)) {}

    void add(FoundAt found);
    /// Moves the findings, in order of seq, into the verification, but for those that are acknowledged.
    void finish(Verification& verification, Acknowledgements& acknowledgements);
    /// All findings that were kept, in order of seq.
    [[nodiscard]] std::vector<FoundAt> take();

  private:
    static constexpr std::size_t kinds = 14;
    static constexpr std::size_t hashes_max = 65536;

    void close(std::optional<FoundAt>& run);

    TenantId tenant_;
    std::array<std::optional<FoundAt>, kinds> runs_;
    std::vector<FoundAt> kept_;
    std::int64_t total_ = 0;
    std::size_t hashes_left_ = hashes_max;
};

}  // namespace rowlock
