#include "rowlock/sealer.hpp"

#include <algorithm>

#include "rowlock/error.hpp"

namespace rowlock {

Sealer::Sealer(Database& database, const AuditLog& log, SealerOptions options)
    : database_(database), log_(log), options_(std::move(options)) {}

SealRound Sealer::round(const std::function<bool()>& stop) {
    SealRound round;
    TransactionPolicy reading = options_.policy;
    reading.tenant.reset();
    auto tenants = database_.transact(reading, staged_tenants);
    // Each round begins somewhere else, so that no tenant is always the last when rounds are cut short.
    if (!tenants.empty()) {
        std::ranges::rotate(tenants, tenants.begin() + static_cast<std::ptrdiff_t>(rounds_++ % tenants.size()));
    }
    for (const TenantId& tenant : tenants) {
        if (stop && stop()) {
            round.sealed.more = true;
            break;
        }
        ++round.tenants;
        seal(tenant, round);
    }
    std::erase_if(misses_,
                  [&](const auto& missed) { return std::ranges::find(tenants, missed.first) == tenants.end(); });
    return round;
}

void Sealer::seal(const TenantId& tenant, SealRound& round) {
    TransactionPolicy policy = options_.policy;
    policy.tenant = tenant;
    const auto missed = misses_.find(tenant);
    if (missed == misses_.end() || missed->second < options_.misses_max) policy.lock_wait_max = LockWait::skip_locked();
    try {
        const SealOutcome outcome = database_.transact(
            policy, [&](Transaction& transaction) { return seal_staged(transaction, log_, options_.limits); });
        if (const auto* const sealed = std::get_if<Sealed>(&outcome)) {
            round.sealed.appended += sealed->appended;
            round.sealed.already_there += sealed->already_there;
            round.sealed.quarantined += sealed->quarantined;
            round.sealed.more |= sealed->more;
            misses_.erase(tenant);
            return;
        }
    } catch (const Busy&) {
        // Still taken at the limit; the next round waits again.
    } catch (const CommitOutcomeUnknown&) {
        // Sealed or not: what is still staged says which, in the next round.
    } catch (const ServerError& error) {
        round.faults.push_back({tenant, error.what()});
        return;
    } catch (const SetupError& error) {
        round.faults.push_back({tenant, error.what()});
        return;
    }
    ++misses_[tenant];
    round.sealed.more = true;
}

}  // namespace rowlock
