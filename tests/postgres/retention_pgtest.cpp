// Retention on a real log: who may drop what, and what is still found afterwards.
#include <fmt/core.h>
#include <gmock/gmock.h>

#include <utility>

#include "postgres/audit_fixture.hpp"
#include "rowlock/bundle.hpp"
#include "rowlock/checkpoint.hpp"
#include "rowlock/error.hpp"
#include "rowlock/signing_key.hpp"

namespace rowlock {
namespace {

using testing::HasSubstr;

class Retention : public AuditTest {
  protected:
    Checkpoint checkpoint() {
        return superuser_.transact({}, [](Transaction& transaction) { return read_checkpoint(transaction); });
    }
    RetirementOutcome retire(const Checkpoint& checkpoint, std::int64_t through, const AuditLog& log) {
        return owner_.transact(of("acme"), [&](Transaction& transaction) {
            return log.retire(transaction, checkpoint, {.through = through, .reason = "ten years are over"});
        });
    }
    /// The entry that retires them; 0 where they were not retired.
    std::int64_t retired(std::int64_t through) {
        const RetirementOutcome outcome = retire(checkpoint(), through, log_);
        const auto* const entries = std::get_if<EntriesRetired>(&outcome);
        EXPECT_NE(entries, nullptr) << through;
        return entries == nullptr ? 0 : entries->seq;
    }
    std::int64_t drop(std::int64_t retired_by, std::int64_t entries_max = 1'000'000) {
        return owner_.transact(of("acme"), [&](Transaction& transaction) {
            return AuditLog::drop_retired(transaction, retired_by, entries_max);
        });
    }
    std::string refused(const std::function<void()>& body) {
        try {
            body();
        } catch (const ServerError& refusal) {
            return refusal.sqlstate();
        }
        return "not refused";
    }

