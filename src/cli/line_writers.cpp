#include "cli/line_writers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "audit/commit_doubts.hpp"
#include "base/hash.hpp"
#include "postgres/sqlstate.hpp"
#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

constexpr std::size_t batch_entries_max = 256;
constexpr std::size_t batch_bytes_max = std::size_t{1} << 20U;
/// A writer may be this far behind the reader: enough to fill its next batches, little enough to stay in memory.
constexpr std::size_t waiting_entries_max = 1024;
constexpr std::size_t waiting_bytes_max = std::size_t{8} << 20U;
/// Undoes a transaction in which the id of this entry turned out to be taken.
struct IdTaken {
    std::size_t at;
    std::int64_t seq;
};

std::string about_taken(const TenantEntry& given, std::int64_t seq) {
    return fmt::format("entry_id {} is there with other content, as entry {} of tenant {}", given.entry.id.text(), seq,
                       given.tenant.text());
}

}  // namespace

LineWriters::LineWriters(Database& database, const AuditLog& log, int writers, bool skip_bad)
    : database_(database), log_(log), skip_bad_(skip_bad) {
    for (int i = 0; i < writers; ++i) writers_.push_back(std::make_unique<Writer>());
    for (auto& writer : writers_) writer->thread = std::thread([this, &target = *writer] { run(target); });
}

LineWriters::~LineWriters() {
    {
        const std::lock_guard lock(mutex_);
        no_more_ = true;
    }
    changed_.notify_all();
    for (auto& writer : writers_) {
        if (writer->thread.joinable()) writer->thread.join();
    }
}

bool LineWriters::past_stop(const NumberedEntry& entry) const {
    return entry.place > stop_at_ || totals_.fault != nullptr;
}

bool LineWriters::add(NumberedEntry entry) {
    std::unique_lock lock(mutex_);
    entry.place = ++given_;
    undone_.emplace(entry.place, entry.line);
    Writer& writer = *writers_[fnv1a_64(entry.entry.tenant.text()) % writers_.size()];
    changed_.wait(lock, [&] {
        return past_stop(entry) ||
               (writer.waiting.size() < waiting_entries_max && writer.waiting_bytes < waiting_bytes_max);
    });
    if (past_stop(entry)) return false;
    writer.waiting_bytes += entry.bytes;
    writer.waiting.push_back(std::move(entry));
    changed_.notify_all();
    return true;
}

WrittenLines LineWriters::finish() {
    {
        const std::lock_guard lock(mutex_);
        no_more_ = true;
    }
    changed_.notify_all();
    for (auto& writer : writers_) writer->thread.join();
    std::ranges::sort(totals_.refused, {}, &RefusedLine::line);
    if (!undone_.empty()) {
        const auto& [place, line] = *undone_.begin();
        totals_.first_undone = line;
        totals_.done_behind = given_ - place + 1 - static_cast<std::int64_t>(undone_.size());
    }
    return std::move(totals_);
}

std::int64_t LineWriters::done() const {
    const std::lock_guard lock(mutex_);
    return totals_.appended + totals_.already_there;
}

void LineWriters::run(Writer& writer) {
    try {
        while (true) {
            std::vector<NumberedEntry> batch = next_batch(writer);
            if (batch.empty()) return;
            write(std::move(batch));
        }
    } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!totals_.fault) totals_.fault = std::current_exception();
    }
    changed_.notify_all();
}

std::vector<NumberedEntry> LineWriters::next_batch(Writer& writer) {
    std::unique_lock lock(mutex_);
    std::vector<NumberedEntry> batch;
    std::size_t bytes = 0;
    while (batch.empty()) {
        changed_.wait(lock, [&] { return !writer.waiting.empty() || no_more_ || totals_.fault != nullptr; });
        if (writer.waiting.empty() || totals_.fault != nullptr) break;
        while (!writer.waiting.empty() && batch.size() < batch_entries_max && bytes < batch_bytes_max) {
            NumberedEntry& next = writer.waiting.front();
            bytes += next.bytes;
            writer.waiting_bytes -= next.bytes;
            if (!past_stop(next)) batch.push_back(std::move(next));
            writer.waiting.pop_front();
        }
    }
    changed_.notify_all();
    return batch;
}

