#include "postgres/session.hpp"

#include <fmt/format.h>
#include <libpq-fe.h>
#include <poll.h>

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

constexpr int server_version_min = 150000;
/// Past this, statements go unnamed: they cost a parse each, the server's memory stays bounded.
constexpr std::size_t prepared_max = 256;
/// A server that has not said a word for this long is taken for lost. Locks and idle transactions have limits of their
/// own, far below; a link that died is found by TCP keep-alive, in about 25 s.
constexpr auto reply_wait_max = std::chrono::hours(6);

using ResultPointer = std::unique_ptr<PGresult, decltype(&PQclear)>;

ResultPointer owned(PGresult* result) {
    return {result, &PQclear};
}

int poll_socket(PGconn* connection, short events, std::chrono::milliseconds wait_max) {
    pollfd descriptor{PQsocket(connection), events, 0};
    const int ready = poll(&descriptor, 1, static_cast<int>(wait_max.count()));
    if (ready < 0 && errno == EINTR) return 1;
    return ready;
}

/// Named by content: should a pooler go unnoticed, this name can't mean another text anywhere.
std::string prepared_name(const Statement& statement) {
    return fmt::format("rowlock_{:016x}", fnv1a_64(statement.sql));
}

}  // namespace

void Session::Closer::operator()(DriverConnection* connection) const noexcept {
    PQfinish(connection);
}

Session::Session(const DatabaseOptions& options, std::source_location where) {
    connect(options, where);
    greet(where);
    PQsetnonblocking(connection_.get(), 1);
    PQenterPipelineMode(connection_.get());
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
    const auto give_up_at = Clock::now() + options.connect_wait_max;
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;
    while (PQstatus(connection) != CONNECTION_BAD && state != PGRES_POLLING_OK && state != PGRES_POLLING_FAILED) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(give_up_at - Clock::now());
        if (left.count() <= 0 ||
            poll_socket(connection, state == PGRES_POLLING_READING ? POLLIN : POLLOUT, left) == 0) {
            throw ConnectionError(fmt::format("no connection within {} s", options.connect_wait_max.count()),
                                  Recovery::reconnect_and_run_again, {}, where);
        }
        state = PQconnectPoll(connection);
    }
    if (PQstatus(connection) != CONNECTION_OK) throw connect_failure(PQerrorMessage(connection), where);
    PQsetErrorVerbosity(connection, PQERRORS_DEFAULT);
    PQsetNoticeProcessor(connection, [](void*, const char*) {}, nullptr);
}

void Session::greet(std::source_location where) {
    PGconn* const connection = connection_.get();
    const auto result = owned(PQexec(connection,
                                     "SELECT pg_backend_pid(), current_setting('server_version_num'),"
                                     " current_setting('server_version'), getdatabaseencoding(),"
                                     " (SELECT extract(epoch FROM backend_start) FROM pg_stat_activity"
                                     " WHERE pid = pg_backend_pid())"));
    if (PQresultStatus(result.get()) != PGRES_TUPLES_OK) throw connect_failure(PQerrorMessage(connection), where);
    const Rows rows{std::shared_ptr<void>(const_cast<PGresult*>(result.get()), [](void*) {})};
    const Row row = rows.only();
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
    // A pooler makes up the process id that it tells at connect. Behind one, statements stay unnamed: in transaction
    // mode a named one may meet a server connection that has never heard of it.
    prepares_ = backend_pid_ == PQbackendPID(connection);
}

void Session::require_sent(int accepted) {
    if (accepted == 1) return;
    usable_ = false;
}

void Session::queue(const Statement& statement, const std::vector<Parameter>& parameters) {
    if (!usable_) {
        queue_.push_back({statement, false});
        return;
    }
    PGconn* const connection = connection_.get();
    std::vector<const char*> values;
    values.reserve(parameters.size());
    for (const Parameter& parameter : parameters) {
        values.push_back(parameter.text() ? parameter.text()->c_str() : nullptr);
    }
    const auto count = static_cast<int>(values.size());
    const std::string name = prepares_ ? prepared_name(statement) : std::string();
    const bool known = prepared_.contains(name);
    if (!prepares_ || (!known && prepared_.size() >= prepared_max)) {
        require_sent(PQsendQueryParams(connection, std::string(statement.sql).c_str(), count, nullptr, values.data(),
                                       nullptr, nullptr, 0));
    } else {
        if (!known) {
            require_sent(PQsendPrepare(connection, name.c_str(), std::string(statement.sql).c_str(), 0, nullptr));
            prepared_.insert(name);
            queue_.push_back({statement, true});
        }
        require_sent(PQsendQueryPrepared(connection, name.c_str(), count, values.data(), nullptr, nullptr, 0));
    }
    queue_.push_back({statement, false});
}

