// Writers and servers that die at any moment: whatever a writer was told is there, and all of it exactly once.
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "postgres/audit_fixture.hpp"
#include "server/private_server.hpp"
#include "support/append_writer.hpp"
#include "support/process.hpp"
#include "support/scratch_folder.hpp"

namespace rowlock {
namespace {

using namespace std::chrono_literals;
using test::BackgroundProcess;

/// One writer and all of its lives.
class Writer {
  public:
    explicit Writer(std::vector<std::string> arguments) : arguments_(std::move(arguments)) { start(); }
    void start() {
        process_ = std::make_unique<BackgroundProcess>(
            test::ProcessOptions{.arguments = arguments_, .input = {}, .environment = {}, .folder = {}, .user = {}});
    }
    /// False if it had ended by itself.
    bool kill_and_restart() {
        if (!process_->running()) return false;
        process_->kill_hard();
        start();
        return true;
    }
    [[nodiscard]] bool running() { return process_->running(); }
    [[nodiscard]] test::ProcessResult wait() { return process_->wait(300s); }

  private:
    std::vector<std::string> arguments_;
    std::unique_ptr<BackgroundProcess> process_;
};

class WriterCrew {
  public:
    WriterCrew(std::string connection, const Keyring& keyring, int writers, int count, int tenants)
        : connection_(std::move(connection)), writers_(writers), count_(count), tenants_(tenants) {
        keyring.create_file(keyring_path());
        for (int writer = 0; writer < writers; ++writer) {
            crew_.push_back(std::make_unique<Writer>(std::vector<std::string>{
                ROWLOCK_APPEND_WRITER, "append", connection_, keyring_path(), report_path(writer),
                std::to_string(writer), std::to_string(count), std::to_string(tenants)}));
        }
    }
    /// Kills one at random; false once all have ended.
    bool kill_one(std::mt19937& dice) {
        const std::size_t first = dice() % crew_.size();
        for (std::size_t i = 0; i < crew_.size(); ++i) {
            if (crew_[(first + i) % crew_.size()]->kill_and_restart()) return true;
        }
        return false;
    }
    [[nodiscard]] bool running() const {
        return std::any_of(crew_.begin(), crew_.end(), [](const auto& writer) { return writer->running(); });
    }
    void expect_success() {
        for (const auto& writer : crew_) {
            const test::ProcessResult result = writer->wait();
            EXPECT_EQ(result.exit_code, 0) << result.errors << " signal " << result.signal;
        }
    }
    /// What was ever told: by writer and index, the tenant and every number told for it.
    [[nodiscard]] std::map<std::pair<int, int>, std::set<std::string>> told() const {
        std::map<std::pair<int, int>, std::set<std::string>> all;
        for (int writer = 0; writer < writers_; ++writer) {
            std::ifstream file(report_path(writer));
            for (std::string line; std::getline(file, line);) {
                std::istringstream words(line);
                int index = 0;
                words >> index;
                all[{writer, index}].insert(line.substr(line.find(' ') + 1));
            }
        }
        return all;
    }
    /// Everything is there once, under the number that was told, by one look at the rows.
    void expect_exactly_once(Database& superuser) const {
        const auto reports = told();
        EXPECT_EQ(reports.size(), static_cast<std::size_t>(writers_ * count_));
        std::map<std::string, std::vector<std::string>> stored;
        const Rows rows = superuser.transact({}, [](Transaction& transaction) {
            return transaction.execute({"test.all", "SELECT entry_id, tenant_id || ' ' || seq FROM rowlock.audit_log"});
        });
        for (const Row row : rows) stored[std::string(row.text(0))].emplace_back(row.text(1));
        EXPECT_EQ(stored.size(), reports.size());
        for (const auto& [who, numbers] : reports) {
            const auto& places = stored[test::id_of_writer(who.first, who.second).text()];
            ASSERT_EQ(numbers.size(), 1U) << "writer " << who.first << " was told two numbers for " << who.second;
            ASSERT_EQ(places, std::vector<std::string>(1, *numbers.begin()));
        }
    }
    void expect_gapless_and_intact(Database& superuser, const AuditLog& log) const {
        std::int64_t total = 0;
        for (int tenant = 0; tenant < tenants_; ++tenant) {
            const TenantId id("tenant-" + std::to_string(tenant));
            superuser.transact({}, [&](Transaction& transaction) {
                const Rows rows = transaction.execute(
                    {"test.last",
                     "SELECT last_seq, (SELECT count(*) FROM rowlock.audit_log WHERE tenant_id = $1)"
                     "  FROM rowlock.tenant_seq WHERE tenant_id = $1"},
                    {id});
                EXPECT_EQ(rows.only().integer(0), rows.only().integer(1));
                total += rows.only().integer(0);
                EXPECT_EQ(rowlock::told(log.verify(transaction, id)), fmt::format("intact {}", rows.only().integer(0)));
            });
        }
        EXPECT_EQ(total, std::int64_t{writers_} * count_);
    }

  private:
    [[nodiscard]] std::string keyring_path() const { return (folder_.path() / "keyring.json").string(); }
    [[nodiscard]] std::string report_path(int writer) const {
        return (folder_.path() / fmt::format("report-{}", writer)).string();
    }

