#include "postgres/session.hpp"

#include <fmt/format.h>
#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/contract.hpp"
#include "base/hash.hpp"
#include "postgres/connection_string.hpp"
#include "postgres/failure.hpp"
#include "postgres/sqlstate.hpp"

namespace rowlock {

namespace {

using Clock = std::chrono::steady_clock;

/// Past this, statements go unnamed: they cost a parse each, the server's memory stays bounded.
constexpr std::size_t prepared_max = 256;
/// A server that has not said a word for this long is taken for lost. Locks and idle transactions have limits of their
/// own, far below; a link that died is found by TCP keep-alive, in about 25 s.
constexpr auto reply_wait_max = std::chrono::hours(6);

constexpr auto poll_slice = std::chrono::milliseconds(std::chrono::seconds(60));

using ResultPointer = std::unique_ptr<PGresult, decltype(&PQclear)>;

ResultPointer owned(PGresult* result) {
    return {result, &PQclear};
}

/// False once it is later than `give_up_at`. True for a link that is gone: the next call on it says so.
bool wait_until_ready(const PGconn* connection, short events, Clock::time_point give_up_at) {
    while (true) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(give_up_at - Clock::now());
        if (left.count() <= 0) return false;
        pollfd descriptor{PQsocket(connection), events, 0};
        if (descriptor.fd < 0) return true;
        const int ready = poll(&descriptor, 1, static_cast<int>(std::min(left, poll_slice).count()));
        if (ready > 0 || (ready < 0 && errno != EINTR)) return true;
    }
}

bool readable_now(const PGconn* connection) {
    pollfd descriptor{PQsocket(connection), POLLIN, 0};
    return descriptor.fd < 0 || poll(&descriptor, 1, 0) > 0;
}

constexpr Statement greeting{"session.greet",
                             "SELECT pg_backend_pid(), current_setting('server_version_num'),"
                             " current_setting('server_version'), getdatabaseencoding(),"
                             " (SELECT extract(epoch FROM backend_start) FROM pg_stat_activity"
                             " WHERE pid = pg_backend_pid()),"
                             " (SELECT setting FROM pg_settings WHERE name = 'deadlock_timeout'),"
                             " to_regprocedure('rowlock.tell_nodes(text, text)') IS NOT NULL"};

/// Named by content: should a pooler go unnoticed, this name can't mean another text anywhere.
std::string prepared_name(const Statement& statement) {
    return fmt::format("rowlock_{:016x}", fnv1a_64(statement.sql));
}

ConnectionError too_slow(const DatabaseOptions& options, std::source_location where) {
    return {fmt::format("no connection within {} s", options.connect_wait_max.count()),
            Recovery::reconnect_and_run_again,
            {},
            where};
}

}  // namespace

void Session::Closer::operator()(DriverConnection* connection) const noexcept {
    PQfinish(connection);
}

Session::Session(const DatabaseOptions& options, std::source_location where) {
    reply_by_ = Clock::now() + options.connect_wait_max;
    connect(options, where);
    PQsetnonblocking(connection_.get(), 1);
    PQenterPipelineMode(connection_.get());
    greet(options, where);
    reply_by_.reset();
}

