#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "cli/commands/commands.hpp"
#include "cli/connection.hpp"
#include "cli/output.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/sealer.hpp"
#include "rowlock/subject_keys.hpp"

namespace rowlock::cli {

namespace {

/// Entries fetched at a time, so that memory stays small whatever --limit says.
constexpr std::int64_t page_entries = 1000;

/// On one line: a line break in JSON text is white space between two tokens, and a blank there says the same.
std::string without_breaks(std::string json) {
    std::ranges::replace_if(json, [](char c) { return c == '\n' || c == '\r'; }, ' ');
    return json;
}

/// For people; --json has all of it.
std::string to_the_second(std::int64_t microseconds) {
    constexpr std::size_t length = std::string_view("2026-11-30T15:04:05").size();
    return utc_time(microseconds).substr(0, length) + "Z";
}

std::string as_json(const TenantId& tenant, const StoredEntry& entry) {
    JsonObject object;
    object.text("tenant", tenant.text()).number("seq", entry.seq).text("entry_id", entry.id.text());
    object.text("recorded_at", utc_time(entry.recorded_at));
    object.optional_text("actor", entry.actor)
        .optional_text("action", entry.action)
        .optional_text("object", entry.object);
    object.raw("data", entry.data ? without_breaks(*entry.data) : "null").text("key_id", entry.key_id);
    return object.str();
}

/// On stderr, so that lines of JSON stay entries.
void tell_staged(const StagedCount& staged) {
    if (staged.entries == 0) return;
    print_note(fmt::format("rowlock: {} staged and not in the log yet: rowlock seal puts them there",
                           counted(staged.entries, "entry is", "entries are")));
}

/// Encrypted data as it was before, where its key is there.
void decrypt(SubjectKeys& keys, const TenantId& tenant, StoredEntry& entry) {
    if (!SubjectKeys::is_sealed(entry.data)) return;
    auto plain = keys.open(tenant, entry);
    if (plain) entry.data = std::move(plain);
}

}  // namespace

Exit list(const Context& context, const ListOptions& options) {
    const TenantId tenant(options.tenant);
    const auto database = open_database(context, Access::app);
    Table table({"seq", "recorded at", "actor", "action", "object", "data"});
    std::int64_t next = options.from;
    std::int64_t left = options.limit;
    std::int64_t shown = 0;
    std::optional<SubjectKeys> keys;
    if (!options.subject_keys.empty()) keys.emplace(options.subject_keys);
    while (left > 0) {
        auto page = database->transact({.tenant = tenant}, [&](Transaction& transaction) {
            return AuditLog::list(transaction, next, std::min(left, page_entries));
        });
        for (StoredEntry& entry : page) {
            if (keys) decrypt(*keys, tenant, entry);
            if (context.globals.json) {
                print_line(as_json(tenant, entry));
            } else {
                table.add({std::to_string(entry.seq), to_the_second(entry.recorded_at), entry.actor.value_or("-"),
                           entry.action.value_or("-"), entry.object.value_or("-"), entry.data.value_or("-")});
            }
            next = entry.seq + 1;
        }
        shown += static_cast<std::int64_t>(page.size());
        left -= static_cast<std::int64_t>(page.size());
        if (static_cast<std::int64_t>(page.size()) < page_entries) break;
    }
    tell_staged(database->transact({.tenant = tenant}, count_staged));
    if (context.globals.json) return Exit::fine;
    if (shown == 0) {
        print_line(
            fmt::format("tenant {} has no entry from {} on", one_line(tenant.text(), Style::unlimited), options.from));
        return Exit::fine;
    }
    for (const std::string& line : table.lines(context.style)) print_line(line);
    if (left == 0) print_note(fmt::format("there may be more: rowlock list --tenant … --from {}", next));
    return Exit::fine;
}

}  // namespace rowlock::cli
