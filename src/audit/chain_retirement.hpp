// A chain whose first entries have been dropped, and the entry that says so. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "audit/chain_findings.hpp"
#include "audit/own_entries.hpp"

namespace rowlock {

/// Is shown the true entries of a chain, in order. Entries at the beginning may be missing as far as an entry further
/// on retires them; what remains must follow the last one retired, in MAC and key. An older retirement than the last
/// one may stand in the log, too: it retires less.
class RetiredPrefix {
  public:
    /// Entries 1 … last are not there.
    void lacks_up_to(std::int64_t last) { lacking_ = last; }
    void see(const SignedEntry& entry);
    /// To be called once.
    [[nodiscard]] std::vector<FoundAt> finish();

    /// Of those that are not there, how many are retired: 1 … so many.
    [[nodiscard]] std::int64_t retired_through() const noexcept { return retired_through_; }
    /// The entry that says so; nothing where nothing is lacking, or no entry says so.
    [[nodiscard]] const std::optional<Retirement>& retirement() const noexcept { return last_; }

  private:
    /// The first entry behind what is lacking.
    struct Remaining {
        std::vector<std::byte> prev_mac;
        std::string key_id;
        Digest hash{};  ///< entry_hash.
    };

    std::int64_t lacking_ = 0;
    std::int64_t retired_through_ = 0;
    std::optional<Remaining> remaining_;
    std::optional<Retirement> last_;
};

}  // namespace rowlock