void Session::connect(const DatabaseOptions& options, std::source_location where) {
    require_readable(options.connection);
    // Later entries win: first what the connection string may override, then the string, then what it may not.
    const std::array keywords{
        "fallback_application_name", "keepalives_idle", "keepalives_interval", "keepalives_count",
        "tcp_user_timeout",          "dbname",          "client_encoding",     static_cast<const char*>(nullptr)};
    const std::array values{options.application_name.c_str(),
                            "10",
                            "5",
                            "3",
                            "25000",
                            options.connection.empty() ? nullptr : options.connection.c_str(),
                            "UTF8",
                            static_cast<const char*>(nullptr)};
    connection_.reset(PQconnectStartParams(keywords.data(), values.data(), 1));
    contract(connection_ != nullptr, "there is memory for a connection");
    PGconn* const connection = connection_.get();
    // Only at this verbosity does a refused connection tell its SQLSTATE.
    PQsetErrorVerbosity(connection, PQERRORS_VERBOSE);
    PQsetNoticeReceiver(connection, &Session::hear, this);
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;
    while (PQstatus(connection) != CONNECTION_BAD && state != PGRES_POLLING_OK && state != PGRES_POLLING_FAILED) {
        if (!wait_for(state == PGRES_POLLING_READING ? POLLIN : POLLOUT)) throw too_slow(options, where);
        state = PQconnectPoll(connection);
    }
    if (PQstatus(connection) != CONNECTION_OK) {
        throw connect_failure(PQerrorMessage(connection), PQconnectionNeedsPassword(connection) == 1, where);
    }
    PQsetErrorVerbosity(connection, PQERRORS_DEFAULT);
}

void Session::greet(const DatabaseOptions& options, std::source_location where) {
    queue(greeting, {});
    const Outcome outcome = flush();
    if (!outcome.failed) {
        take_greeting(outcome.rows.front().only(), where);
        return;
    }
    const ServerReport& report = outcome.failed->report;
    if (report.sqlstate.empty() && Clock::now() >= *reply_by_) throw too_slow(options, where);
    throw ConnectionError(report.message, outcome.failed->recovery, report.sqlstate, where);
}

void Session::take_greeting(const Row& row, std::source_location where) {
    if (row.integer(1) < server_version_min) {
        throw SetupError(fmt::format("the server is PostgreSQL {}; rowlock needs 15 or later", row.text(2)), where);
    }
    if (row.text(3) != "UTF8") {
        throw SetupError(fmt::format("the database's encoding is {}; rowlock needs UTF8: "
                                     "CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0",
                                     row.text(3)),
                         where);
    }
    backend_pid_ = static_cast<int>(row.integer(0));
    backend_start_ = row.optional_text(4).value_or("");
    deadlock_timeout_ = std::chrono::milliseconds(row.integer(5));
    distributed_ = row.boolean(6);
    // A pooler makes up the process id that it tells at connect. Behind one, statements stay unnamed: in transaction
    // mode a named one may meet a server connection that has never heard of it.
    prepares_ = backend_pid_ == PQbackendPID(connection_.get());
}

/// Notices are not shown. One that ends the session while nothing is under way comes as a notice, too.
void Session::hear(void* session, const PGresult* notice) {
    if (is_fatal(notice)) static_cast<Session*>(session)->farewell_ = report_of(notice, "");
}

bool Session::still_usable() {
    constexpr int reads_max = 8;
    PGconn* const connection = connection_.get();
    for (int i = 0; usable_ && i < reads_max && readable_now(connection); ++i) {
        if (PQconsumeInput(connection) == 0) usable_ = false;
        PQisBusy(connection);  // takes in what was read
        if (!farewell_.sqlstate.empty()) usable_ = false;
    }
    return usable_;
}

void Session::note_sent(int accepted) {
    sent_ = true;
    // Refused on a good link, for want of memory: then no answer comes to wait for. On one that is lost, what the
    // server said before is still to be read.
    if (accepted == 0 && PQstatus(connection_.get()) == CONNECTION_OK) usable_ = false;
}

