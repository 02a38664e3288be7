// The ways to number and append that bench_append compares.
#pragma once

#include <deque>
#include <functional>
#include <future>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "postgres/session.hpp"
#include "rowlock/appender.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/database.hpp"

namespace rowlock::cli {

/// What one client works with.
struct AppendClient {
    Database& app;
    Database& owner;
    Session& bare;
    const AuditLog& log;
    Appender& appender;
    std::minstd_rand dice;
    std::deque<std::future<AppendOutcome>> under_way{};
};

struct AppendWay {
    std::string_view name;
    std::function<void(AppendClient&, const TenantId&)> append;
    bool in_table = true;  ///< Measured for every number of tenants and clients, not for one comparison alone.
};

constexpr std::size_t way_plain = 0;
constexpr std::size_t way_ours = 2;
constexpr std::size_t way_gathered = 3;
constexpr std::size_t way_article = 4;
constexpr std::size_t way_under_way = 7;

/// How many appends each client of `way_under_way` has not waited for yet.
constexpr std::size_t appends_under_way = 64;

/// Makes what the ways write to; with message-db's script if that is not empty.
void make_append_tables(Database& owner, const std::string& message_db);

/// In the order of the numbers above; message-db last, if it is wanted.
[[nodiscard]] std::vector<AppendWay> append_ways(bool with_message_db);

/// Waits for what the client has under way.
void finish_appends(AppendClient& client);

}  // namespace rowlock::cli
