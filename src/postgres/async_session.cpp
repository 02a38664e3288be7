#include "postgres/async_session.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "base/contract.hpp"
#include "postgres/failure.hpp"

namespace rowlock {

namespace {

using Clock = std::chrono::steady_clock;

/// No signal cuts it short: who is to stop sees that between two waits.
bool poll_until(std::span<pollfd> waited, Clock::time_point give_up_at) {
    while (true) {
        const auto left = std::max(give_up_at - Clock::now(), Clock::duration::zero());
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
        const timespec limit{seconds.count(), std::chrono::nanoseconds(left - seconds).count()};
        const int ready = ppoll(waited.data(), waited.size(), &limit, nullptr);
        if (ready >= 0 || errno != EINTR) return ready > 0;
    }
}

void finish_connecting(PGconn* connection, std::chrono::milliseconds wait_max) {
    const auto give_up_at = Clock::now() + wait_max;
    PostgresPollingStatusType state = PGRES_POLLING_WRITING;
    while (PQstatus(connection) != CONNECTION_BAD && state != PGRES_POLLING_OK && state != PGRES_POLLING_FAILED) {
        const short events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT;
        pollfd waited[] = {{PQsocket(connection), events, 0}};
        if (!poll_until(waited, give_up_at)) {
            throw ConnectionError("no connection within the time given", Recovery::reconnect_and_run_again);
        }
        state = PQconnectPoll(connection);
    }
    if (PQstatus(connection) != CONNECTION_OK) {
        throw connect_failure(PQerrorMessage(connection), false, std::source_location::current());
    }
}

/// "-c name=value", with what the server would take for a separator escaped.
/// Source: https://www.postgresql.org/docs/15/libpq-connect.html#LIBPQ-CONNECT-OPTIONS
std::string as_options(const std::vector<std::pair<std::string, std::string>>& settings) {
    std::string options;
    for (const auto& [name, value] : settings) {
        options += " -c " + name + "=";
        for (const char c : value) {
            if (c == ' ' || c == '\\') options += '\\';
            options += c;
        }
    }
    return options;
}

}  // namespace

AsyncSession::AsyncSession(const std::string& connection,
                           const std::vector<std::pair<std::string, std::string>>& settings,
                           std::chrono::milliseconds wait_max)
    : arrived_(std::make_unique<std::vector<Notice>>()) {
    const std::string options = as_options(settings);
    const char* const keywords[] = {"dbname", "client_encoding", "options", nullptr};
    const char* const values[] = {connection.c_str(), "UTF8", options.c_str(), nullptr};
    connection_.reset(PQconnectStartParams(keywords, values, 1));
    contract(connection_ != nullptr, "there is memory for a connection");
    PQsetErrorVerbosity(connection_.get(), PQERRORS_VERBOSE);
    finish_connecting(connection_.get(), wait_max);
    PQsetErrorVerbosity(connection_.get(), PQERRORS_DEFAULT);
    PQsetnonblocking(connection_.get(), 1);
    // The receiver outlives a move of this object.
    PQsetNoticeReceiver(connection_.get(), &AsyncSession::keep_notice, arrived_.get());
    backend_pid_ = PQbackendPID(connection_.get());
}

void AsyncSession::keep_notice(void* session, const PGresult* result) {
    auto& arrived = *static_cast<std::vector<Notice>*>(session);
    arrived.push_back({field_of(result, PG_DIAG_SEVERITY), field_of(result, PG_DIAG_MESSAGE_PRIMARY)});
}

void AsyncSession::send(const std::string& script) {
    contract(!busy_, "one script at a time");
    busy_ = true;
    if (lost_ || PQsendQuery(connection_.get(), script.c_str()) == 0) {
        lost_ = true;
    }
}

void AsyncSession::take_result(PGresult* result) {
    AsyncResult taken;
    switch (PQresultStatus(result)) {
        case PGRES_COMMAND_OK:
        case PGRES_TUPLES_OK:
        case PGRES_EMPTY_QUERY:
            taken.rows.emplace(std::shared_ptr<void>(result, [](void* p) { PQclear(static_cast<PGresult*>(p)); }));
            break;
        case PGRES_COPY_IN:
            // Nobody is there to send rows.
            PQputCopyEnd(connection_.get(), "a step cannot send COPY data");
            PQclear(result);
            return;
        case PGRES_COPY_OUT:
        case PGRES_COPY_BOTH:
            // What follows can't be told from an answer, so the link is given up.
            taken.failure = ServerReport{.sqlstate = "0A000", .message = "a step cannot read COPY data"};
            PQclear(result);
            connection_.reset();
            lost_ = true;
            break;
        default:
            taken.failure = report_of(result, {});
            PQclear(result);
            break;
    }
    results_.push_back(std::move(taken));
}

void AsyncSession::notice_loss(std::chrono::microseconds wait_max) {
    constexpr int reads_max = 8;
    const AsyncSession* const self[] = {this};
    // The last message and the end of the stream come one after the other.
    for (int reads = 0; reads < reads_max && !busy_ && !lost_ && wait_for_any(self, wait_max); ++reads) {
        lost_ = PQconsumeInput(connection_.get()) == 0 || PQstatus(connection_.get()) == CONNECTION_BAD;
    }
}

bool AsyncSession::advance() {
    if (!busy_) return true;
    PGconn* const connection = connection_.get();
    if (!lost_ && PQflush(connection) < 0) lost_ = true;
    if (!lost_ && PQconsumeInput(connection) == 0) lost_ = true;
    while (connection_ && (lost_ || PQisBusy(connection) == 0)) {
        PGresult* const result = PQgetResult(connection);
        if (result == nullptr) {
            busy_ = false;
            break;
        }
        take_result(result);
    }
    if (!connection_) {
        busy_ = false;
        return true;
    }
    if (PQstatus(connection) == CONNECTION_BAD) lost_ = true;
    // LISTEN's messages are no notices; they are read so that they do not pile up.
    while (PGnotify* const notification = PQnotifies(connection)) {
        arrived_->push_back({"NOTIFY", std::string(notification->relname) + ": " + notification->extra});
        PQfreemem(notification);
    }
    notices_.insert(notices_.end(), arrived_->begin(), arrived_->end());
    arrived_->clear();
    return !busy_;
}

bool AsyncSession::in_transaction() const noexcept {
    const PGTransactionStatusType status = PQtransactionStatus(connection_.get());
    return status == PQTRANS_INTRANS || status == PQTRANS_INERROR;
}

bool AsyncSession::in_failed_transaction() const noexcept {
    return PQtransactionStatus(connection_.get()) == PQTRANS_INERROR;
}

int AsyncSession::socket() const noexcept {
    return PQsocket(connection_.get());
}

void AsyncSession::close() {
    connection_.reset();
    busy_ = false;
    lost_ = true;
}

void AsyncSession::cancel() {
    PGcancel* const request = PQgetCancel(connection_.get());
    if (request == nullptr) return;
    char reason[256];
    PQcancel(request, reason, sizeof reason);
    PQfreeCancel(request);
}

bool wait_for_any(std::span<const AsyncSession* const> sessions, std::chrono::microseconds wait_max) {
    std::vector<pollfd> poll_on;
    poll_on.reserve(sessions.size());
    for (const AsyncSession* session : sessions) poll_on.push_back({session->socket(), POLLIN, 0});
    const auto give_up_at = Clock::now() + wait_max;
    // Most answers come sooner than a process that sleeps is woken.
    constexpr std::chrono::microseconds spin_max(100);
    const auto spin_until = std::min(give_up_at, Clock::now() + spin_max);
    while (Clock::now() < spin_until) {
        if (poll(poll_on.data(), poll_on.size(), 0) > 0) return true;
    }
    return poll_until(poll_on, give_up_at);
}

}  // namespace rowlock
