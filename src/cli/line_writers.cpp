#include "cli/line_writers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/hash.hpp"
#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

constexpr std::size_t batch_entries_max = 256;
constexpr std::size_t batch_bytes_max = std::size_t{1} << 20U;
/// A writer may be this far behind the reader: enough to fill its next batches, little enough to stay in memory.
constexpr std::size_t waiting_entries_max = 1024;
constexpr std::size_t waiting_bytes_max = std::size_t{8} << 20U;
/// A commit in doubt is sent again, with the same entry ids, this often.
constexpr int doubts_max = 10;

/// True where the server says that this input can't be stored: data exceptions, constraints, limits.
bool is_about_the_input(const ServerError& error) {
    const std::string_view code = error.sqlstate();
    return code.starts_with("22") || code.starts_with("23") || code.starts_with("54");
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
    return entry.place > stop_at_ || fault_ != nullptr;
}

bool LineWriters::add(NumberedEntry entry) {
    std::unique_lock lock(mutex_);
    entry.place = ++given_;
    Writer& writer = *writers_[fnv1a_64(entry.entry.tenant.text()) % writers_.size()];
    changed_.wait(lock, [&] {
        return past_stop(entry) ||
               (writer.waiting.size() < waiting_entries_max && writer.waiting_bytes < waiting_bytes_max);
    });
    if (past_stop(entry)) {
        ++totals_.dropped;
        return false;
    }
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
    if (fault_) std::rethrow_exception(fault_);
    std::ranges::sort(totals_.refused, {}, &RefusedLine::line);
    // Everything before the stop is done, so what is done beyond that count was behind it.
    if (stop_at_ <= given_) totals_.appended_after_stop = totals_.appended + totals_.already_there - (stop_at_ - 1);
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
        if (!fault_) fault_ = std::current_exception();
    }
    changed_.notify_all();
}

std::vector<NumberedEntry> LineWriters::next_batch(Writer& writer) {
    std::unique_lock lock(mutex_);
    std::vector<NumberedEntry> batch;
    std::size_t bytes = 0;
    while (batch.empty()) {
        changed_.wait(lock, [&] { return !writer.waiting.empty() || no_more_ || fault_ != nullptr; });
        if (writer.waiting.empty() || fault_ != nullptr) break;
        while (!writer.waiting.empty() && batch.size() < batch_entries_max && bytes < batch_bytes_max) {
            NumberedEntry& next = writer.waiting.front();
            bytes += next.bytes;
            writer.waiting_bytes -= next.bytes;
            if (past_stop(next)) {
                ++totals_.dropped;
            } else {
                batch.push_back(std::move(next));
            }
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
            const auto dropped = std::erase_if(part, [&](const NumberedEntry& e) { return past_stop(e); });
            totals_.dropped += static_cast<std::int64_t>(dropped);
        }
        if (part.empty()) continue;
        auto reason = try_write(part);
        if (!reason) continue;
        if (part.size() == 1) {
            refuse(part.front(), std::move(*reason));
            continue;
        }
        const auto middle = part.begin() + static_cast<std::ptrdiff_t>(part.size() / 2);
        parts.emplace_back(std::make_move_iterator(middle), std::make_move_iterator(part.end()));
        part.erase(middle, part.end());
        parts.push_back(std::move(part));
    }
}

std::optional<std::string> LineWriters::try_write(const std::vector<NumberedEntry>& batch) {
    std::vector<TenantEntry> entries;
    entries.reserve(batch.size());
    for (const NumberedEntry& numbered : batch) entries.push_back(numbered.entry);
    for (int doubts = 0;; ++doubts) {
        try {
            const auto outcomes =
                database_.transact({}, [&](Transaction& transaction) { return log_.append_all(transaction, entries); });
            count(batch, outcomes, doubts > 0);
            return std::nullopt;
        } catch (const CommitOutcomeUnknown&) {
            // The same entry ids again: what was committed is found, what was not is appended.
            if (doubts == doubts_max) throw;
        } catch (const InvalidInput& refused) {
            return refused.what();
        } catch (const ServerError& refused) {
            if (!is_about_the_input(refused)) throw;
            return refused.what();
        }
    }
}

void LineWriters::count(const std::vector<NumberedEntry>& batch, const std::vector<AppendOutcome>& outcomes,
                        bool sent_before) {
    for (std::size_t i = 0; i < batch.size(); ++i) {
        if (const auto* const taken = std::get_if<EntryIdTaken>(&outcomes[i])) {
            refuse(batch[i], fmt::format("entry_id {} is there with other content, as entry {} of tenant {}",
                                         batch[i].entry.entry.id.text(), taken->seq, batch[i].entry.tenant.text()));
            continue;
        }
        const std::lock_guard lock(mutex_);
        const bool by_us = sent_before || std::holds_alternative<Appended>(outcomes[i]);
        ++(by_us ? totals_.appended : totals_.already_there);
    }
}

void LineWriters::refuse(const NumberedEntry& entry, std::string reason) {
    {
        const std::lock_guard lock(mutex_);
        totals_.refused.push_back({entry.line, std::move(reason)});
        if (!skip_bad_) stop_at_ = std::min(stop_at_, entry.place);
    }
    changed_.notify_all();
}

}  // namespace rowlock::cli
