// Whatever ends a stream of lines in the middle: what was told is true, and the same input again is appended once.
#include <fmt/format.h>

#include <csignal>
#include <thread>

#include "cli/command_test.hpp"
#include "server/private_server.hpp"

namespace rowlock::test {
namespace {

using testing::HasSubstr;

constexpr int count = 20000;

/// Lines with ids of their own, over ten tenants.
std::string lines_with_ids() {
    std::string lines;
    for (int i = 1; i <= count; ++i) {
        lines += fmt::format(R"({{"tenant":"t{}","entry_id":"01890a5d-ac96-774b-bcce-{:012}","data":{{"n":{}}}}})"
                             "\n",
                             i % 10, i, i);
    }
    return lines;
}

/// A private server of the test's own, made by the command, that may be killed.
class InterruptedAppend : public CommandTest {
  protected:
    InterruptedAppend() {
        server().ensure_running();
        EXPECT_EQ(run({"--data", data_, "verify", "--all"}).exit_code, 3) << "makes the schema and the keyring";
    }
    ~InterruptedAppend() override { server().destroy(); }

    [[nodiscard]] PrivateServer server() const {
        return PrivateServer({.place = {data_}, .settings = {}, .throwaway = true});
    }
    [[nodiscard]] std::string value(const std::string& sql) const {
        return run_sql(server().connection("rowlock"), sql);
    }
    [[nodiscard]] ProcessOptions appending(const std::string& lines) const {
        return command({"--data", data_, "append", "--jsonl", "-", "--writers", "4"}, lines);
    }
    /// Waits until some lines are there, and not all.
    void wait_for_some() const {
        for (int i = 0; i < 2000 && std::stoi(value("SELECT count(*) FROM rowlock.audit_log")) < 500; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds{2});
        }
    }
    /// Gives the same input again and looks whether each line is there once, in order.
    void expect_exactly_once_after(const std::string& lines) const {
        const ProcessResult again = run_process(appending(lines), limit);
        EXPECT_EQ(again.exit_code, 0) << again.errors;
        EXPECT_EQ(value("SELECT count(*) FROM rowlock.audit_log"), std::to_string(count));
        EXPECT_EQ(value("SELECT count(DISTINCT entry_id) FROM rowlock.audit_log"), std::to_string(count));
        EXPECT_EQ(value("SELECT count(*) FROM (SELECT seq, row_number() OVER (PARTITION BY tenant_id ORDER BY"
                        " (data::json->>'n')::int) AS place FROM rowlock.audit_log) AS x WHERE seq <> place"),
                  "0")
            << "the order of lines is the order of the log";
        const ProcessResult verified = run({"--data", data_, "verify", "--all"});
        EXPECT_EQ(verified.exit_code, 0) << verified.output;
    }

    const std::string data_ = (scratch_.path() / "server").string();
};

TEST_F(InterruptedAppend, ByTheDeathOfTheServerIsToldInOneLineAndCanBeDoneAgain) {
    const std::string lines = lines_with_ids();
    BackgroundProcess stream(appending(lines));
    wait_for_some();
    ASSERT_TRUE(server().kill_immediately());
    const ProcessResult result = stream.wait(limit);
    EXPECT_THAT(result.exit_code, testing::AnyOf(2, 3)) << result.output;
    expect_one_line(result, {"every line before line ", "entry_id"});
    server().ensure_running();
    expect_exactly_once_after(lines);
}

TEST_F(InterruptedAppend, ByAnOrderlyStopOfTheServerIsToldInOneLineAndCanBeDoneAgain) {
    const std::string lines = lines_with_ids();
    BackgroundProcess stream(appending(lines));
    wait_for_some();
    EXPECT_EQ(run({"--data", data_, "server", "stop"}).exit_code, 0);
    const ProcessResult result = stream.wait(limit);
    EXPECT_THAT(result.exit_code, testing::AnyOf(2, 3)) << result.output;
    expect_one_line(result, {"every line before line ", "entry_id"});
    server().ensure_running();
    expect_exactly_once_after(lines);
}

TEST_F(InterruptedAppend, ByKillingTheCommandCanBeDoneAgain) {
    const std::string lines = lines_with_ids();
    BackgroundProcess stream(appending(lines));
    wait_for_some();
    stream.kill_hard();
    expect_exactly_once_after(lines);
}

TEST_F(InterruptedAppend, BySIGINTFinishesWhatWasReadAndTellsWhereToGoOn) {
    const std::string lines = lines_with_ids();
    BackgroundProcess stream(appending(lines));
    wait_for_some();
    stream.send(SIGINT);
    const ProcessResult result = stream.wait(limit);
    EXPECT_EQ(result.signal, SIGINT) << "so that a shell's loop ends, too";
    expect_one_line(result, {"interrupted; every line before line ", ", nothing from there on"});
    const std::string done = value("SELECT count(*) FROM rowlock.audit_log");
    EXPECT_THAT(result.errors, HasSubstr(fmt::format("before line {} is", std::stoi(done) + 1)));
    EXPECT_LT(std::stoi(done), count);
    expect_exactly_once_after(lines);
}

TEST_F(InterruptedAppend, BySIGTERMWhileItWaitsForInputEndsAtOnce) {
    ProcessOptions options = command({});
    options.environment.emplace_back("rowlock", ROWLOCK_COMMAND);
    options.arguments = {"bash", "-c",
                         "exec \"$rowlock\" --data '" + data_ +
                             "' append --jsonl - < <(echo '{\"tenant\":\"a\"}'; echo -n '{\"tenant\"'; sleep 100)"};
    BackgroundProcess stream(options);
    for (int i = 0; i < 500 && value("SELECT count(*) FROM rowlock.audit_log") == "0"; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
    stream.send(SIGTERM);
    const ProcessResult result = stream.wait(std::chrono::seconds{10});
    EXPECT_EQ(result.signal, SIGTERM);
    expect_one_line(result, {"interrupted; every line before line 2 is appended, nothing from there on"});
}

}  // namespace
}  // namespace rowlock::test