void Session::queue(const Statement& statement, const std::vector<Parameter>& parameters) {
    contract(parameters.size() <= parameters_max, "a statement has at most 65535 parameters");
    // A link that is lost before anything of a flush goes out leaves no doubt about what was done.
    if (!(queue_.empty() ? still_usable() : usable_)) {
        queue_.push_back({statement, false});
        return;
    }
    PGconn* const connection = connection_.get();
    std::vector<const char*> values;
    std::vector<int> lengths;
    std::vector<int> formats;
    for (const Parameter& parameter : parameters) {
        values.push_back(parameter.text() ? parameter.text()->c_str() : nullptr);
        lengths.push_back(parameter.text() ? static_cast<int>(parameter.text()->size()) : 0);
        formats.push_back(parameter.is_binary() ? 1 : 0);
    }
    const auto count = static_cast<int>(values.size());
    const std::string name = prepares_ ? prepared_name(statement) : std::string();
    const bool known = prepared_.contains(name);
    if (!prepares_ || (!known && prepared_.size() >= prepared_max)) {
        note_sent(PQsendQueryParams(connection, std::string(statement.sql).c_str(), count, nullptr, values.data(),
                                    lengths.data(), formats.data(), 0));
    } else {
        if (!known) {
            note_sent(PQsendPrepare(connection, name.c_str(), std::string(statement.sql).c_str(), 0, nullptr));
            prepared_.insert(name);
            queue_.push_back({statement, true});
        }
        note_sent(
            PQsendQueryPrepared(connection, name.c_str(), count, values.data(), lengths.data(), formats.data(), 0));
    }
    queue_.push_back({statement, false});
}

bool Session::wait_for(short events) {
    return wait_until_ready(connection_.get(), events, reply_by_.value_or(Clock::now() + reply_wait_max));
}

void Session::send_all() {
    PGconn* const connection = connection_.get();
    // A link that is lost here shows when the answers are read: the server may have said why.
    while (PQflush(connection) > 0) {
        // The server may be waiting for us to read before it reads on.
        if (!wait_for(POLLIN | POLLOUT)) {
            usable_ = false;
            return;
        }
        if (PQconsumeInput(connection) == 0) return;
    }
}

/// Null at the end of a statement's results, and where no answer came in time.
PGresult* Session::next_result() {
    PGconn* const connection = connection_.get();
    while (PQisBusy(connection) == 1 && PQstatus(connection) == CONNECTION_OK) {
        if (!wait_for(POLLIN)) {
            usable_ = false;
            return nullptr;
        }
        if (PQconsumeInput(connection) == 0) break;
    }
    // Of a link that is lost this gives what was still read from it, then the reason.
    return PQgetResult(connection);
}

bool Session::is_last(std::size_t index) const {
    const auto statements = std::ranges::count_if(queue_, [](const Queued& queued) { return !queued.prepares; });
    return index + 1 >= static_cast<std::size_t>(statements);
}

FailedStatement Session::failure(std::size_t index, const PGresult* result, const Statement& statement) {
    FailedStatement failed{.index = index};
    if (result != nullptr) {
        failed.report = report_of(result, statement.name);
    } else {
        failed.report = farewell_;
        failed.report.statement = std::string(statement.name);
        if (farewell_.message.empty()) failed.report.message = first_line(PQerrorMessage(connection_.get()));
        if (failed.report.message.empty()) failed.report.message = "no answer came";
    }
    const std::string& code = failed.report.sqlstate;
    failed.recovery = code.empty() ? Recovery::reconnect_and_run_again : recovery_of(code);
    if (is_copy(result)) {
        failed.report.sqlstate = "0A000";
        failed.report.message = "COPY is for copy_out, and only TO STDOUT";
        failed.recovery = Recovery::give_up;
        failed.session_over = true;
    } else if (code.empty() || result == nullptr || is_fatal(result)) {
        // A pooler speaks up only where no answer to anything had come. It knows no other code for that than 08P01.
        failed.last_in_doubt = sent_ && (code.empty() || !prepares_ || is_last(index));
        if (!prepares_ && code.starts_with("08")) failed.recovery = Recovery::reconnect_and_run_again;
        failed.session_over = true;
    } else if (has_stale_statements(result)) {
        failed.recovery = Recovery::reconnect_and_run_again;
        failed.session_over = true;
    } else {
        failed.last_in_doubt = failed.recovery == Recovery::ask_server_first;
    }
    if (failed.session_over) usable_ = false;
    return failed;
}

