#include "rowlock/lifecycle.hpp"

namespace rowlock {

namespace {

/// `retire` and the report's matching list.
void retire_one(Database& database, const Lifecycle& lifecycle, const RowKey& parent, const TransactionPolicy& policy,
                RetireReport& report) {
    RetireOutcome outcome =
        database.transact(policy, [&](Transaction& transaction) { return lifecycle.retire(transaction, parent); });
    if (auto* const cascade = std::get_if<Cascade>(&outcome)) {
        report.done.push_back({parent, std::move(cascade->earlier_counts)});
    } else if (std::holds_alternative<AlreadyRetired>(outcome)) {
        report.already_retired.push_back(parent);
    } else {
        report.missing.push_back(parent);
    }
}

}  // namespace

RetireReport retire_each(Database& database, const Lifecycle& lifecycle, std::span<const RowKey> parents,
                         const RetireBatchOptions& options) {
    TransactionPolicy policy = options.policy;
    policy.name_blockers = true;
    RetireReport report;
    for (std::size_t i = 0; i < parents.size(); ++i) {
        if (options.is_interrupted && options.is_interrupted()) {
            report.not_tried.assign(parents.begin() + static_cast<std::ptrdiff_t>(i), parents.end());
            break;
        }
        try {
            retire_one(database, lifecycle, parents[i], policy, report);
        } catch (const Busy& busy) {
            report.busy.push_back({parents[i], busy.blockers()});
        } catch (const ServerError& refused) {
            report.failed.push_back({parents[i], refused.what()});
        }
        if (options.progress) options.progress(i + 1, report);
    }
    return report;
}

}  // namespace rowlock
