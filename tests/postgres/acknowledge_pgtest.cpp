// Acknowledging a break on a real log: who may, what can be acknowledged, and what goes on to work.
#include <gmock/gmock.h>

#include "postgres/audit_fixture.hpp"
#include "rowlock/bundle.hpp"
#include "rowlock/checkpoint.hpp"
#include "rowlock/error.hpp"

namespace rowlock {
namespace {

using testing::HasSubstr;

class Acknowledging : public AuditTest {
  protected:
    void tamper(const std::string& sql) const {
        server_.execute(
            "ALTER TABLE rowlock.audit_log DISABLE TRIGGER ALL; ALTER TABLE rowlock.tenant_seq DISABLE TRIGGER ALL; " +
            sql);
    }
    AcknowledgeOutcome acknowledge(std::int64_t seq, std::optional<FindingKind> kind = {}) {
        return app_->transact(of("acme"), [&](Transaction& transaction) {
            return log_.acknowledge(transaction, {.seq = seq, .kind = kind, .reason = "a bad disk", .actor = "ann"});
        });
    }
    std::string refused(std::int64_t seq, std::optional<FindingKind> kind = {}) {
        const auto outcome = acknowledge(seq, kind);
        const auto* const no = std::get_if<NotAcknowledged>(&outcome);
        return no == nullptr ? "acknowledged" : no->reason;
    }
};

TEST_F(Acknowledging, ABreakTellsItApartForEverAndTheNextOneIsFound) {
    append_many("acme", 10);
    tamper("UPDATE rowlock.audit_log SET actor = 'mallory' WHERE seq = 5; DELETE FROM rowlock.audit_log WHERE seq = 7");
    EXPECT_EQ(verified("acme"), "tampered 9, changed 5, missing 7");
    const auto outcome = acknowledge(5);
    ASSERT_TRUE(std::holds_alternative<Acknowledged>(outcome));
    EXPECT_EQ(std::get<Acknowledged>(outcome).seq, 11);
    EXPECT_EQ(verified("acme"), "tampered 10, missing 7") << "one at a time";
    EXPECT_EQ(refused(5), "nothing is found at entry 5, or it is acknowledged already");
    EXPECT_EQ(refused(7), "acknowledged");
    append_many("acme", 5);
    EXPECT_EQ(verified("acme"), "acknowledged 16");
    const Verification verification = verify("acme");
    ASSERT_EQ(verification.acknowledgements.size(), 2U);
    EXPECT_EQ(verification.acknowledgements[0].seq, 11);
    EXPECT_EQ(verification.acknowledgements[0].actor, "ann");
    tamper("UPDATE rowlock.audit_log SET actor = 'mallory' WHERE seq = 6");
    EXPECT_EQ(verified("acme"), "tampered 16, changed 6");
    tamper(
        "UPDATE rowlock.audit_log SET actor = 'writer' WHERE seq = 6; UPDATE rowlock.audit_log SET actor = 'eve' WHERE "
        "seq = 5");
    EXPECT_EQ(verified("acme"), "tampered 16, changed 5");
}

TEST_F(Acknowledging, IsRefusedForWhatNoEntryCanPutOff) {
    append_many("acme", 10);
    EXPECT_THAT(refused(3), HasSubstr("nothing is found"));
    tamper("UPDATE rowlock.audit_log SET mac = sha256('x') , actor = 'x' WHERE seq = 4");
    EXPECT_EQ(verified("acme"), "tampered 10, changed 4, unlinked 5");
    EXPECT_THAT(refused(4, FindingKind::missing), HasSubstr("nothing of kind missing is found at entry 4"));
    tamper("UPDATE rowlock.tenant_seq SET head_mac = sha256('x')");
    const std::string before = everything();
    EXPECT_THAT(refused(4), HasSubstr("the state row was changed"));
    EXPECT_EQ(everything(), before);
    EXPECT_THROW(append("acme", {.action = "rowlock.acknowledge", .data = "{}"}), InvalidInput);
    EXPECT_THROW(
        app_->transact(of("acme"),
                       [](Transaction& transaction) {
                           transaction.execute({"test.stage", "SELECT rowlock.stage('acme', 'rowlock.acknowledge')"});
                       }),
        ServerError);
    EXPECT_THROW(static_cast<void>(app_->transact(of("acme"),
                                                  [&](Transaction& transaction) {
                                                      return log_.acknowledge(transaction, {.seq = 4, .reason = ""});
                                                  })),
                 InvalidInput);
}

TEST_F(Acknowledging, LetsRetentionAndExportGoOn) {
    append_many("acme", 10);
    const Checkpoint seen =
        superuser_.transact({}, [](Transaction& transaction) { return read_checkpoint(transaction); });
    tamper(
        "UPDATE rowlock.audit_log SET actor = 'mallory' WHERE seq = 3; UPDATE rowlock.audit_log SET object = 'x' WHERE "
        "seq = 8");
    const auto retire = [&](std::int64_t through) {
        return app_->transact(of("acme"), [&](Transaction& transaction) {
            return log_.retire(transaction, seen, {.through = through, .reason = "old"});
        });
    };
    const auto exported = [&] {
        const TenantId tenant("acme");
        std::string bundle;
        ExportOptions options;
        options.sink = [&](std::span<const std::byte> bytes) {
            bundle.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        };
        const auto outcome = superuser_.transact({.attempts_max = 1}, [&](Transaction& transaction) {
            return export_bundle(transaction, keyring_, std::span(&tenant, 1), SigningKey::generate("t"), options);
        });
        return std::holds_alternative<BundleSummary>(outcome);
    };
    EXPECT_TRUE(std::holds_alternative<EntriesNotRetired>(retire(5)));
    EXPECT_FALSE(exported());
    EXPECT_EQ(refused(3), "acknowledged");
    EXPECT_FALSE(exported()) << "there is another";
    EXPECT_EQ(refused(8), "acknowledged");
    EXPECT_TRUE(exported());
    for (const std::int64_t at_the_break : {2, 3, 7, 8}) {
        EXPECT_TRUE(std::holds_alternative<EntriesNotRetired>(retire(at_the_break))) << at_the_break;
    }
    const RetirementOutcome retired = retire(5);
    ASSERT_TRUE(std::holds_alternative<EntriesRetired>(retired));
    server_.execute("GRANT rowlock_owner TO " + login_.role);
    Database owner(DatabaseOptions{.connection = server_.connection_as(login_), .role = "rowlock_owner"});
    tamper("ALTER TABLE rowlock.audit_log ENABLE ALWAYS TRIGGER only_grows");
    EXPECT_EQ(owner.transact(of("acme"),
                             [&](Transaction& transaction) {
                                 return AuditLog::drop_retired(transaction, std::get<EntriesRetired>(retired).seq, 100);
                             }),
              5);
    const Verification verification = verify("acme");
    EXPECT_EQ(told(verification), "acknowledged 8");
    ASSERT_EQ(verification.acknowledgements.size(), 2U);
    EXPECT_FALSE(verification.acknowledgements[0].found) << "dropped in order";
    EXPECT_TRUE(verification.acknowledgements[1].found);
}

}  // namespace
}  // namespace rowlock
