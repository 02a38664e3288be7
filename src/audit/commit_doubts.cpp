#include "audit/commit_doubts.hpp"

#include <fmt/format.h>

#include "rowlock/error.hpp"

namespace rowlock {

namespace {

/// A commit in doubt is sent again this often.
constexpr int doubts_max = 10;

}  // namespace

std::vector<AppendOutcome> append_past_doubts(const std::function<std::vector<AppendOutcome>()>& append) {
    for (int doubts = 0;; ++doubts) {
        try {
            std::vector<AppendOutcome> outcomes = append();
            for (AppendOutcome& outcome : outcomes) {
                const auto* const there = std::get_if<AlreadyAppended>(&outcome);
                if (doubts > 0 && there != nullptr) outcome = Appended{there->seq};
            }
            return outcomes;
        } catch (const CommitOutcomeUnknown&) {
            if (doubts == doubts_max) throw;
        } catch (const ConnectionError& lost) {
            if (doubts == 0) throw;
            throw CommitOutcomeUnknown(fmt::format(
                "the connection was lost while the server committed, and could not be had again: {}", lost.what()));
        }
    }
}

}  // namespace rowlock
