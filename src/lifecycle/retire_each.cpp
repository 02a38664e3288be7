#include <algorithm>

#include "base/contract.hpp"
#include "rowlock/lifecycle.hpp"

namespace rowlock {

namespace {

class RetireBatch {
  public:
    RetireBatch(Database& database, const Lifecycle& lifecycle, const RetireBatchOptions& options)
        : database_(database), lifecycle_(lifecycle), options_(options) {}

    RetireReport run(std::span<const RowKey> parents) {
        std::size_t tried = 0;
        while (tried < parents.size()) {
            const std::span<const RowKey> left = parents.subspan(tried);
            if (options_.is_interrupted && options_.is_interrupted()) {
                report_.not_tried.assign(left.begin(), left.end());
                break;
            }
            const std::span<const RowKey> next = left.first(std::min(options_.parents_per_transaction, left.size()));
            if (next.size() == 1) {
                retire_alone(next.front());
            } else {
                for (const RowKey& parent : retire_together(next)) retire_alone(parent);
            }
            tried += next.size();
            if (options_.progress) options_.progress(tried, report_);
        }
        return std::move(report_);
    }

  private:
    struct Retired {
        RowKey parent;
        RetireOutcome outcome;
    };
    struct Together {
        std::vector<Retired> retired;
        std::vector<RowKey> left;
    };

    void retire_alone(const RowKey& parent) {
        TransactionPolicy policy = options_.policy;
        policy.name_blockers = true;
        try {
            add({parent, database_.transact(policy, [&](Transaction& transaction) {
                     return lifecycle_.retire(transaction, parent);
                 })});
        } catch (const Busy& busy) {
            report_.busy.push_back({parent, busy.blockers()});
        } catch (const ServerError& refused) {
            report_.failed.push_back({parent, refused.what()});
        }
    }

    /// Those that have to be tried alone.
    std::vector<RowKey> retire_together(std::span<const RowKey> parents) {
        TransactionPolicy policy = options_.policy;
        policy.lock_wait_max = LockWait::no_wait();
        Together together;
        try {
            together = database_.transact(
                policy, [&](Transaction& transaction) { return try_in_savepoints(transaction, parents); });
        } catch (const ServerError&) {
            return {parents.begin(), parents.end()};
        }
        for (Retired& one : together.retired) add(std::move(one));
        return std::move(together.left);
    }

    Together try_in_savepoints(Transaction& transaction, std::span<const RowKey> parents) {
        Together together;
        for (const RowKey& parent : parents) {
            if (auto outcome = try_in_savepoint(transaction, parent)) {
                together.retired.push_back({parent, std::move(*outcome)});
            } else {
                together.left.push_back(parent);
            }
        }
        return together;
    }

    std::optional<RetireOutcome> try_in_savepoint(Transaction& transaction, const RowKey& parent) {
        try {
            return transaction.savepoint([&] { return lifecycle_.retire(transaction, parent); });
        } catch (const Busy&) {
            return std::nullopt;
        } catch (const ServerError& refused) {
            // A deadlock or a serialization failure is of the whole transaction.
            if (refused.recovery() != Recovery::give_up) throw;
            return std::nullopt;
        }
    }

    void add(Retired one) {
        if (auto* const cascade = std::get_if<Cascade>(&one.outcome)) {
            report_.done.push_back({std::move(one.parent), std::move(cascade->earlier_counts)});
        } else if (std::holds_alternative<AlreadyRetired>(one.outcome)) {
            report_.already_retired.push_back(std::move(one.parent));
        } else {
            report_.missing.push_back(std::move(one.parent));
        }
    }

    Database& database_;
    const Lifecycle& lifecycle_;
    const RetireBatchOptions& options_;
    RetireReport report_;
};

}  // namespace

RetireReport retire_each(Database& database, const Lifecycle& lifecycle, std::span<const RowKey> parents,
                         const RetireBatchOptions& options) {
    contract(options.parents_per_transaction > 0, "retire_each: parents_per_transaction is 0");
    return RetireBatch(database, lifecycle, options).run(parents);
}

}  // namespace rowlock
