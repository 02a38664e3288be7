#include "support/test_database.hpp"

#include <libpq-fe.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <thread>

#include "support/test_server.hpp"

namespace rowlock::test {

namespace {

constexpr std::chrono::seconds server_wait_max{60};

/// Unlike any other of this run (the process and a count) and of an earlier run on the same server (the time).
std::string unique_name() {
    static std::atomic<unsigned> count{0};
    const auto time = std::chrono::system_clock::now().time_since_epoch() / std::chrono::microseconds{1};
    return "test_" + std::to_string(time % 1'000'000'000) + "_" + std::to_string(getpid()) + "_" +
           std::to_string(++count);
}

/// Later keywords win over earlier ones.
std::string with_keywords(const std::string& connection, const std::string& keywords) {
    return connection + " " + keywords;
}

}  // namespace

std::string run_sql(const std::string& connection, std::string_view sql) {
    const std::unique_ptr<PGconn, decltype(&PQfinish)> link(PQconnectdb(connection.c_str()), &PQfinish);
    if (PQstatus(link.get()) != CONNECTION_OK) throw std::runtime_error(PQerrorMessage(link.get()));
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQexec(link.get(), std::string(sql).c_str()), &PQclear);
    const ExecStatusType status = PQresultStatus(result.get());
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        throw std::runtime_error(PQresultErrorMessage(result.get()));
    }
    return PQntuples(result.get()) > 0 && PQnfields(result.get()) > 0 ? PQgetvalue(result.get(), 0, 0) : "";
}

void await_server(const std::string& connection, BackgroundProcess& process) {
    const auto deadline = std::chrono::steady_clock::now() + server_wait_max;
    while (true) {
        try {
            run_sql(connection, "SELECT 1");
            return;
        } catch (const std::runtime_error& fault) {
            if (!process.running() || std::chrono::steady_clock::now() > deadline) {
                throw std::runtime_error(std::string("the server did not come up: ") + fault.what() + process.errors());
            }
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
}

TestDatabase::TestDatabase() : name_(unique_name()) {
    run_sql(test_server().connection, "CREATE DATABASE " + name_);
}

TestDatabase::~TestDatabase() {
    try {
        const std::string connection = test_server().connection;
        run_sql(connection, "DROP DATABASE IF EXISTS " + name_ + " WITH (FORCE)");
        for (const TestLogin& login : logins_) run_sql(connection, "DROP ROLE IF EXISTS " + login.role);
    } catch (const std::exception& fault) {
        std::fprintf(stderr, "%s was not dropped: %s\n", name_.c_str(), fault.what());
    }
}

std::string TestDatabase::connection() const {
    return with_keywords(test_server().connection, "dbname=" + name_);
}

std::string TestDatabase::connection_as(const TestLogin& login) const {
    return with_keywords(connection(), "user=" + login.role + " password=" + login.password);
}

const TestLogin& TestDatabase::add_login(std::string_view suffix, std::string_view attributes) {
    TestLogin login{name_ + "_" + std::string(suffix), "password-of-a-test"};
    execute("CREATE ROLE " + login.role + " LOGIN " + std::string(attributes) + " PASSWORD '" + login.password + "'");
    return logins_.emplace_back(std::move(login));
}

void TestDatabase::execute(std::string_view sql) const {
    run_sql(connection(), sql);
}
std::string TestDatabase::value(std::string_view sql) const {
    return run_sql(connection(), sql);
}

}  // namespace rowlock::test
