// Checkpoints of a real log: one snapshot, who may, what is found against them, and what a resumption makes good.
#include <fmt/core.h>
#include <gmock/gmock.h>

#include "postgres/audit_fixture.hpp"
#include "rowlock/checkpoint.hpp"
#include "rowlock/error.hpp"

namespace rowlock {
namespace {

using testing::HasSubstr;

class CheckpointOfALog : public AuditTest {
  protected:
    Checkpoint checkpoint() {
        return superuser_.transact({}, [](Transaction& transaction) { return read_checkpoint(transaction); });
    }
    Verification against(const Checkpoint& checkpoint, const std::string& tenant = "acme") {
        VerifyOptions options;
        options.checkpoint = &checkpoint;
        return verify(tenant, options);
    }
    /// Puts a tenant's log back to its first entries, as a restore from an older backup does.
    void put_back(const std::string& tenant, std::int64_t left) {
        superuser_.transact({}, [&](Transaction& transaction) {
            transaction.execute_script({"test.put_back",
                                        "ALTER TABLE rowlock.audit_log DISABLE TRIGGER ALL; ALTER TABLE "
                                        "rowlock.tenant_seq DISABLE TRIGGER ALL"});
            transaction.execute({"test.put_back", "DELETE FROM rowlock.audit_log WHERE tenant_id = $1 AND seq > $2"},
                                {tenant, left});
            transaction.execute(
                {"test.put_back",
                 "UPDATE rowlock.tenant_seq AS head SET last_seq = $2, head_mac = log.mac, key_id = CASE"
                 "  WHEN log.action = 'rowlock.key_rotation' THEN log.object ELSE log.key_id END"
                 "  FROM rowlock.audit_log AS log"
                 " WHERE head.tenant_id = $1 AND log.tenant_id = $1 AND log.seq = $2"},
                {tenant, left});
            transaction.execute_script({"test.put_back",
                                        "ALTER TABLE rowlock.audit_log ENABLE ALWAYS TRIGGER only_grows;"
                                        "ALTER TABLE rowlock.tenant_seq ENABLE ALWAYS TRIGGER stays"});
        });
    }
    ResumeOutcome resume(const Checkpoint& checkpoint, const AuditLog& log, const std::string& tenant = "acme") {
        return app_->transact(of(tenant), [&](Transaction& transaction) {
            return log.resume(transaction, checkpoint, {.reason = "restored Monday's dump", .actor = "ann"});
        });
    }
};

TEST_F(CheckpointOfALog, CountsEveryTenantWithEntriesInOrder) {
    append_many("globex", 3);
    append_many("Ärger", 1);
    append_many("acme", 2);
    app_->transact(of("idle"), [](Transaction& transaction) {
        transaction.execute({"test.state_row", "INSERT INTO rowlock.tenant_seq (tenant_id) VALUES ('idle')"});
    });
    const Checkpoint all = checkpoint();
    ASSERT_EQ(all.heads.size(), 3U);
    EXPECT_EQ(all.heads[0].tenant.text(), "acme");
    EXPECT_EQ(all.heads[1].tenant.text(), "globex");
    EXPECT_EQ(all.heads[2].tenant.text(), "Ärger");
    EXPECT_EQ(all.heads[1].size, 3);
    EXPECT_EQ(all.heads[1].key_id, keyring_.active_id());
    EXPECT_EQ(EntryId(all.ledger).text(), server_.value("SELECT ledger_id FROM rowlock.ledger"));
    EXPECT_GE(all.made_at, list("acme").back().recorded_at);
    const SigningKey key = SigningKey::generate("test");
    EXPECT_EQ(sign_checkpoint(all, key), sign_checkpoint(all, key));
    EXPECT_EQ(std::get<Checkpoint>(open_checkpoint(sign_checkpoint(all, key), std::vector{key.public_key()})), all);
}

TEST_F(CheckpointOfALog, IsOfOneSnapshotWhileOthersAppendToSeveralTenantsAtOnce) {
    const std::vector<TenantEntry> pair{{TenantId("a"), {}}, {TenantId("b"), {}}};
    std::atomic<bool> done{false};
    in_threads(3, [&](int number) {
        if (number == 0) {
            for (int i = 0; i < full_or(300, 50); ++i) {
                const Checkpoint seen = checkpoint();
                if (seen.heads.empty()) continue;
                ASSERT_EQ(seen.heads.size(), 2U);
                ASSERT_EQ(seen.heads[0].size, seen.heads[1].size) << "both or neither, as they were appended";
            }
            done = true;
        }
        while (!done) {
            app_->transact({}, [&](Transaction& transaction) {
                std::vector<TenantEntry> fresh = pair;
                for (TenantEntry& each : fresh) each.entry.id = EntryId::generate();
                static_cast<void>(log_.append_all(transaction, fresh));
            });
        }
    });
    EXPECT_EQ(told(against(checkpoint(), "a")).substr(0, 6), "intact");
}

TEST_F(CheckpointOfALog, ShowsWhoMayNotSeeOtherTenantsOnlyHisOwn) {
    append_many("acme", 2);
    append_many("globex", 2);
    const auto seen_by = [](Database& database, const TransactionPolicy& policy) {
        return database.transact(policy,
                                 [](Transaction& transaction) { return read_checkpoint(transaction).heads.size(); });
    };
    Database auditor(DatabaseOptions{.connection = server_.connection(), .role = "rowlock_auditor"});
    EXPECT_EQ(seen_by(auditor, {}), 2U);
    EXPECT_EQ(seen_by(*app_, of("acme")), 1U);
    EXPECT_EQ(seen_by(*app_, {}), 0U);
}

TEST_F(CheckpointOfALog, IsNotedByWhoSeesAllTenantsAndByNobodyElse) {
    append_many("acme", 2);
    Database auditor(DatabaseOptions{.connection = server_.connection(), .role = "rowlock_auditor"});
    const Checkpoint seen = checkpoint();
    const auto note = [&](Database& database, const Checkpoint& made) {
        return database.transact(of("acme"),
                                 [&](Transaction& transaction) { return note_checkpoint(transaction, made); });
    };
    const auto noted = [&] {
        return app_->transact({}, [](Transaction& transaction) { return last_noted_checkpoint(transaction); });
    };
    EXPECT_FALSE(note(*app_, seen));
    EXPECT_FALSE(noted());
    EXPECT_TRUE(note(auditor, seen));
    ASSERT_TRUE(noted());
    EXPECT_EQ(noted()->made_at, seen.made_at);
    EXPECT_EQ(noted()->entries, 2);
    Checkpoint older = seen;
    older.made_at -= 1;
    EXPECT_TRUE(note(auditor, older));
    EXPECT_EQ(noted()->made_at, seen.made_at) << "it is the last one that is told";
    Checkpoint ahead = seen;
    ahead.made_at += 3'600'000'000;
    EXPECT_TRUE(note(auditor, ahead));
    EXPECT_GE(noted()->age.count(), 0) << "no checkpoint is of the future";
    for (Database* const database : {&auditor, &*app_}) {
        EXPECT_THROW(database->transact({},
                                        [](Transaction& transaction) {
                                            transaction.execute(
                                                {"test.forge", "UPDATE rowlock.checkpoint_noted SET entries = 0"});
                                        }),
                     ServerError);
    }
}

TEST_F(CheckpointOfALog, RefusesAStateRowThatCountsEntriesWithoutAMac) {
    append_many("acme", 2);
    server_.execute("UPDATE rowlock.tenant_seq SET head_mac = NULL");
    EXPECT_THROW(static_cast<void>(checkpoint()), SetupError);
}

TEST_F(CheckpointOfALog, FindsWhatTheStateRowHides) {
    append_many("acme", 10);
    append_many("globex", 4);
    const Checkpoint seen = checkpoint();
    append_many("acme", 2);
    EXPECT_EQ(told(against(seen)), "intact 12");
    EXPECT_EQ(against(seen).checkpoint, Comparison::agrees);
    put_back("acme", 7);
    EXPECT_EQ(verified("acme"), "intact 7") << "without a checkpoint nothing is to be seen";
    EXPECT_EQ(told(against(seen)), "rolled_back 7, rolled_back 8-10");
    append_many("acme", 20);
    EXPECT_EQ(told(against(seen)), "rolled_back 27, rolled_back 8-10") << "also when it is longer than before";
    EXPECT_EQ(told(against(seen, "globex")), "intact 4");
    superuser_.transact({}, [](Transaction& transaction) {
        transaction.execute_script({"test.gone",
                                    "ALTER TABLE rowlock.audit_log DISABLE TRIGGER ALL;"
                                    "ALTER TABLE rowlock.tenant_seq DISABLE TRIGGER ALL;"
                                    "DELETE FROM rowlock.audit_log WHERE tenant_id = 'globex';"
                                    "DELETE FROM rowlock.tenant_seq WHERE tenant_id = 'globex'"});
    });
    EXPECT_EQ(verified("globex"), "empty 0");
    EXPECT_EQ(told(against(seen, "globex")), "rolled_back 0, chain_missing 1-4");
}

TEST_F(CheckpointOfALog, RaisesNoAlarmAcrossRotations) {
    Keyring rotated = keyring_;
    std::vector<Checkpoint> seen;
    for (int round = 0; round < 6; ++round) {
        const AuditLog log(rotated);
        for (int i = 0; i < 3; ++i) {
            app_->transact(of("acme"),
                           [&](Transaction& transaction) { static_cast<void>(log.append(transaction, {})); });
            seen.push_back(checkpoint());
        }
        rotated = rotated.rotated();
    }
    const AuditLog log(rotated);
    for (const Checkpoint& each : seen) {
        VerifyOptions options;
        options.checkpoint = &each;
        EXPECT_EQ(
            told(superuser_.transact(
                {}, [&](Transaction& transaction) { return log.verify(transaction, TenantId("acme"), options); })),
            "intact 23");
    }
}

TEST_F(CheckpointOfALog, OfAnotherLedgerIsRefused) {
    append_many("acme", 1);
    Checkpoint other = checkpoint();
    other.ledger[0] ^= std::byte{1};
    EXPECT_THROW(against(other), SetupError);
}

TEST_F(CheckpointOfALog, IsGoodAgainAfterAResumption) {
    append_many("acme", 10);
    const Checkpoint older = checkpoint();
    append_many("acme", 2);
    const Checkpoint seen = checkpoint();
    put_back("acme", 7);
    append_many("acme", 2);
    const ResumeOutcome outcome = resume(seen, log_);
    ASSERT_TRUE(std::holds_alternative<Resumed>(outcome));
    EXPECT_EQ(std::get<Resumed>(outcome).seq, 10);
    EXPECT_EQ(std::get<Resumed>(outcome).after, 7) << "where it really resumed, before what was appended since";
    append_many("acme", 20);
    for (const Checkpoint& each : {older, seen}) {
        const Verification verification = against(each);
        EXPECT_EQ(told(verification), "intact 30");
        EXPECT_EQ(verification.checkpoint, Comparison::resumed);
        ASSERT_EQ(verification.resumptions.size(), 1U);
        EXPECT_EQ(verification.resumptions[0].reason, "restored Monday's dump");
        EXPECT_EQ(verification.resumptions[0].actor, "ann");
    }
    EXPECT_EQ(told(against(checkpoint())), "intact 30");
    EXPECT_EQ(list("acme")[9].action, "rowlock.resume");
    EXPECT_EQ(verify("acme").resumptions_total, 1) << "for ever visible";
}

TEST_F(CheckpointOfALog, IsResumedAfterEvenWhereNothingIsLeft) {
    append_many("acme", 3);
    const Checkpoint seen = checkpoint();
    superuser_.transact({}, [](Transaction& transaction) {
        transaction.execute_script({"test.gone",
                                    "ALTER TABLE rowlock.audit_log DISABLE TRIGGER ALL;"
                                    "ALTER TABLE rowlock.tenant_seq DISABLE TRIGGER ALL;"
                                    "DELETE FROM rowlock.audit_log; DELETE FROM rowlock.tenant_seq"});
    });
    ASSERT_TRUE(std::holds_alternative<Resumed>(resume(seen, log_)));
    EXPECT_EQ(told(against(seen)), "intact 1");
}

TEST_F(CheckpointOfALog, IsResumedAfterUnderARotatedKeyring) {
    append_many("acme", 5);
    const Checkpoint seen = checkpoint();
    put_back("acme", 2);
    const AuditLog rotated(keyring_.rotated());
    const ResumeOutcome outcome = resume(seen, rotated);
    EXPECT_EQ(std::get<Resumed>(outcome).seq, 4) << "a rotation entry comes first";
    VerifyOptions options;
    options.checkpoint = &seen;
    EXPECT_EQ(
        told(superuser_.transact(
            {}, [&](Transaction& transaction) { return rotated.verify(transaction, TenantId("acme"), options); })),
        "intact 4");
}

TEST_F(CheckpointOfALog, IsNothingToResumeAfterWhereTheLogIsNotBehindIt) {
    append_many("acme", 5);
    const Checkpoint seen = checkpoint();
    const std::string before = everything();
    EXPECT_TRUE(std::holds_alternative<NothingToResume>(resume(seen, log_)));
    server_.execute(
        "ALTER TABLE rowlock.audit_log DISABLE TRIGGER ALL;"
        "UPDATE rowlock.audit_log SET actor = 'mallory' WHERE seq = 2");
    EXPECT_TRUE(std::holds_alternative<NothingToResume>(resume(seen, log_))) << "no entry puts tampering right";
    server_.execute("UPDATE rowlock.audit_log SET actor = 'writer' WHERE seq = 2");
    put_back("acme", 3);
    ASSERT_TRUE(std::holds_alternative<Resumed>(resume(seen, log_)));
    EXPECT_TRUE(std::holds_alternative<NothingToResume>(resume(seen, log_))) << "once is enough";
    EXPECT_NE(everything(), before);
}

TEST_F(CheckpointOfALog, CantBeResumedAfterByAnEntryOfACaller) {
    append_many("acme", 1);
    EXPECT_THROW(append("acme", {.action = "rowlock.resume", .data = "{}"}), InvalidInput);
    EXPECT_THROW(append("acme", {.action = "rowlock.retirement", .data = "{}"}), InvalidInput);
    EXPECT_EQ(verified("acme"), "intact 1");
}

}  // namespace
}  // namespace rowlock
