// Breaks that an entry of the log acknowledges, told apart from those that none does. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "audit/chain_findings.hpp"
#include "audit/frame.hpp"
#include "rowlock/audit_log.hpp"

namespace rowlock {

/// Is shown the true entries of a chain, in order, and then what was found. An acknowledgement takes out of it exactly
/// the numbers that it names, if all of them are found, the break is of the same class, and the same bytes still stand
/// there: a further break beside it, or another at the same place, is left.
class Acknowledgements {
  public:
    void see(const SignedEntry& entry);

    /// What is left of `found`, which must be in order of seq.
    [[nodiscard]] std::vector<FoundAt> left_of(std::vector<FoundAt> found);
    /// The same where no HMAC can be checked and the log's entries are vouched for by a signature: what of them was bad
    /// is then known from the acknowledgements alone, and the entry behind a bad one need not follow it. `first`: the
    /// first entry that there is.
    [[nodiscard]] std::vector<FoundAt> left_without_keys(std::vector<FoundAt> found, std::int64_t first);

    [[nodiscard]] const std::vector<Acknowledgement>& all() const noexcept { return all_; }

  private:
    std::vector<Acknowledgement> all_;
};

}  // namespace rowlock
