#include "race/waiter.hpp"

#include <algorithm>
#include <set>

namespace rowlock::race {

std::vector<std::size_t> in_cycles(std::span<const Waiter> waiters) {
    std::vector<std::size_t> found;
    for (const Waiter& start : waiters) {
        std::set<std::size_t> seen;
        std::vector<std::size_t> open(start.blocked_by);
        while (!open.empty()) {
            const std::size_t session = open.back();
            open.pop_back();
            if (!seen.insert(session).second) continue;
            const auto at = std::ranges::find(waiters, session, &Waiter::session);
            if (at != waiters.end()) open.insert(open.end(), at->blocked_by.begin(), at->blocked_by.end());
        }
        if (seen.contains(start.session)) found.push_back(start.session);
    }
    std::ranges::sort(found);
    return found;
}

}  // namespace rowlock::race
