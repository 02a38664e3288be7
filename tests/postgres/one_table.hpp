// What the tests of transactions share: a database with one table, and transactions on it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "rowlock/database.hpp"
#include "support/cutting_proxy.hpp"
#include "support/test_database.hpp"
#include "support/test_server.hpp"

namespace rowlock {

using namespace std::chrono_literals;

constexpr Statement insert_row{"test.insert", "INSERT INTO public.item VALUES ($1, $2)"};
constexpr Statement lock_row{"test.lock", "SELECT note FROM public.item WHERE id = $1 FOR UPDATE", true};
constexpr Statement sleep_for{"test.sleep", "SELECT pg_sleep($1)"};
constexpr Statement terminate{"test.terminate", "SELECT pg_terminate_backend($1)"};

class OneTable : public testing::Test {
  protected:
    OneTable() { created_.execute("CREATE TABLE public.item (id int PRIMARY KEY, note text)"); }

    [[nodiscard]] DatabaseOptions options(std::size_t connections_max = 16) const {
        return {.connection = created_.connection(), .connections_max = connections_max};
    }
    [[nodiscard]] std::string value(const std::string& sql) const { return created_.value(sql); }
    [[nodiscard]] int count() const { return std::stoi(value("SELECT count(*) FROM public.item")); }
    /// Ends every session of this database.
    void terminate_all() const {
        created_.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()");
    }

    static void insert(Transaction& transaction, int id) { transaction.execute(insert_row, {id, "note"}); }

    /// Waits until the condition, a query that gives t, holds.
    [[nodiscard]] bool comes_true(const std::string& sql, std::chrono::milliseconds limit = 10s) const {
        const auto give_up_at = std::chrono::steady_clock::now() + limit;
        while (std::chrono::steady_clock::now() < give_up_at) {
            if (value(sql) == "t") return true;
            std::this_thread::sleep_for(5ms);
        }
        return false;
    }

    test::TestDatabase created_;
};

/// The fault of this type that `call` throws; a failure, and none, if it throws something else or nothing.
template <class Fault, class Call>
std::optional<Fault> fault_of(Call&& call) {
    try {
        call();
        ADD_FAILURE() << "nothing was thrown";
    } catch (const Fault& fault) {
        return fault;
    } catch (const std::exception& other) {
        ADD_FAILURE() << "another fault: " << other.what();
    }
    return std::nullopt;
}

inline std::chrono::milliseconds since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
}

}  // namespace rowlock