void Session::take_result(std::size_t index, PGresult* result, Outcome& outcome) {
    const Queued& queued = queue_[index];
    const ExecStatusType status = PQresultStatus(result);  // of null: PGRES_FATAL_ERROR
    const bool good = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY;
    if (good && !queued.prepares) {
        outcome.rows.emplace_back(std::shared_ptr<void>(result, [](void* p) { PQclear(static_cast<PGresult*>(p)); }));
        return;
    }
    const auto guard = owned(result);
    if (good) return;
    if (queued.prepares) prepared_.erase(prepared_name(queued.statement));
    if (!outcome.failed) outcome.failed = failure(outcome.rows.size(), result, queued.statement);
}

std::vector<Rows> Session::Outcome::rows_or_throw() && {
    if (failed) throw ServerError(failed->report, failed->recovery);
    return std::move(rows);
}

Session::Outcome Session::flush() {
    Outcome outcome;
    if (usable_) {
        note_sent(PQpipelineSync(connection_.get()));
        if (usable_) send_all();
    }
    for (std::size_t index = 0; index < queue_.size() && usable_; ++index) {
        PGresult* const result = next_result();
        take_result(index, result, outcome);
        while (PGresult* const more = usable_ && result != nullptr ? next_result() : nullptr) PQclear(more);
    }
    if (usable_) {
        const auto sync = owned(next_result());
        if (PQresultStatus(sync.get()) != PGRES_PIPELINE_SYNC) usable_ = false;
    } else if (!outcome.failed && !queue_.empty()) {
        outcome.failed = failure(outcome.rows.size(), nullptr, queue_.front().statement);
    }
    queue_.clear();
    sent_ = false;
    return outcome;
}

void Session::read_copy(const std::function<void(std::span<const std::byte>)>& piece) {
    PGconn* const connection = connection_.get();
    while (true) {
        char* data = nullptr;
        const int length = PQgetCopyData(connection, &data, 1);
        if (length > 0) {
            const std::unique_ptr<char, decltype(&PQfreemem)> guard(data, &PQfreemem);
            piece(std::as_bytes(std::span(data, static_cast<std::size_t>(length))));
        } else if (length == 0) {
            if (!wait_for(POLLIN)) usable_ = false;
            if (!usable_ || PQconsumeInput(connection) == 0) return;
        } else {
            return;
        }
    }
}

Session::Outcome Session::read_simple(const Statement& statement,
                                      const std::function<void(std::span<const std::byte>)>* piece) {
    contract(queue_.empty(), "nothing is queued when a script or a COPY starts");
    Outcome outcome;
    PGconn* const connection = connection_.get();
    queue_.push_back({statement, false});
    if (still_usable()) note_sent(PQexitPipelineMode(connection));
    if (usable_) note_sent(PQsendQuery(connection, std::string(statement.sql).c_str()));
    if (usable_) send_all();
    while (PGresult* const result = usable_ ? next_result() : nullptr) {
        if (PQresultStatus(result) == PGRES_COPY_OUT && piece != nullptr) {
            PQclear(result);
            try {
                read_copy(*piece);
            } catch (...) {
                // The rest of the COPY is still on the link: not worth reading.
                usable_ = false;
                queue_.clear();
                sent_ = false;
                throw;
            }
        } else {
            take_result(0, result, outcome);
        }
    }
    if (!usable_ && !outcome.failed) outcome.failed = failure(0, nullptr, statement);
    if (usable_ && PQenterPipelineMode(connection) == 0) usable_ = false;
    queue_.clear();
    sent_ = false;
    return outcome;
}

Session::Outcome Session::run_script(const Statement& script) {
    return read_simple(script, nullptr);
}

Session::Outcome Session::copy_out(const Statement& statement,
                                   const std::function<void(std::span<const std::byte>)>& piece) {
    return read_simple(statement, &piece);
}

bool Session::in_transaction() const noexcept {
    return PQtransactionStatus(connection_.get()) != PQTRANS_IDLE;
}

}  // namespace rowlock
