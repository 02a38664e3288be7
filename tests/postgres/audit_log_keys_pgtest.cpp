// A chain outlives its keys: rotated, lacking, unknown, and in the hands of writers that disagree.
#include <gmock/gmock.h>

#include "audit/keyring_keys.hpp"
#include "postgres/audit_fixture.hpp"

namespace rowlock {
namespace {

using testing::ElementsAre;

/// Some keys of a keyring, the last of them active.
Keyring only(const Keyring& keyring, const std::vector<std::string>& ids) {
    auto keys = std::make_shared<Keyring::Keys>();
    for (const std::string& id : ids) keys->all.push_back(*keyring.keys().find(id));
    keys->active = ids.size() - 1;
    return Keyring(std::move(keys));
}

class AuditLogKeys : public AuditTest {
  protected:
    AppendOutcome append_with(const Keyring& keyring, const AuditEntry& entry = {}) {
        const AuditLog log(keyring);
        return app_->transact(of("acme"), [&](Transaction& transaction) { return log.append(transaction, entry); });
    }
    Verification verify_with(const Keyring& keyring) {
        const AuditLog log(keyring);
        return superuser_.transact({},
                                   [&](Transaction& transaction) { return log.verify(transaction, TenantId("acme")); });
    }

    const Keyring both_ = keyring_.rotated();
    const std::string old_id_ = both_.ids().at(0);
    const std::string new_id_ = both_.ids().at(1);
    const Keyring old_alone_ = only(both_, {old_id_});
    const Keyring new_alone_ = only(both_, {new_id_});
    const Keyring back_ = only(both_, {new_id_, old_id_});
};

TEST_F(AuditLogKeys, GoOnUnderTheNewKeyAfterARotation) {
    EXPECT_EQ(said(append_with(keyring_)), "appended 1");
    EXPECT_EQ(said(append_with(both_, {.action = "first"})), "appended 3");
    EXPECT_EQ(said(append_with(both_)), "appended 4");
    const auto entries = list("acme");
    ASSERT_EQ(entries.size(), 4U);
    EXPECT_EQ(entries[1].action, "rowlock.key_rotation");
    EXPECT_EQ(entries[1].object, new_id_);
    EXPECT_EQ(entries[1].key_id, old_id_) << "the old key vouches for the new one";
    EXPECT_EQ(entries[2].key_id, new_id_);
    EXPECT_EQ(told(verify_with(both_)), "intact 4");
    EXPECT_EQ(told(verify_with(back_)), "intact 4");
}

TEST_F(AuditLogKeys, ThatAreLackingMakeAChainUnverifiableAndNotTampered) {
    append_with(keyring_);
    append_with(both_);
    append_with(both_);
    const Verification without_old = verify_with(new_alone_);
    EXPECT_EQ(told(without_old), "unverifiable 4");
    EXPECT_EQ(without_old.unverifiable_entries, 2);
    EXPECT_THAT(without_old.missing_keys, ElementsAre(old_id_));
    const Verification without_new = verify_with(old_alone_);
    EXPECT_EQ(told(without_new), "unverifiable 4");
    EXPECT_EQ(without_new.unverifiable_entries, 2);
    EXPECT_THAT(without_new.missing_keys, ElementsAre(new_id_));
    const Verification without_any = verify_with(Keyring::generate());
    EXPECT_EQ(told(without_any), "unverifiable 4");
    EXPECT_EQ(without_any.unverifiable_entries, 4);
    EXPECT_THAT(without_any.missing_keys, ElementsAre(old_id_, new_id_));
}

TEST_F(AuditLogKeys, ThatLackTheChainsKeyAppendNothing) {
    append_with(keyring_);
    const std::string before = everything();
    EXPECT_THROW(append_with(Keyring::generate()), SetupError);
    EXPECT_THROW(append_with(new_alone_), SetupError);
    EXPECT_EQ(everything(), before);
    append_with(both_);
    EXPECT_THROW(append_with(old_alone_), SetupError) << "a writer that has not heard of the rotation";
    EXPECT_EQ(said(append_with(both_)), "appended 4");
    EXPECT_EQ(told(verify_with(both_)), "intact 4");
}

TEST_F(AuditLogKeys, RotateInTheSameTransactionAndAreGivenBackWithIt) {
    struct GiveUp {};
    append_with(keyring_);
    const AuditLog log(both_);
    const auto append_two = [&](Transaction& transaction) {
        const std::vector<TenantEntry> entries{{TenantId("acme"), {}}, {TenantId("acme"), {}}};
        EXPECT_EQ(said(log.append_all(transaction, entries)), "appended 3, appended 4");
        EXPECT_EQ(said(log.append(transaction, {})), "appended 5");
    };
    EXPECT_THROW(app_->transact(of("acme"),
                                [&](Transaction& transaction) {
                                    append_two(transaction);
                                    throw GiveUp{};
                                }),
                 GiveUp);
    EXPECT_EQ(said(append_with(keyring_)), "appended 2") << "the chain is still under the old key";
    EXPECT_EQ(told(verify_with(keyring_)), "intact 2");
    EXPECT_EQ(said(append_with(both_)), "appended 4");
    EXPECT_EQ(told(verify_with(both_)), "intact 4");
}

TEST_F(AuditLogKeys, AreNotRotatedByARetry) {
    const AuditEntry entry{.actor = "me"};
    append_with(keyring_, entry);
    EXPECT_EQ(said(append_with(both_, entry)), "already 1");
    EXPECT_EQ(said(append_with(Keyring::generate(), entry)), "already 1") << "nothing is to be signed";
    expect_gapless("acme", 1);
}

TEST_F(AuditLogKeys, GoToAndFroBetweenWritersThatDisagree) {
    const int rounds = full_or(40, 10);
    in_threads(4, [&](int writer) {
        const AuditLog log(writer % 2 == 0 ? both_ : back_);
        for (int round = 0; round < rounds; ++round) {
            app_->transact(of("acme"),
                           [&](Transaction& transaction) { static_cast<void>(log.append(transaction, {})); });
        }
    });
    const Verification verification = verify_with(both_);
    EXPECT_EQ(verification.verdict, Verdict::intact) << told(verification);
    EXPECT_GT(verification.entries, 4 * rounds) << "there were rotations among them";
    EXPECT_EQ(server_.value("SELECT count(*) FROM rowlock.audit_log WHERE action IS NULL"), std::to_string(4 * rounds));
    EXPECT_EQ(verify_with(new_alone_).verdict, Verdict::unverifiable);
    EXPECT_EQ(verify_with(old_alone_).verdict, Verdict::unverifiable);
}

TEST_F(AuditLogKeys, OfOneKeyringSignDifferentlyInEveryDatabaseAndForEveryTenant) {
    const AuditEntry entry{.actor = "same"};
    append("acme", entry);
    append("globex", entry);
    EXPECT_EQ(server_.value("SELECT count(DISTINCT prev_mac) + count(DISTINCT mac) FROM rowlock.audit_log"), "4");
    superuser_.transact({}, [&](Transaction& transaction) {
        transaction.execute_script({"test.other_ledger",
                                    "ALTER TABLE rowlock.ledger DISABLE TRIGGER ALL;"
                                    "UPDATE rowlock.ledger SET ledger_id = gen_random_uuid()"});
    });
    EXPECT_EQ(verified("acme"), "tampered 1, changed 1") << "a chain of another ledger is not this one's";
}

}  // namespace
}  // namespace rowlock