void Session::wait_for(bool write_too) {
    const auto slice = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::seconds(60));
    const auto give_up_at = Clock::now() + reply_wait_max;
    const auto events = static_cast<short>(write_too ? POLLIN | POLLOUT : POLLIN);
    while (poll_socket(connection_.get(), events, slice) == 0) {
        if (Clock::now() > give_up_at) usable_ = false;
        if (!usable_) return;
    }
}

void Session::send_all() {
    PGconn* const connection = connection_.get();
    while (usable_) {
        const int state = PQflush(connection);
        if (state == 0) return;
        if (state < 0) {
            usable_ = false;
            return;
        }
        // The server may be waiting for us to read before it reads on.
        wait_for(true);
        if (PQconsumeInput(connection) == 0) usable_ = false;
    }
}

PGresult* Session::next_result() {
    PGconn* const connection = connection_.get();
    while (usable_ && PQisBusy(connection) == 1) {
        wait_for(false);
        if (usable_ && PQconsumeInput(connection) == 0) break;  // the message is in the next result
    }
    return PQgetResult(connection);
}

FailedStatement Session::failure(std::size_t index, const PGresult* result, std::string_view statement) {
    FailedStatement failed{index, {}, false};
    if (result != nullptr) {
        failed.report = report_of(result, statement);
    } else {
        failed.report.message = first_line(PQerrorMessage(connection_.get()));
        failed.report.statement = std::string(statement);
    }
    if (PQstatus(connection_.get()) == CONNECTION_BAD || failed.report.sqlstate.empty() ||
        ends_session(failed.report.sqlstate)) {
        usable_ = false;
    }
    failed.session_over = !usable_;
    return failed;
}

void Session::take_result(std::size_t index, PGresult* result, Outcome& outcome) {
    const Queued& queued = queue_[index];
    switch (PQresultStatus(result)) {
        case PGRES_COMMAND_OK:
        case PGRES_TUPLES_OK:
        case PGRES_EMPTY_QUERY:
            if (queued.prepares) {
                PQclear(result);
            } else {
                outcome.rows.emplace_back(
                    std::shared_ptr<void>(result, [](void* p) { PQclear(static_cast<PGresult*>(p)); }));
            }
            return;
        default: {
            if (queued.prepares) prepared_.erase(prepared_name(queued.statement));
            if (!outcome.failed) outcome.failed = failure(outcome.rows.size(), result, queued.statement.name);
            PQclear(result);
            return;
        }
    }
}

Session::Outcome Session::flush() {
    Outcome outcome;
    if (usable_) require_sent(PQpipelineSync(connection_.get()));
    send_all();
    for (std::size_t index = 0; index < queue_.size(); ++index) {
        PGresult* const result = usable_ || PQstatus(connection_.get()) == CONNECTION_OK ? next_result() : nullptr;
        if (result == nullptr) {
            usable_ = false;
            if (!outcome.failed) outcome.failed = failure(outcome.rows.size(), nullptr, queue_[index].statement.name);
            break;
        }
        take_result(index, result, outcome);
        while (PGresult* const more = next_result()) PQclear(more);
    }
    queue_.clear();
    if (usable_) {
        const auto sync = owned(next_result());
        if (PQresultStatus(sync.get()) != PGRES_PIPELINE_SYNC) usable_ = false;
    }
    return outcome;
}

void Session::read_copy(const std::function<void(std::span<const std::byte>)>* piece) {
    PGconn* const connection = connection_.get();
    while (true) {
        char* data = nullptr;
        const int length = PQgetCopyData(connection, &data, 1);
        if (length > 0) {
            const std::unique_ptr<char, decltype(&PQfreemem)> guard(data, &PQfreemem);
            if (piece != nullptr) (*piece)(std::as_bytes(std::span(data, static_cast<std::size_t>(length))));
        } else if (length == 0) {
            wait_for(false);
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
    PQexitPipelineMode(connection);
    const std::string text(statement.sql);
    require_sent(PQsendQuery(connection, text.c_str()));
    send_all();
    queue_.push_back({statement, false});
    while (PGresult* const result = usable_ ? next_result() : nullptr) {
        if (PQresultStatus(result) == PGRES_COPY_OUT) {
            PQclear(result);
            try {
                read_copy(piece);
            } catch (...) {
                // The rest of the COPY is still on the link: not worth reading.
                usable_ = false;
                queue_.clear();
                throw;
            }
        } else {
            take_result(0, result, outcome);
        }
    }
    queue_.clear();
    if (!usable_ && !outcome.failed) outcome.failed = failure(0, nullptr, statement.name);
    if (usable_) PQenterPipelineMode(connection);
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
    const PGTransactionStatusType status = PQtransactionStatus(connection_.get());
    return status == PQTRANS_INTRANS || status == PQTRANS_INERROR;
}

}  // namespace rowlock
