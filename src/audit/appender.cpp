#include "rowlock/appender.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <span>
#include <thread>

#include "audit/append_queue.hpp"
#include "audit/commit_doubts.hpp"
#include "base/contract.hpp"
#include "postgres/sqlstate.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

void require_limits(const AppenderOptions& options) {
    if (std::min({options.writers, options.batch_entries_max, options.batch_bytes_max, options.pending_max}) == 0) {
        throw InvalidInput("an appender needs at least one writer, and room for at least one entry");
    }
}

}  // namespace

struct Appender::Implementation {
    Implementation(Database& database_to_use, const AuditLog& log_to_use, const AppenderOptions& limits)
        : database(database_to_use),
          log(log_to_use),
          options(limits),
          queue(limits.batch_entries_max, limits.batch_bytes_max) {
        writers.reserve(options.writers);
        for (std::size_t i = 0; i < options.writers; ++i) writers.emplace_back([this] { write_what_comes(); });
    }

    void close() {
        {
            const std::lock_guard lock(mutex);
            closed = true;
        }
        work.notify_all();
        for (std::thread& writer : writers) {
            if (writer.joinable()) writer.join();
        }
    }

    std::future<AppendOutcome> add(const TenantId& tenant, AuditEntry entry) {
        WaitingEntry waiting{std::move(entry), {}};
        auto outcome = waiting.outcome.get_future();
        bool has_turn = false;
        {
            std::unique_lock lock(mutex);
            room.wait(lock, [&] { return pending < options.pending_max; });
            contract(!closed, "an appender that is closed takes no more entries");
            ++pending;
            has_turn = queue.add(tenant, std::move(waiting));
        }
        if (has_turn) work.notify_one();
        return outcome;
    }

    /// A writer is woken for a turn and for the end, not for each entry: a crowd would wake one in vain with every
    /// append.
    void write_what_comes() {
        std::unique_lock lock(mutex);
        while (true) {
            work.wait(lock, [&] { return queue.has_turn() || (closed && queue.empty()); });
            auto batch = queue.take();
            if (!batch) return;
            if (queue.has_turn()) work.notify_one();
            lock.unlock();
            write(*batch);
            lock.lock();
            pending -= batch->entries.size();
            queue.done(batch->tenant);
            room.notify_all();
            if (closed && queue.empty()) work.notify_all();
        }
    }

    /// Settles every entry of the batch. One that can't be stored is found by halving what it is in.
    void write(AppendBatch& batch) {
        std::vector<std::span<WaitingEntry>> parts{batch.entries};  // the first to do is at the back
        while (!parts.empty()) {
            const std::span<WaitingEntry> part = parts.back();
            parts.pop_back();
            const std::exception_ptr refusal = try_write(batch.tenant, part);
            if (!refusal) continue;
            if (part.size() == 1) {
                part.front().outcome.set_exception(refusal);
            } else {
                parts.push_back(part.subspan(part.size() / 2));
                parts.push_back(part.first(part.size() / 2));
            }
        }
    }

    /// Gives back why the server or the log did not take what it was given; whatever else happens is settled here.
    std::exception_ptr try_write(const TenantId& tenant, std::span<WaitingEntry> part) {
        try {
            const auto outcomes = append(tenant, part);
            for (std::size_t i = 0; i < part.size(); ++i) part[i].outcome.set_value(outcomes[i]);
            return nullptr;
        } catch (const InvalidInput&) {
            return std::current_exception();
        } catch (const ServerError& error) {
            if (is_about_the_input(error.sqlstate())) return std::current_exception();
            fail(part);
        } catch (...) {
            fail(part);
        }
        return nullptr;
    }

    static void fail(std::span<WaitingEntry> part) {
        for (WaitingEntry& waiting : part) waiting.outcome.set_exception(std::current_exception());
    }

    std::vector<AppendOutcome> append(const TenantId& tenant, std::span<WaitingEntry> part) {
        std::vector<TenantEntry> entries;
        entries.reserve(part.size());
        for (const WaitingEntry& waiting : part) entries.push_back({tenant, waiting.entry});
        TransactionPolicy policy = options.policy;
        policy.tenant = tenant;
        return append_past_doubts([&] {
            return database.transact(policy,
                                     [&](Transaction& transaction) { return log.append_all(transaction, entries); });
        });
    }

    Database& database;
    const AuditLog& log;
    const AppenderOptions options;
    std::mutex mutex;
    std::condition_variable work;  ///< Something to write, or the end.
    std::condition_variable room;  ///< Something was settled.
    AppendQueue queue;
    std::size_t pending = 0;
    bool closed = false;
    std::vector<std::thread> writers;  ///< Last: they use the rest.
};

Appender::Appender(Database& database, const AuditLog& log, const AppenderOptions& options) {
    require_limits(options);
    implementation_ = std::make_unique<Implementation>(database, log, options);
}

Appender::~Appender() {
    implementation_->close();
}

std::future<AppendOutcome> Appender::append(const TenantId& tenant, AuditEntry entry) {
    return implementation_->add(tenant, std::move(entry));
}

void Appender::close() {
    implementation_->close();
}

}  // namespace rowlock
