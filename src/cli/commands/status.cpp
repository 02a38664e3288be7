#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands/commands.hpp"
#include "cli/connection.hpp"
#include "cli/output.hpp"
#include "rowlock/checkpoint.hpp"
#include "rowlock/database.hpp"
#include "rowlock/sealer.hpp"

namespace rowlock::cli {

namespace {

constexpr Statement ledger_sql{
    "status.ledger",
    "SELECT heads.tenants, heads.entries,"
    "       coalesce((SELECT sum(pg_total_relation_size(relid))::int8 FROM pg_partition_tree('rowlock.audit_log')),"
    "                pg_total_relation_size('rowlock.audit_log'))"
    "  FROM (SELECT count(*) AS tenants, coalesce(sum(last_seq), 0)::int8 AS entries FROM rowlock.tenant_seq) AS "
    "heads"};

constexpr Statement longest_sql{"status.longest",
                                "SELECT tenant_id, last_seq FROM rowlock.tenant_seq ORDER BY last_seq DESC LIMIT 3"};

/// The rows that every writer rewrites. Dead ones stay while a transaction that is older than them is open.
constexpr Statement bloat_sql{
    "status.bloat",
    "SELECT coalesce(sum(n_live_tup), 0)::int8, coalesce(sum(n_dead_tup), 0)::int8 FROM pg_stat_all_tables"
    " WHERE schemaname = 'rowlock' AND relname IN ('tenant_seq', 'sequence_counter', 'quota')"};

/// Where this role may not see other roles' sessions, there is no row.
constexpr Statement oldest_sql{
    "status.oldest",
    "SELECT pid, (extract(epoch FROM clock_timestamp() - xact_start) * 1000)::int8 FROM pg_stat_activity"
    " WHERE datname = current_database() AND xact_start IS NOT NULL AND pid <> pg_backend_pid()"
    " AND backend_type = 'client backend' ORDER BY xact_start LIMIT 1"};

/// Who holds more than a reader's lock on a table of ours, and who waits behind them: in the queue before an append, a
/// session has not come to a table yet.
constexpr Statement sessions_sql{"status.sessions", R"sql(
WITH held AS (
    SELECT l.pid, string_agg(DISTINCT c.relname, ', ' ORDER BY c.relname) AS tables
      FROM pg_locks AS l
      JOIN pg_class AS c ON c.oid = l.relation
     WHERE l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND c.relnamespace = 'rowlock'::regnamespace AND c.relkind IN ('r', 'p')
       AND l.mode <> 'AccessShareLock' AND l.pid <> pg_backend_pid()
     GROUP BY l.pid
), waiting AS (
    SELECT pid, min(waitstart) AS since, pg_blocking_pids(pid) AS blockers
      FROM pg_locks
     WHERE NOT granted
     GROUP BY pid
)
SELECT pid, a.application_name, a.state, (extract(epoch FROM clock_timestamp() - a.xact_start) * 1000)::int8,
       held.tables, array_to_string(waiting.blockers, ', '),
       (extract(epoch FROM clock_timestamp() - waiting.since) * 1000)::int8
  FROM held
  FULL JOIN waiting USING (pid)
  JOIN pg_stat_activity AS a USING (pid)
 WHERE held.pid IS NOT NULL OR waiting.blockers && (SELECT array_agg(h.pid) FROM held AS h)
 ORDER BY a.xact_start, pid)sql"};

struct SessionOnOurTables {
    std::int64_t pid = 0;
    std::optional<std::string> application{};
    std::optional<std::string> state{};
    std::optional<std::int64_t> open_ms{};
    std::optional<std::string> tables{};
    std::optional<std::string> blocked_by{};  ///< Pids; none: it does not wait.
    std::int64_t waits_ms = 0;
};

struct Longest {
    std::string tenant;
    std::int64_t entries = 0;
};

struct OldestTransaction {
    std::int64_t pid = 0;
    std::int64_t open_ms = 0;
};

struct LedgerStatus {
    std::int64_t tenants = 0;
    std::int64_t entries = 0;
    std::int64_t bytes = 0;
    std::vector<Longest> longest{};
    StagedCount staged{};
    std::optional<NotedCheckpoint> checkpoint{};
    std::int64_t state_rows = 0;
    std::int64_t dead_state_rows = 0;
    std::optional<OldestTransaction> oldest{};
    std::vector<SessionOnOurTables> sessions{};