    Database owner_{DatabaseOptions{.connection = server_.connection(), .role = "rowlock_owner"}};
};

TEST_F(Retention, DropsAPrefixThatACheckpointCoversAndLeavesTheRestIntact) {
    append_many("acme", 30);
    append_many("globex", 3);
    const Checkpoint seen = checkpoint();
    append_many("acme", 5);
    const RetirementOutcome outcome = retire(seen, 20, log_);
    ASSERT_TRUE(std::holds_alternative<EntriesRetired>(outcome));
    EXPECT_EQ(std::get<EntriesRetired>(outcome).seq, 36);
    EXPECT_EQ(verified("acme"), "intact 36") << "nothing is dropped yet";
    EXPECT_EQ(drop(36, 7), 7);
    EXPECT_EQ(verified("acme"), "intact 29") << "half-way";
    EXPECT_EQ(drop(36, 7), 7);
    EXPECT_EQ(drop(36, 7), 6);
    EXPECT_EQ(drop(36, 7), 0);
    const Verification verification = verify("acme");
    EXPECT_EQ(told(verification), "intact 16");
    EXPECT_EQ(verification.retired_through, 20);
    EXPECT_EQ(verification.retired_by, 36);
    append_many("acme", 4);
    EXPECT_EQ(verified("acme"), "intact 20");
    EXPECT_EQ(verified("globex"), "intact 3");
    EXPECT_EQ(server_.value("SELECT last_seq FROM rowlock.tenant_seq WHERE tenant_id = 'acme'"), "40");
}

TEST_F(Retention, RaisesNoAlarmWhereTheKeyWasRotatedInWhatIsGoneAtTheCutAndAfter) {
    Keyring rotated = keyring_;
    for (int round = 0; round < 5; ++round) {
        const AuditLog log(rotated);
        app_->transact(of("acme"), [&](Transaction& transaction) {
            const std::vector<TenantEntry> two{{TenantId("acme"), {}}, {TenantId("acme"), {}}};
            static_cast<void>(log.append_all(transaction, two));
        });
        rotated = rotated.rotated();
    }
    const AuditLog log(rotated);
    for (std::int64_t through = 1; through <= 14; ++through) {
        const RetirementOutcome outcome = retire(checkpoint(), through, log);
        ASSERT_TRUE(std::holds_alternative<EntriesRetired>(outcome)) << through;
        EXPECT_EQ(drop(std::get<EntriesRetired>(outcome).seq), 1);
        const Verification verification = owner_.transact(
            of("acme"), [&](Transaction& transaction) { return log.verify(transaction, TenantId("acme")); });
        ASSERT_EQ(verification.verdict, Verdict::intact) << told(verification);
        EXPECT_EQ(verification.retired_through, through);
    }
}

TEST_F(Retention, RefusesWhatTheCheckpointDoesNotCoverAndALogThatIsNotIntact) {
    append_many("acme", 10);
    const Checkpoint seen = checkpoint();
    append_many("acme", 10);
    const auto reason = [&](std::int64_t through) {
        const RetirementOutcome outcome = retire(seen, through, log_);
        const auto* const against = std::get_if<EntriesNotRetired>(&outcome);
        return against == nullptr ? std::string("retired") : against->reason;
    };
    EXPECT_THAT(reason(11), HasSubstr("covers entries up to 10 only"));
    EXPECT_THROW(static_cast<void>(retire(seen, 0, log_)), InvalidInput);
    server_.execute(
        "ALTER TABLE rowlock.audit_log DISABLE TRIGGER ALL; UPDATE rowlock.audit_log SET actor = 'x' WHERE seq = 15");
    EXPECT_THAT(reason(5), HasSubstr("not intact"));
    server_.execute("UPDATE rowlock.audit_log SET actor = 'writer' WHERE seq = 15");
    EXPECT_EQ(reason(5), "retired");
    EXPECT_EQ(drop(21), 5);
    EXPECT_THAT(reason(5), HasSubstr("retired already"));
    EXPECT_EQ(reason(6), "retired");
}

TEST_F(Retention, DropsNothingThatNoEntryOfTheLogRetires) {
    append_many("acme", 10);
    EXPECT_EQ(refused([&] { drop(3); }), "RL009") << "an entry that retires none";
    EXPECT_EQ(refused([&] { drop(11); }), "RL009") << "an entry that is not there";
    ASSERT_EQ(retired(3), 11);
    EXPECT_EQ(refused([&] { drop(10); }), "RL009");
    EXPECT_EQ(drop(11), 3);
    EXPECT_EQ(drop(11), 0);
    append_many("acme", 4);
    // What an application may append itself, having no key: entries that retire what they may not.
    const auto forged = [&](const std::string& data) {
        server_.execute(fmt::format(
            "ALTER TABLE rowlock.audit_log DISABLE TRIGGER ALL; UPDATE rowlock.audit_log SET action ="
            " 'rowlock.retirement', data = replace('{}', '{{mac}}', (SELECT encode(mac, 'hex') FROM rowlock.audit_log"
            " WHERE seq = 14))::json WHERE seq = 13; ALTER TABLE rowlock.audit_log ENABLE ALWAYS TRIGGER only_grows",
            data));
        return refused([&] { drop(13); });
    };
    EXPECT_EQ(forged(R"({"through": 14, "mac": "{mac}"})"), "RL009") << "what stands behind it";
    EXPECT_EQ(forged(R"({"through": 9, "mac": "{mac}"})"), "RL009") << "with the MAC of another entry";
    EXPECT_EQ(forged(R"({"through": "99999999999999999999", "mac": "{mac}"})"), "RL009");
    EXPECT_EQ(forged(R"({"through": 9})"), "RL009");
    EXPECT_EQ(forged("[]"), "RL009");
    EXPECT_EQ(server_.value("SELECT format('%s %s', min(seq), count(*)) FROM rowlock.audit_log"), "4 12");
}

/// The entry that retires them is far behind what is dropped, and looking for it once took as long as the log is.
TEST_F(Retention, ReadsNoMoreOfTheLogThanItDrops) {
    append_many("globex", 2000);
    append_many("acme", 2000);
    const std::int64_t retired_by = retired(1000);
    constexpr std::int64_t few = 20;
    constexpr Statement reads{"test.reads",
                              "SELECT coalesce(sum(seq_tup_read + idx_tup_fetch), 0)::bigint"
                              "  FROM pg_stat_xact_user_tables WHERE relid = 'rowlock.audit_log'::regclass"};
    for (const char* statistics : {"SELECT 'none yet'", "ANALYZE rowlock.audit_log"}) {
        server_.execute(statistics);
        owner_.transact(of("acme"), [&](Transaction& transaction) {
            const std::int64_t before = transaction.execute(reads).only().integer(0);
            EXPECT_EQ(AuditLog::drop_retired(transaction, retired_by, 10), 10);
            EXPECT_LE(transaction.execute(reads).only().integer(0) - before, few) << statistics;
        });
    }
}

TEST_F(Retention, IsForTheOwnerAloneAndForTheTenantThatIsSet) {
    append_many("acme", 5);
    ASSERT_EQ(retired(3), 6);
    const auto drop_on = [&](Database& database, const TransactionPolicy& policy, const std::string& tenant) {
        return refused([&] {
            database.transact(policy, [&](Transaction& transaction) {
                transaction.execute({"test.drop", "SELECT rowlock.drop_retired_entries($1, 6, 10)"}, {tenant});
            });
        });
    };
    EXPECT_EQ(drop_on(*app_, of("acme"), "acme"), "42501");
    for (const char* role : {"rowlock_auditor", "rowlock_sealer", "rowlock_backup"}) {
        Database other(DatabaseOptions{.connection = server_.connection(), .role = role});
        EXPECT_EQ(drop_on(other, of("acme"), "acme"), "42501") << role;
    }
    EXPECT_EQ(drop_on(owner_, of("globex"), "acme"), "42501");
    EXPECT_EQ(drop_on(owner_, {}, "acme"), "42501");
    expect_gapless("acme", 6);
}

TEST_F(Retention, LeavesEveryOtherDeleteRefused) {
    append_many("acme", 5);
    ASSERT_EQ(retired(3), 6);
    const auto delete_as = [&](const std::string& role, const std::string& setting) {
        return refused([&] {
            superuser_.transact(of("acme"), [&](Transaction& transaction) {
                transaction.execute_script({"test.delete", (role.empty() ? "" : "SET LOCAL ROLE " + role + ";") +
                                                               setting +
                                                               "DELETE FROM rowlock.audit_log WHERE seq <= 3"});
            });
        });
    };
    EXPECT_EQ(delete_as("", ""), "RL002");
    EXPECT_EQ(delete_as("rowlock_owner", ""), "RL002");
    EXPECT_EQ(delete_as("", "SET LOCAL rowlock.retiring = 'yes';"), "RL002") << "the setting alone opens nothing";
    EXPECT_EQ(delete_as("rowlock_app", "SET LOCAL rowlock.retiring = 'yes';"), "42501");
    EXPECT_EQ(refused([&] {
                  owner_.transact(of("acme"), [&](Transaction& transaction) {
                      EXPECT_EQ(AuditLog::drop_retired(transaction, 6, 1), 1);
                      transaction.execute_script({"test.delete", "DELETE FROM rowlock.audit_log WHERE seq <= 3"});
                  });
              }),
              "RL002")
        << "the door is open for one statement only";
    expect_gapless("acme", 6);
}

TEST_F(Retention, HoldsNoLockThatAnAppendNeeds) {
    append_many("acme", 5);
    ASSERT_EQ(retired(3), 6);
    owner_.transact(of("acme"), [&](Transaction& transaction) {
        EXPECT_EQ(AuditLog::drop_retired(transaction, 6, 10), 3);
        EXPECT_EQ(said(append_on(*beside_, of("acme", std::chrono::seconds(2)), {})), "appended 7");
    });
    EXPECT_EQ(verified("acme"), "intact 4");
}

TEST_F(Retention, OfARemovedPrefixThatNobodyRetiredIsTampering) {
    append_many("acme", 10);
    EXPECT_EQ(drop(retired(3)), 3);
    server_.execute("ALTER TABLE rowlock.audit_log DISABLE TRIGGER ALL; DELETE FROM rowlock.audit_log WHERE seq <= 5");
    EXPECT_EQ(verified("acme"), "tampered 6, missing 4-5");
    server_.execute("DELETE FROM rowlock.audit_log WHERE seq = 11");
    EXPECT_EQ(verified("acme"), "tampered 5, missing 1-5, tail_missing 11");
}

/// Reads entry by entry while entries are dropped.
class RetentionBesideAReader : public Retention {
  protected:
    /// Runs `meanwhile` before each entry is read, with how many have been read.
    std::string verified_beside(const std::function<void(std::int64_t)>& meanwhile) {
        VerifyOptions options{.progress = {}, .chunk_entries = 1, .gives_way = false};
        options.progress = [meanwhile](std::int64_t done, std::int64_t /*all*/) { meanwhile(done); };
        return told(reader_.transact(
            {}, [&](Transaction& transaction) { return log_.verify(transaction, TenantId("acme"), options); }));
    }