    test::ScratchFolder folder_;
    std::string connection_;
    int writers_;
    int count_;
    int tenants_;
    std::vector<std::unique_ptr<Writer>> crew_;
};

class AuditLogAfterACrash : public AuditTest {
  protected:
    /// Kills writers at random moments until they have all come to their end.
    void kill_writers_until_done(int tenants) {
        WriterCrew crew(server_.connection_as(login_), keyring_, 16, full_or(2000, 40), tenants);
        std::mt19937 dice(5);
        int kills = 0;
        const int kills_max = full_or(250, 40);
        while (kills < kills_max && crew.kill_one(dice)) {
            ++kills;
            std::this_thread::sleep_for(std::chrono::milliseconds(dice() % 100));
        }
        crew.expect_success();
        EXPECT_GT(kills, 0);
        RecordProperty("kills", kills);
        std::printf("killed writers %d times\n", kills);
        crew.expect_exactly_once(superuser_);
        crew.expect_gapless_and_intact(superuser_, log_);
    }
};

TEST_F(AuditLogAfterACrash, OfWritersOfOneTenantHoldsWhatTheyWereToldExactlyOnce) {
    kill_writers_until_done(1);
}

TEST_F(AuditLogAfterACrash, OfWritersOfAHundredTenantsHoldsWhatTheyWereToldExactlyOnce) {
    kill_writers_until_done(100);
}

TEST_F(AuditLogAfterACrash, OfItsHolderIsFreeForOthers) {
    test::ScratchFolder folder;
    const std::string keyring = (folder.path() / "keyring.json").string();
    keyring_.create_file(keyring);
    append("acme");
    for (const bool vanishes : {false, true}) {
        // Killed: its kernel tells the server. Stopped: nobody does, like a client whose machine is gone.
        const std::string idle_max = vanishes ? "1000" : "600000";
        BackgroundProcess holder(
            {.arguments = {ROWLOCK_APPEND_WRITER, "hold", server_.connection_as(login_), keyring, "acme", idle_max},
             .input = {},
             .environment = {},
             .folder = {},
             .user = {}});
        for (int i = 0; i < 30000 && holder.output().empty() && holder.running(); ++i) std::this_thread::sleep_for(1ms);
        ASSERT_EQ(holder.output(), "holding\n") << holder.errors();
        if (vanishes) {
            holder.send(SIGSTOP);
        } else {
            EXPECT_THROW(append_on(*beside_, of("acme", 200ms), {}), Busy) << "the head is really held";
            holder.kill_hard();
        }
        EXPECT_EQ(said(append("acme")), vanishes ? "appended 3" : "appended 2");
    }
    expect_gapless("acme", 3);
}

TEST_F(AuditLogAfterACrash, OfAnIdleHolderTellsTheHolder) {
    append("acme");
    TransactionPolicy policy = of("acme");
    policy.idle_max = 200ms;
    policy.attempts_max = 1;
    try {
        app_->transact(policy, [&](Transaction& transaction) {
            static_cast<void>(log_.append(transaction, {}));
            EXPECT_EQ(said(append_on(*beside_, of("acme"), {})), "appended 2") << "the holder has been silent too long";
        });
        ADD_FAILURE() << "the transaction had been ended";
    } catch (const ConnectionError& error) {
        EXPECT_EQ(error.sqlstate(), "25P03");
        EXPECT_EQ(error.recovery(), Recovery::reconnect_and_run_again);
    }
    expect_gapless("acme", 2);
}

TEST(AuditLogAfterACrashOfTheServer, HoldsWhatTheWritersWereToldExactlyOnce) {
    const test::ScratchFolder folder;
    // Everything as it comes, fsync too: what a writer is told has been flushed.
    PrivateServer server({.place = {folder.path() / "server"}, .settings = {}});
    const ServerStatus status = server.ensure_running();
    const Keyring keyring = Keyring::generate();
    {
        std::optional<Database> superuser(std::in_place, status.connection);
        superuser->transact({.lock_wait_max = 60s}, install_schema);
        superuser->transact({}, [](Transaction& transaction) {
            transaction.execute_script(
                {"test.login", "CREATE ROLE shop LOGIN; GRANT rowlock_app TO shop; GRANT rowlock_app TO rowlock"});
        });
        superuser.reset();
        const std::string as_app = status.connection + " options='-c role=rowlock_app'";
        WriterCrew crew(as_app, keyring, 8, full_or(1000, 60), 4);
        std::mt19937 dice(6);
        int crashes = 0;
        const int crashes_max = full_or(8, 3);
        while (crashes < crashes_max && crew.running()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(100 + dice() % 400));
            EXPECT_TRUE(server.kill_immediately());
            crew.kill_one(dice);
            server.ensure_running();
            ++crashes;
        }
        crew.expect_success();
        std::printf("killed the server %d times\n", crashes);
        EXPECT_GT(crashes, 0);
        superuser.emplace(status.connection);
        crew.expect_exactly_once(*superuser);
        crew.expect_gapless_and_intact(*superuser, AuditLog(keyring));
    }
    server.destroy();
}

}  // namespace
}  // namespace rowlock
