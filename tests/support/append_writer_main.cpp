// A writer that a test kills at any moment: appends entries with ids that only depend on its number, and writes down
// each one that it was told is there, before it goes on to the next.
//
//     append_writer append CONNECTION KEYRING REPORT WRITER COUNT TENANTS
//     append_writer hold   CONNECTION KEYRING TENANT IDLE_MS
//
// A line of the report is "index tenant seq". A writer that finds a report goes on behind it, but not without appending
// the last reported entries once more, as a retry that lost the answer would.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "rowlock/audit_log.hpp"
#include "rowlock/database.hpp"
#include "support/append_writer.hpp"

namespace {

using namespace rowlock;
using namespace std::chrono_literals;

constexpr Statement find_entry{"writer.find_entry",
                               "SELECT count(*) FROM rowlock.audit_log WHERE tenant_id = $1 AND entry_id = $2"};

std::int64_t append_until_told(Database& database, const AuditLog& log, const TenantEntry& next) {
    TransactionPolicy policy{.tenant = next.tenant, .lock_wait_max = 60s, .attempts_max = 100000, .deadline = 240s};
    policy.backoff_max = 100ms;
    policy.was_committed = [&](Transaction& transaction) {
        return transaction.execute(find_entry, {next.tenant, next.entry.id}).only().integer(0) == 1;
    };
    const AppendOutcome outcome =
        database.transact(policy, [&](Transaction& transaction) { return log.append(transaction, next.entry); });
    if (const auto* const appended = std::get_if<Appended>(&outcome)) return appended->seq;
    if (const auto* const already = std::get_if<AlreadyAppended>(&outcome)) return already->seq;
    throw std::runtime_error("the id of " + next.entry.object.value_or("") + " is taken");
}

int lines_of(const std::string& path) {
    std::ifstream file(path);
    int lines = 0;
    for (std::string line; std::getline(file, line);) ++lines;
    return lines;
}

/// A writer may come to life while the server is down.
std::unique_ptr<Database> connect(const char* connection) {
    constexpr int attempts_max = 2400;
    for (int attempt = 1;; ++attempt) {
        try {
            return std::make_unique<Database>(DatabaseOptions{.connection = connection, .connections_max = 1});
        } catch (const ConnectionError& error) {
            if (error.recovery() != Recovery::reconnect_and_run_again || attempt == attempts_max) throw;
        }
        std::this_thread::sleep_for(50ms);
    }
}

int append_all(char** arguments) {
    const std::string report = arguments[2];
    const int writer = std::stoi(arguments[3]);
    const int count = std::stoi(arguments[4]);
    const int tenants = std::stoi(arguments[5]);
    const int file = open(report.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0) throw std::runtime_error("no report can be written: " + report);
    constexpr int said_again = 3;
    const int from = lines_of(report) - said_again;
    const auto database = connect(arguments[0]);
    const AuditLog log(Keyring::load(arguments[1]));
    for (int index = from < 0 ? 0 : from; index < count; ++index) {
        const TenantEntry next = test::entry_of_writer(writer, index, tenants);
        const std::int64_t seq = append_until_told(*database, log, next);
        // In one write: a kill leaves all of the line or nothing.
        const std::string line = std::to_string(index) + " " + next.tenant.text() + " " + std::to_string(seq) + "\n";
        if (write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) return 4;
    }
    return 0;
}

/// Holds the tenant's head until it is killed, or until the server has had enough of it.
int hold(char** arguments) {
    const auto database = connect(arguments[0]);
    const AuditLog log(Keyring::load(arguments[1]));
    const TransactionPolicy policy{.tenant = TenantId(arguments[2]),
                                   .idle_max = std::chrono::milliseconds(std::stol(arguments[3])),
                                   .attempts_max = 1};
    try {
        database->transact(policy, [&](Transaction& transaction) {
            static_cast<void>(log.append(transaction, {.actor = "holder"}));
            transaction.execute({"writer.hold", "SELECT"});
            std::puts("holding");
            std::fflush(stdout);
            std::this_thread::sleep_for(60s);
        });
    } catch (const ConnectionError& error) {
        std::puts(error.sqlstate().c_str());
        return 3;
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    constexpr int append_arguments = 8;
    constexpr int hold_arguments = 6;
    try {
        const std::string verb = argc > 1 ? argv[1] : "";
        if (verb == "append" && argc == append_arguments) return append_all(argv + 2);
        if (verb == "hold" && argc == hold_arguments) return hold(argv + 2);
    } catch (const std::exception& fault) {
        std::fprintf(stderr, "append_writer: %s\n", fault.what());
        return 1;
    }
    std::fprintf(stderr, "usage: see the source\n");
    return 2;
}
