// A database with the schema and an audit log: those who append to it, and one who may do anything.
#pragma once

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "rowlock/audit_log.hpp"
#include "rowlock/database.hpp"
#include "rowlock/schema.hpp"
#include "support/environment.hpp"
#include "support/test_database.hpp"

namespace rowlock {

using test::full_or;

inline TransactionPolicy of(const std::string& tenant,
                            std::chrono::milliseconds lock_wait_max = std::chrono::seconds(120)) {
    return {.tenant = TenantId(tenant), .lock_wait_max = lock_wait_max, .deadline = std::chrono::seconds(300)};
}

/// "appended 3", "already 3" or "taken 3".
inline std::string said(const AppendOutcome& outcome) {
    if (const auto* const appended = std::get_if<Appended>(&outcome)) return fmt::format("appended {}", appended->seq);
    if (const auto* const known = std::get_if<AlreadyAppended>(&outcome)) return fmt::format("already {}", known->seq);
    return fmt::format("taken {}", std::get<EntryIdTaken>(outcome).seq);
}

inline std::string said(const std::vector<AppendOutcome>& outcomes) {
    std::string all;
    for (const AppendOutcome& outcome : outcomes) all += fmt::format("{}{}", all.empty() ? "" : ", ", said(outcome));
    return all;
}

/// The verdict and the number of entries, then each finding as "kind first-last>belongs_at".
inline std::string told(const Verification& verification) {
    constexpr std::array<std::string_view, 6> verdicts{"intact", "tampered",    "unverifiable",
                                                       "empty",  "rolled_back", "acknowledged"};
    std::string text =
        fmt::format("{} {}", verdicts.at(static_cast<std::size_t>(verification.verdict)), verification.entries);
    for (const Finding& finding : verification.findings) {
        text += fmt::format(", {} {}", name_of(finding.kind), finding.seq);
        if (finding.last_seq != finding.seq) text += fmt::format("-{}", finding.last_seq);
        if (finding.belongs_at) text += fmt::format(">{}", *finding.belongs_at);
    }
    return text;
}

/// What a thread throws would end the whole program.
inline void report_fault(const std::function<void()>& body) {
    try {
        body();
    } catch (const std::exception& fault) {
        ADD_FAILURE() << "a thread ended with: " << fault.what();
    }
}

/// Runs `body(number)` in this many threads and waits for all.
inline void in_threads(int count, const std::function<void(int)>& body) {
    std::vector<std::thread> threads;
    for (int number = 0; number < count; ++number) {
        threads.emplace_back([&body, number] { report_fault([&] { body(number); }); });
    }
    for (std::thread& thread : threads) thread.join();
}

class AuditTest : public testing::Test {
  protected:
    static constexpr std::size_t connections_max = 40;

    void SetUp() override {
        superuser_.transact({.lock_wait_max = std::chrono::seconds(60)}, install_schema);
        server_.execute("GRANT rowlock_app TO " + login_.role);
        app_.emplace(DatabaseOptions{.connection = server_.connection_as(login_), .connections_max = connections_max});
        beside_.emplace(server_.connection_as(login_));
    }
    void TearDown() override {
        app_.reset();
        beside_.reset();
    }

    AppendOutcome append_on(Database& database, const TransactionPolicy& policy, const AuditEntry& entry) const {
        return database.transact(policy, [&](Transaction& transaction) { return log_.append(transaction, entry); });
    }
    AppendOutcome append(const std::string& tenant, const AuditEntry& entry = {}) {
        return append_on(*app_, of(tenant), entry);
    }
    void append_many(const std::string& tenant, int count) {
        std::vector<TenantEntry> entries;
        for (int i = 0; i < count; ++i) {
            entries.push_back({TenantId(tenant), {.actor = "writer", .action = "count", .data = std::to_string(i)}});
        }
        app_->transact(of(tenant), [&](Transaction& transaction) {
            EXPECT_EQ(log_.append_all(transaction, entries).size(), entries.size());
        });
    }
    std::vector<StoredEntry> list(const std::string& tenant) {
        constexpr std::int64_t all = 1'000'000'000;
        return app_->transact(of(tenant),
                              [&](Transaction& transaction) { return AuditLog::list(transaction, 1, all); });
    }

    Verification verify(const std::string& tenant, const VerifyOptions& options = {}) {
        return superuser_.transact(
            {}, [&](Transaction& transaction) { return log_.verify(transaction, TenantId(tenant), options); });
    }
    std::string verified(const std::string& tenant) { return told(verify(tenant)); }

    /// 1 … count, each once, as the rows themselves, the state row and the chain say.
    void expect_gapless(const std::string& tenant, std::int64_t count) {
        EXPECT_EQ(
            server_.value(fmt::format("SELECT format('%s %s %s %s', count(*), count(DISTINCT seq), min(seq), max(seq))"
                                      "  FROM rowlock.audit_log WHERE tenant_id = '{}'",
                                      tenant)),
            fmt::format("{0} {0} 1 {0}", count))
            << tenant;
        EXPECT_EQ(server_.value(fmt::format("SELECT last_seq FROM rowlock.tenant_seq WHERE tenant_id = '{}'", tenant)),
                  std::to_string(count));
        EXPECT_EQ(verified(tenant), fmt::format("intact {}", count)) << tenant;
    }
    /// Every row of the log and of the state, as one text to compare.
    [[nodiscard]] std::string everything() const {
        return server_.value(
            "SELECT (SELECT string_agg(l::text, E'\\n' ORDER BY tenant_id, seq)"
            "          FROM rowlock.audit_log AS l)"
            "    || (SELECT string_agg(s::text, E'\\n' ORDER BY tenant_id)"
            "          FROM rowlock.tenant_seq AS s)");
    }

    test::TestDatabase server_;
    const test::TestLogin login_ = server_.add_login("shop");
    Database superuser_{server_.connection()};
    std::optional<Database> app_;
    /// For what happens beside an open transaction of the same thread.
    std::optional<Database> beside_;
    Keyring keyring_ = Keyring::generate();
    AuditLog log_{keyring_};
};

}  // namespace rowlock