    Database reader_{DatabaseOptions{.connection = server_.connection(), .role = "rowlock_auditor"}};
};

TEST_F(RetentionBesideAReader, RaisesNoAlarmWhereverTheReaderIs) {
    std::int64_t dropped = 0;
    for (std::int64_t at = 0; at < 10; ++at) {
        append_many("acme", 10);
        bool ran = false;
        const auto meanwhile = [&](std::int64_t done) {
            if (done != at || std::exchange(ran, true)) return;
            dropped += drop(retired(dropped + 6));
        };
        const std::string verification = verified_beside(meanwhile);
        ASSERT_TRUE(ran) << at;
        ASSERT_THAT(verification, testing::StartsWith("intact ")) << at;
        ASSERT_THAT(verified("acme"), testing::StartsWith("intact ")) << at;
    }
    EXPECT_EQ(dropped, 60);
}

TEST_F(RetentionBesideAReader, RaisesNoAlarmHoweverOftenItOvertakesTheReader) {
    append_many("acme", 40);
    const std::int64_t retired_by = retired(30);
    int overtaken = 0;
    const auto meanwhile = [&](std::int64_t done) {
        if (done == 1) overtaken += drop(retired_by, 3) > 0 ? 1 : 0;
    };
    EXPECT_EQ(verified_beside(meanwhile), "intact 11");
    EXPECT_EQ(overtaken, 10);
}

TEST_F(RetentionBesideAReader, RaisesNoAlarmInTheReadingForEntriesOfOtherTenantsEither) {
    append_many("acme", 12);
    append_many("globex", 1);
    const std::int64_t retired_by = retired(6);
    server_.execute(
        "ALTER TABLE rowlock.audit_log DISABLE TRIGGER ALL;"
        "UPDATE rowlock.audit_log SET actor = 'mallory' WHERE tenant_id = 'acme' AND seq = 12");
    int readings = 0;
    bool ran = false;
    const auto meanwhile = [&](std::int64_t done) {
        if (done == 0) ++readings;
        if (done != 1 || readings != 2 || std::exchange(ran, true)) return;
        EXPECT_EQ(drop(retired_by), 6);
    };
    EXPECT_EQ(verified_beside(meanwhile), "tampered 7, changed 12");
    EXPECT_EQ(readings, 3) << "the second one was overtaken";
}

TEST_F(RetentionBesideAReader, WhatIsRemovedWithoutItIsFound) {
    append_many("acme", 10);
    bool ran = false;
    const auto meanwhile = [&](std::int64_t done) {
        if (done != 3 || std::exchange(ran, true)) return;
        server_.execute(
            "ALTER TABLE rowlock.audit_log DISABLE TRIGGER ALL; DELETE FROM rowlock.audit_log WHERE seq <= 5");
    };
    EXPECT_EQ(verified_beside(meanwhile), "tampered 5, missing 1-5");
}

TEST_F(RetentionBesideAReader, EndsAnExportThatNeedsTheEntries) {
    append_many("acme", 10);
    bool ran = false;
    ExportOptions options;
    options.sink = [](std::span<const std::byte>) {};
    options.progress = [&](const TenantId&, std::int64_t, std::int64_t) {
        if (!std::exchange(ran, true)) drop(retired(5));
    };
    const SigningKey key = SigningKey::generate("test");
    const std::vector tenants{TenantId("acme")};
    const auto export_once = [&] {
        return reader_.transact({.attempts_max = 1}, [&](Transaction& transaction) {
            return export_bundle(transaction, keyring_, tenants, key, options);
        });
    };
    EXPECT_EQ(refused([&] { static_cast<void>(export_once()); }), "40001");
    EXPECT_TRUE(std::holds_alternative<BundleSummary>(export_once()));
}

}  // namespace
}  // namespace rowlock
