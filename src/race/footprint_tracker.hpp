// Follows one session through its transaction and says what each of its steps touched.
#pragma once

#include <string>
#include <vector>

#include "race/footprint.hpp"
#include "race/statement_analysis.hpp"

namespace rowlock::race {

/// A row of pg_locks that matters here.
struct HeldLock {
    ResourceId resource;
    LockModes modes;
    bool granted;
};

/// Which snapshots and conflicts the session's transactions have; the strongest that its text names.
enum class Isolation { read_committed, repeatable_read, serializable };

/// What was seen of one piece of SQL.
struct StatementFacts {
    const Analysis* analysis = nullptr;
    std::vector<HeldLock> locks{};  ///< Held or waited for afterwards, while the transaction was open.
    bool was_in_transaction = false;
    bool was_in_failed_transaction = false;
    bool failed = false;
    bool is_waiting = false;
    bool is_open_after = false;  ///< The transaction is still open.
    bool was_wrapped = false;    ///< Sent between a BEGIN and a COMMIT of ours, so that its locks could be seen.
    bool committed = false;      ///< The transaction ended here, and what it wrote can be seen.
};

class FootprintTracker {
  public:
    FootprintTracker(const Catalog& catalog, Isolation isolation, bool reads_surroundings)
        : catalog_(&catalog), isolation_(isolation), reads_surroundings_(reads_surroundings) {}

    /// To the state of a new connection.
    void restart();
    /// After a ROLLBACK that was no step.
    void forget_transaction();
    /// The footprint of what was seen; call it again for the same statement when it has waited and gone on.
    [[nodiscard]] Footprint take(const StatementFacts& facts);

    /// What the transaction holds, as last seen.
    [[nodiscard]] const ResourceSet& held() const noexcept { return held_; }

  private:
    [[nodiscard]] bool touches(const Analysis& analysis, const HeldLock& lock) const;
    void add_relation_lock(const Analysis& analysis, const HeldLock& lock, Footprint& footprint) const;
    void add_end_of_transaction(bool committed, Footprint& footprint);

    const Catalog* catalog_;
    Isolation isolation_;
    bool reads_surroundings_;
    bool has_snapshot_ = false;
    ResourceSet held_{};   ///< As last seen.
    ResourceSet taken_{};  ///< Everything that the transaction locked.
    ResourceSet written_{};
    ResourceSet advisory_{};  ///< Every advisory lock seen, since those of the session outlive a transaction.
};

}  // namespace rowlock::race
