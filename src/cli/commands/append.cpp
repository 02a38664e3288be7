#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <variant>

#include "cli/commands/commands.hpp"
#include "cli/connection.hpp"
#include "cli/explain.hpp"
#include "cli/interruption.hpp"
#include "cli/jsonl.hpp"
#include "cli/line_reader.hpp"
#include "cli/line_writers.hpp"
#include "cli/output.hpp"
#include "cli/trust.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/error.hpp"
#include "rowlock/subject_keys.hpp"

namespace rowlock::cli {

namespace {

using Clock = std::chrono::steady_clock;

/// Bad lines that are told one by one; the rest is counted.
constexpr std::size_t bad_lines_told_max = 20;

AuditEntry entry_of(const AppendOptions& options) {
    AuditEntry entry;
    if (options.entry_id) entry.id = EntryId::parse(*options.entry_id);
    entry.actor = options.actor;
    entry.action = options.action;
    entry.object = options.object;
    entry.data = options.data;
    if (options.subject) {
        SubjectKeys keys(subject_keys_path(options.subject_keys));
        entry.data = keys.seal(*options.subject, TenantId(*options.tenant), entry);
    }
    return entry;
}

Exit append_one(const Context& context, const AppendOptions& options) {
    const TenantId tenant(*options.tenant);
    const AuditEntry entry = entry_of(options);
    const auto database = open_database(context, Access::app);
    const AuditLog log(open_keyring(context));
    const AppendOutcome outcome = database->transact(
        {.tenant = tenant}, [&](Transaction& transaction) { return log.append(transaction, entry); });
    const std::int64_t seq = std::visit([](const auto& any) { return any.seq; }, outcome);
    if (std::holds_alternative<EntryIdTaken>(outcome)) {
        throw InvalidInput(
            fmt::format("entry id {} is there with other content, as entry {} of tenant {}; nothing was "
                        "appended",
                        entry.id.text(), seq, tenant.text()));
    }
    const bool appended = std::holds_alternative<Appended>(outcome);
    if (context.globals.json) {
        JsonObject object;
        object.text("tenant", tenant.text()).number("seq", seq).text("entry_id", entry.id.text());
        print_line(object.text("outcome", appended ? "appended" : "already_appended").str());
    } else {
        print_line(fmt::format("{} {}  {}{}", shown(tenant.text()), seq, entry.id.text(),
                               appended ? "" : "  (was there already)"));
    }
    return Exit::fine;
}

struct Reading {
    std::int64_t lines = 0;      ///< Not counting blank ones.
    std::int64_t last_line = 0;  ///< The number of the last that was read, blank or not.
    std::vector<RefusedLine> bad;
};

/// What the lines say, and what they are encrypted with where they name a subject.
std::variant<TenantEntry, BadLine> entry_of_line(std::string_view line, SubjectKeys& keys) {
    auto parsed = parse_line(line);
    if (auto* const bad = std::get_if<BadLine>(&parsed)) return std::move(*bad);
    auto& entry = std::get<JsonlEntry>(parsed);
    if (entry.subject) entry.entry.data = keys.seal(*entry.subject, entry.tenant, entry.entry);
    return TenantEntry{std::move(entry.tenant), std::move(entry.entry)};
}

Reading read_lines(LineReader& reader, const AppendOptions& options, LineWriters& writers, Interruption& interruption,
                   Progress& progress) {
    Reading reading;
    SubjectKeys subjects(subject_keys_path(options.subject_keys));
    const auto started = Clock::now();
    while (auto line = reader.next(interruption)) {
        reading.last_line = reader.number();
        if (line->find_first_not_of(" \t") == std::string::npos) continue;
        ++reading.lines;
        auto parsed = entry_of_line(*line, subjects);
        if (const auto* const bad = std::get_if<BadLine>(&parsed)) {
            reading.bad.push_back({reader.number(), fmt::format("column {}: {}", bad->column, bad->reason)});
            if (!options.skip_bad) break;
        } else if (!writers.add({reader.number(), line->size(), std::get<TenantEntry>(std::move(parsed))})) {
            break;
        }
        progress.show(fmt::format("{} lines, {}/s", grouped(reading.lines),
                                  grouped(per_second(writers.done(), seconds_since(started)))));
    }
    return reading;
}

/// What to say of a run that stopped before its input ended.
std::string how_far(std::int64_t line, std::int64_t done_behind) {
    if (done_behind == 0) return fmt::format("every line before line {} is appended, nothing from there on", line);
    return fmt::format("every line before line {} is appended, and {} behind it, which other writers had begun", line,
                       counted(done_behind, "line", "lines"));
}

constexpr std::string_view go_on =
    "go on from there (a line with an entry_id is appended once, however often it comes)";

void tell_skipped(const std::string& source, const std::vector<RefusedLine>& bad) {
    for (std::size_t i = 0; i < bad.size() && i < bad_lines_told_max; ++i) {
        print_note(fmt::format("rowlock: {}, line {}, {}; left out", source, bad[i].line, shown(bad[i].reason)));
    }
    if (bad.size() <= bad_lines_told_max) return;
    print_note(fmt::format("rowlock: … and {} more bad lines, left out",
                           grouped(static_cast<std::int64_t>(bad.size() - bad_lines_told_max))));
}

/// Says on stderr why the work ended early, if it did, and gives back the exit code.
Exit tell(const AppendOptions& options, const std::vector<RefusedLine>& bad, const WrittenLines& written,
          std::int64_t first_unread) {
    const std::string source = *options.jsonl == "-" ? "standard input" : shown(*options.jsonl);
    const std::string far = how_far(written.first_undone.value_or(first_unread), written.done_behind);
    if (options.skip_bad) tell_skipped(source, bad);
    if (written.fault) {
        const Explanation explanation = explain(written.fault);
        const std::string_view doubt = explanation.exit == Exit::undetermined ? " for certain; some more may be" : "";
        print_note(fmt::format("rowlock: {}; {}{}: {}", explanation.line, far, doubt, go_on));
        return explanation.exit;
    }
    if (bad.empty()) return Exit::fine;
    if (options.skip_bad) return Exit::finding;
    print_note(fmt::format("rowlock: {}, line {}, {}; {}: correct it and {}, or leave bad lines out with --skip-bad",
                           source, bad.front().line, shown(bad.front().reason), far, go_on));
    return Exit::setup;
}

void print_totals(const Context& context, const WrittenLines& written, std::size_t bad, double seconds) {
    const std::int64_t rate = per_second(written.appended, seconds);
    if (context.globals.json) {
        JsonObject object;
        object.number("appended", written.appended).number("already_there", written.already_there);
        object.number("bad", static_cast<std::int64_t>(bad)).real("seconds", seconds).number("per_second", rate);
        print_line(object.str());
        return;
    }
    std::string line = fmt::format("appended {} in {:.1f} s ({}/s)", counted(written.appended, "entry", "entries"),
                                   seconds, grouped(rate));
    if (written.already_there > 0) line += fmt::format(", {} were there already", grouped(written.already_there));
    if (bad > 0) line += fmt::format(", {}", counted(static_cast<std::int64_t>(bad), "bad line", "bad lines"));
    print_line(line);
}

Exit append_lines(const Context& context, const AppendOptions& options) {
    LineReader reader(*options.jsonl);  // first, so that a misspelt name makes no server
    const auto database = open_database(context, Access::app, static_cast<std::size_t>(options.writers) + 1);
    const AuditLog log(open_keyring(context));
    const auto started = Clock::now();
    Progress progress(context.style);
    Interruption interruption;
    LineWriters writers(*database, log, options.writers, options.skip_bad);
    Reading reading = read_lines(reader, options, writers, interruption, progress);
    interruption.unblock();
    const WrittenLines written = writers.finish();
    progress.clear();
    std::vector<RefusedLine> bad = written.refused;
    bad.insert(bad.end(), reading.bad.begin(), reading.bad.end());
    std::ranges::sort(bad, {}, &RefusedLine::line);
    // Where bad lines stop the work, those behind the first are not the news: they come again with what was not read.
    if (!options.skip_bad && bad.size() > 1) bad.resize(1);
    print_totals(context, written, bad.size(), seconds_since(started));
    const std::int64_t first_unread =
        reading.bad.empty() || options.skip_bad ? reading.last_line + 1 : reading.last_line;
    const Exit exit = tell(options, bad, written, first_unread);
    if (interruption.signal() == 0 || exit != Exit::fine) return exit;
    print_note(fmt::format("rowlock: interrupted; {}: {}", how_far(first_unread, 0), go_on));
    interruption.die();
}

}  // namespace

Exit append(const Context& context, const AppendOptions& options) {
    const bool has_one = options.tenant || options.actor || options.action || options.object || options.data ||
                         options.entry_id || options.subject;
    if (options.jsonl) {
        if (has_one) {
            throw InvalidInput("--jsonl takes everything from its lines; leave out --tenant, --actor and the like");
        }
        return append_lines(context, options);
    }
    if (!options.tenant) throw InvalidInput("name the tenant with --tenant, or give lines with --jsonl FILE");
    if (options.writers != AppendOptions{}.writers || options.skip_bad) {
        throw InvalidInput("--writers and --skip-bad are for the lines of --jsonl FILE");
    }
    return append_one(context, options);
}

}  // namespace rowlock::cli
