#include "race/text_footprint.hpp"

#include <algorithm>
#include <array>

namespace rowlock::race {

namespace {

using namespace lock_mode;

bool writes(const Reach& reach) {
    constexpr std::array<std::string_view, 6> writing_words{"insert", "update", "delete", "merge", "nextval", "setval"};
    return std::ranges::any_of(writing_words, [&](std::string_view word) { return reach.words.contains(word); });
}

/// BEGIN, settings and queries do no more than their words say; DO, CALL, FETCH and DDL may.
bool is_bounded(const Analysis& analysis) {
    return !analysis.reach.unbounded && std::ranges::all_of(analysis.statements, [](StatementKind kind) {
        return kind == StatementKind::begin || kind == StatementKind::setting || kind == StatementKind::query ||
               kind == StatementKind::lock_table;
    });
}

}  // namespace

Footprint footprint_by_text(const Analysis& analysis, const Catalog& catalog) {
    Footprint footprint;
    if (!is_bounded(analysis)) {
        footprint.everything = true;
        return footprint;
    }
    const Reach& reach = analysis.reach;
    const bool may_write = writes(reach);
    LockModes modes = access_share;
    if (may_write) modes |= row_exclusive | row_share | any_row_lock | key_insert;
    if (reach.words.contains("for")) modes |= row_share | any_row_lock;
    if (reach.words.contains("lock")) modes |= access_exclusive;
    const auto add = [&](ResourceId id) {
        const ResourceId rows = rows_of(id, analysis, catalog);
        footprint.reads.add(rows);
        footprint.add_locks(id, rows, modes);
        if (!may_write) return;
        footprint.writes.add(rows);
        const auto relation = catalog.relations.find(id);
        if (relation != catalog.relations.end() && relation->second.is_sequence) footprint.published.add(id);
    };
    for (const auto& [id, count] : reach.named) add(id);
    for (const ResourceId id : reach.by_foreign_key) add(id);
    return footprint;
}

}  // namespace rowlock::race