void LineWriters::write(std::vector<NumberedEntry> batch) {
    // Parts still to do, the first at the back: a refused part is halved until the line stands alone.
    std::vector<std::vector<NumberedEntry>> parts;
    parts.push_back(std::move(batch));
    while (!parts.empty()) {
        std::vector<NumberedEntry> part = std::move(parts.back());
        parts.pop_back();
        {
            const std::lock_guard lock(mutex_);
            std::erase_if(part, [&](const NumberedEntry& e) { return past_stop(e); });
        }
        if (part.empty()) continue;
        auto refusal = try_write(part);
        if (!refusal) continue;
        if (part.size() == 1) refusal->at = 0;
        if (refusal->at) refuse(part[*refusal->at], std::move(refusal->reason));
        // Where the line is known, what stands before it and what behind it; else two halves.
        const std::size_t before = refusal->at.value_or(part.size() / 2);
        const std::size_t behind = refusal->at ? before + 1 : before;
        const auto at = [&](std::size_t place) { return part.begin() + static_cast<std::ptrdiff_t>(place); };
        parts.emplace_back(std::make_move_iterator(at(behind)), std::make_move_iterator(part.end()));
        part.erase(at(before), part.end());
        parts.push_back(std::move(part));
    }
}

std::vector<AppendOutcome> LineWriters::append(const std::vector<TenantEntry>& entries) {
    return database_.transact({}, [&](Transaction& transaction) {
        auto outcomes = log_.append_all(transaction, entries);
        for (std::size_t i = 0; i < outcomes.size() && !skip_bad_; ++i) {
            // The lines behind it must not be appended: they come again once it is corrected.
            if (const auto* const taken = std::get_if<EntryIdTaken>(&outcomes[i])) throw IdTaken{i, taken->seq};
        }
        return outcomes;
    });
}

std::optional<LineWriters::Refusal> LineWriters::try_write(const std::vector<NumberedEntry>& batch) {
    std::vector<TenantEntry> entries;
    entries.reserve(batch.size());
    for (const NumberedEntry& numbered : batch) entries.push_back(numbered.entry);
    try {
        count(batch, append_past_doubts([&] { return append(entries); }));
        return std::nullopt;
    } catch (const IdTaken& taken) {
        return Refusal{about_taken(entries[taken.at], taken.seq), taken.at};
    } catch (const InvalidInput& refused) {
        return Refusal{refused.what(), std::nullopt};
    } catch (const ServerError& refused) {
        if (!is_about_the_input(refused.sqlstate())) throw;
        return Refusal{refused.what(), std::nullopt};
    }
}

void LineWriters::count(const std::vector<NumberedEntry>& batch, const std::vector<AppendOutcome>& outcomes) {
    for (std::size_t i = 0; i < batch.size(); ++i) {
        if (const auto* const taken = std::get_if<EntryIdTaken>(&outcomes[i])) {
            refuse(batch[i], about_taken(batch[i].entry, taken->seq));
            continue;
        }
        const std::lock_guard lock(mutex_);
        ++(std::holds_alternative<Appended>(outcomes[i]) ? totals_.appended : totals_.already_there);
        undone_.erase(batch[i].place);
    }
}

void LineWriters::refuse(const NumberedEntry& entry, std::string reason) {
    {
        const std::lock_guard lock(mutex_);
        totals_.refused.push_back({entry.line, std::move(reason)});
        if (skip_bad_) {
            undone_.erase(entry.place);
        } else {
            stop_at_ = std::min(stop_at_, entry.place);
        }
    }
    changed_.notify_all();
}

}  // namespace rowlock::cli