    [[nodiscard]] std::int64_t waiting() const {
        return std::ranges::count_if(sessions, [](const auto& session) { return session.blocked_by.has_value(); });
    }
    [[nodiscard]] std::int64_t longest_wait_ms() const {
        std::int64_t longest_wait = 0;
        for (const SessionOnOurTables& session : sessions) longest_wait = std::max(longest_wait, session.waits_ms);
        return longest_wait;
    }
};

std::optional<std::int64_t> optional_integer(const Row& row, std::size_t column) {
    return row.is_null(column) ? std::nullopt : std::optional(row.integer(column));
}

void read_ledger(Transaction& transaction, LedgerStatus& status) {
    const Rows ledger = transaction.execute(ledger_sql);
    status.tenants = ledger.only().integer(0);
    status.entries = ledger.only().integer(1);
    status.bytes = ledger.only().integer(2);
    for (const Row row : transaction.execute(longest_sql)) {
        status.longest.push_back({std::string(row.text(0)), row.integer(1)});
    }
}

void read_sessions(Transaction& transaction, LedgerStatus& status) {
    const Rows bloat = transaction.execute(bloat_sql);
    status.state_rows = bloat.only().integer(0);
    status.dead_state_rows = bloat.only().integer(1);
    for (const Row row : transaction.execute(oldest_sql)) status.oldest = {row.integer(0), row.integer(1)};
    for (const Row row : transaction.execute(sessions_sql)) {
        status.sessions.push_back({.pid = row.integer(0),
                                   .application = row.optional_text(1),
                                   .state = row.optional_text(2),
                                   .open_ms = optional_integer(row, 3),
                                   .tables = row.optional_text(4),
                                   .blocked_by = row.optional_text(5),
                                   .waits_ms = optional_integer(row, 6).value_or(0)});
    }
}

LedgerStatus read_status(const Context& context) {
    LedgerStatus status;
    // The auditor reads all tenants; what other roles' sessions do, the login may see and the auditor may not.
    open_database(context, Access::auditor)->transact({}, [&](Transaction& transaction) {
        read_ledger(transaction, status);
        status.staged = count_staged(transaction);
        status.checkpoint = last_noted_checkpoint(transaction);
    });
    open_database(context, Access::owner)->transact({}, [&](Transaction& transaction) {
        read_sessions(transaction, status);
    });
    return status;
}

std::string seconds(std::int64_t milliseconds) {
    return fmt::format("{:.1f} s", static_cast<double>(milliseconds) / 1000);
}

std::string staged_words(const StagedCount& staged) {
    std::string words = "nothing waits for the sealer";
    if (staged.entries > 0) {
        words = fmt::format("{} for the sealer, the oldest for {}",
                            counted(staged.entries, "entry waits", "entries wait"), seconds(staged.oldest.count()));
    }
    if (staged.quarantined == 0) return words;
    return words + fmt::format("; {} in quarantine: look at rowlock.audit_quarantined", grouped(staged.quarantined));
}

std::string age_words(std::chrono::milliseconds age) {
    const double minutes = static_cast<double>(age.count()) / 60'000;
    if (minutes < 2) return seconds(age.count());
    if (minutes < 120) return fmt::format("{:.0f} min", minutes);
    const double hours = minutes / 60;
    return hours < 48 ? fmt::format("{:.1f} h", hours) : fmt::format("{:.1f} days", hours / 24);
}

std::string checkpoint_words(const std::optional<NotedCheckpoint>& checkpoint) {
    if (!checkpoint) return "no checkpoint is noted: rowlock checkpoint makes one";
    return fmt::format("the last checkpoint noted is {} old, of {}, {}", age_words(checkpoint->age),
                       counted(checkpoint->tenants, "tenant", "tenants"),
                       counted(checkpoint->entries, "entry", "entries"));
}

void print_for_people(const Context& context, const LedgerStatus& status) {
    print_line(fmt::format("ledger  {}, {}, {:.1f} MiB", counted(status.tenants, "tenant", "tenants"),
                           counted(status.entries, "entry", "entries"),
                           static_cast<double>(status.bytes) / (1024 * 1024)));
    std::string longest;
    for (const Longest& one : status.longest) {
        longest += fmt::format("{}{} {}", longest.empty() ? "" : ", ", shown(one.tenant), grouped(one.entries));
    }
    if (status.tenants == 0) {
        print_line("        no tenant, or none that this login may see: GRANT rowlock_auditor lets it");
    }
    if (status.tenants > 1) print_line("        the longest: " + longest);
    print_line(fmt::format("staged  {}", staged_words(status.staged)));
    print_line(fmt::format("proof   {}", checkpoint_words(status.checkpoint)));
    print_line(
        fmt::format("state   {}, {} dead", counted(status.state_rows, "row", "rows"), grouped(status.dead_state_rows)));
    if (status.oldest) {
        print_line(fmt::format("        the oldest transaction is {} old (pid {})", seconds(status.oldest->open_ms),
                               status.oldest->pid));
    }
    if (status.sessions.empty()) return print_line("locks   nobody writes to rowlock's tables just now");
    print_line(fmt::format("locks   {} on rowlock's tables, {} waiting",
                           counted(static_cast<std::int64_t>(status.sessions.size()), "session", "sessions"),
                           grouped(status.waiting())));
    Table table({"pid", "application", "state", "open for", "locks rows of", "waits for pid"});
    for (const SessionOnOurTables& session : status.sessions) {
        table.add(
            {std::to_string(session.pid), shown(session.application.value_or("-")), session.state.value_or("-"),
             session.open_ms ? seconds(*session.open_ms) : "-", session.tables.value_or("-"),
             session.blocked_by ? fmt::format("{}, for {}", *session.blocked_by, seconds(session.waits_ms)) : "-"});
    }
    for (const std::string& line : table.lines(context.style)) print_line(line);
}

void print_json(const LedgerStatus& status) {
    std::vector<std::string> longest;
    for (const Longest& one : status.longest) {
        longest.push_back(JsonObject().text("tenant", one.tenant).number("entries", one.entries).str());
    }
    std::vector<std::string> sessions;
    for (const SessionOnOurTables& session : status.sessions) {
        JsonObject object;
        object.number("pid", session.pid).optional_text("application", session.application);
        object.optional_text("state", session.state);
        if (session.open_ms) object.number("open_ms", *session.open_ms);
        object.optional_text("tables", session.tables).raw("blocked_by", "[" + session.blocked_by.value_or("") + "]");
        sessions.push_back(object.number("waits_ms", session.waits_ms).str());
    }
    JsonObject object;
    object.number("tenants", status.tenants).number("entries", status.entries).number("bytes", status.bytes);
    object.raw("longest", json_array(longest));
    object.number("staged", status.staged.entries).number("oldest_staged_ms", status.staged.oldest.count());
    object.number("quarantined", status.staged.quarantined);
    if (status.checkpoint) {
        object.text("checkpoint_made_at", utc_time(status.checkpoint->made_at));
        object.number("checkpoint_age_ms", status.checkpoint->age.count());
        object.number("checkpoint_entries", status.checkpoint->entries);
    }
    object.number("state_rows", status.state_rows).number("dead_state_rows", status.dead_state_rows);
    if (status.oldest) {
        object.number("oldest_transaction_ms", status.oldest->open_ms)
            .number("oldest_transaction_pid", status.oldest->pid);
    }
    print_line(object.raw("sessions", json_array(sessions)).str());
}

/// Source: https://prometheus.io/docs/instrumenting/exposition_formats/
void print_for_prometheus(const LedgerStatus& status) {
    const auto gauge = [](std::string_view name, std::string_view help, double value) {
        print_line(fmt::format("# HELP rowlock_{0} {1}\n# TYPE rowlock_{0} gauge\nrowlock_{0} {2}", name, help, value));
    };
    const auto real = [](std::int64_t value) { return static_cast<double>(value); };
    gauge("tenants", "Tenants that have a state row.", real(status.tenants));
    gauge("entries", "Entries of the audit log, over all tenants.", real(status.entries));
    gauge("audit_log_bytes", "Size of the audit log with its indexes.", real(status.bytes));
    gauge("staged_entries", "Staged entries that are not sealed yet.", real(status.staged.entries));
    gauge("oldest_staged_seconds", "Age of the oldest of them.", real(status.staged.oldest.count()) / 1000);
    gauge("quarantined_entries", "Staged entries that can't be sealed.", real(status.staged.quarantined));
    gauge("last_checkpoint_timestamp_seconds", "When the last checkpoint noted was made; 0 where none is.",
          status.checkpoint ? real(status.checkpoint->made_at) / 1e6 : 0);
    gauge("dead_state_rows", "Dead rows in the tables that every writer rewrites.", real(status.dead_state_rows));
    gauge("sessions", "Sessions that hold or wait for locks on rowlock's tables.",
          static_cast<double>(status.sessions.size()));
    gauge("sessions_waiting", "Those of them that wait.", real(status.waiting()));
    gauge("longest_wait_seconds", "The longest wait among them.", real(status.longest_wait_ms()) / 1000);
    gauge("oldest_transaction_seconds", "Age of the database's oldest transaction; while it is open dead rows stay.",
          status.oldest ? real(status.oldest->open_ms) / 1000 : 0);
}

}  // namespace

Exit show_status(const Context& context, const StatusOptions& options) {
    if (options.prometheus && context.globals.json) throw InvalidInput("--json or --prometheus, not both");
    const LedgerStatus status = read_status(context);
    if (options.prometheus) {
        print_for_prometheus(status);
    } else if (context.globals.json) {
        print_json(status);
    } else {
        print_for_people(context, status);
    }
    return Exit::fine;
}

}  // namespace rowlock::cli
