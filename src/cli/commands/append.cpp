#include <fmt/format.h>

#include <chrono>

#include "cli/commands/commands.hpp"
#include "cli/connection.hpp"
#include "cli/jsonl.hpp"
#include "cli/line_reader.hpp"
#include "cli/line_writers.hpp"
#include "cli/output.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/error.hpp"

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
    return entry;
}

Exit append_one(const Context& context, const AppendOptions& options) {
    const TenantId tenant(options.tenant);
    const AuditEntry entry = entry_of(options);
    const auto database = open_database(context, Access::app);
    const AuditLog log(open_keyring(context, *database));
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
        print_line(
            fmt::format("{} {}  {}{}", tenant.text(), seq, entry.id.text(), appended ? "" : "  (was there already)"));
    }
    return Exit::fine;
}

struct Reading {
    std::int64_t lines = 0;  ///< Not counting blank ones.
    std::vector<RefusedLine> bad;
    bool stopped = false;
};

Reading read_lines(const AppendOptions& options, LineWriters& writers, Progress& progress) {
    Reading reading;
    LineReader reader(options.jsonl);
    const auto started = Clock::now();
    while (auto line = reader.next()) {
        if (line->find_first_not_of(" \t") == std::string::npos) continue;
        ++reading.lines;
        auto parsed = parse_line(*line);
        if (const auto* const bad = std::get_if<BadLine>(&parsed)) {
            reading.bad.push_back({reader.number(), fmt::format("column {}: {}", bad->column, bad->reason)});
            reading.stopped = !options.skip_bad;
        } else if (!writers.add({reader.number(), line->size(), std::get<TenantEntry>(std::move(parsed))})) {
            reading.stopped = true;
        }
        if (reading.stopped) break;
        const double seconds = std::chrono::duration<double>(Clock::now() - started).count();
        progress.show(fmt::format("{} lines, {}/s", grouped(reading.lines),
                                  grouped(static_cast<std::int64_t>(static_cast<double>(writers.done()) / seconds))));
    }
    return reading;
}

void tell(const AppendOptions& options, const std::vector<RefusedLine>& bad, const WrittenLines& written) {
    const std::string source = options.jsonl == "-" ? "standard input" : options.jsonl;
    for (std::size_t i = 0; i < bad.size() && i < bad_lines_told_max; ++i) {
        print_note(fmt::format("rowlock: {}, line {}, {}", source, bad[i].line, bad[i].reason));
    }
    if (bad.size() > bad_lines_told_max)
        print_note(fmt::format("… and {} more", grouped(static_cast<std::int64_t>(bad.size() - bad_lines_told_max))));
    if (bad.empty() || options.skip_bad) return;
    std::string rest =
        written.appended_after_stop == 0
            ? "nothing behind it is"
            : fmt::format("so are {} behind it, which other writers had begun", written.appended_after_stop);
    print_note(
        fmt::format("the lines before line {} are appended, {}; correct it and go on from there (--skip-bad "
                    "leaves bad lines out)",
                    bad.front().line, rest));
}

Exit append_lines(const Context& context, const AppendOptions& options) {
    const auto database = open_database(context, Access::app, static_cast<std::size_t>(options.writers) + 1);
    const AuditLog log(open_keyring(context, *database));
    const auto started = Clock::now();
    Progress progress(context.style);
    LineWriters writers(*database, log, options.writers, options.skip_bad);
    Reading reading = read_lines(options, writers, progress);
    WrittenLines written = writers.finish();
    progress.clear();
    const double seconds = std::chrono::duration<double>(Clock::now() - started).count();
    // Lines refused by the server stand before one that the reader refused, or are skipped with it.
    std::vector<RefusedLine> bad = std::move(written.refused);
    bad.insert(bad.end(), reading.bad.begin(), reading.bad.end());
    std::ranges::sort(bad, {}, &RefusedLine::line);
    tell(options, bad, written);
    const auto rate = static_cast<std::int64_t>(static_cast<double>(written.appended) / seconds);
    if (context.globals.json) {
        JsonObject object;
        object.number("appended", written.appended).number("already_there", written.already_there);
        object.number("bad", static_cast<std::int64_t>(bad.size())).real("seconds", seconds).number("per_second", rate);
        print_line(object.str());
    } else {
        print_line(fmt::format("appended {} entries in {:.1f} s ({}/s), {} were there already, {} bad",
                               grouped(written.appended), seconds, grouped(rate), grouped(written.already_there),
                               bad.size()));
    }
    return bad.empty() ? Exit::fine : Exit::setup;
}

}  // namespace

Exit append(const Context& context, const AppendOptions& options) {
    if (options.jsonl.empty()) {
        if (options.tenant.empty())
            throw InvalidInput("name the tenant with --tenant, or give lines with --jsonl FILE");
        return append_one(context, options);
    }
    const bool has_one = !options.tenant.empty() || options.actor || options.action || options.object || options.data ||
                         options.entry_id;
    if (has_one)
        throw InvalidInput("--jsonl takes everything from its lines; leave out --tenant, --actor and the like");
    return append_lines(context, options);
}

}  // namespace rowlock::cli
