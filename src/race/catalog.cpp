#include "race/catalog.hpp"

#include <algorithm>
#include <array>

#include "race/sql_tokens.hpp"

namespace rowlock::race {

namespace {

/// Text that runs text: what it touches is not written down.
constexpr std::array<std::string_view, 7> running_words{"execute", "call",         "fetch",        "move",
                                                        "dblink",  "query_to_xml", "cursor_to_xml"};

class ReachFinder {
  public:
    explicit ReachFinder(const Catalog& catalog) : catalog_(catalog) {}

    Reach find(std::string_view text) {
        found_.unbounded = catalog_.runs_unnamed_code;
        follow(text);
        // Each text is followed once, so this ends with the catalog.
        while (!waiting_.empty()) {
            const std::string next = std::move(waiting_.back());
            waiting_.pop_back();
            follow(next);
        }
        return std::move(found_);
    }

  private:
    void queue(const std::string& text) {
        if (text.empty()) return;
        found_.runs_code = true;
        if (seen_.insert(text).second) waiting_.push_back(text);
    }

    void follow(std::string_view text) {
        for (const std::string& word : sql_words(text)) {
            found_.words.insert(word);
            if (std::ranges::find(running_words, word) != running_words.end()) found_.unbounded = true;
            for (auto [at, end] = catalog_.relations_by_name.equal_range(word); at != end; ++at) touch(at->second);
            for (auto [at, end] = catalog_.functions_by_name.equal_range(word); at != end; ++at) queue(at->second);
        }
    }

    void touch(ResourceId id) {
        ++found_.named[id];
        const Relation& relation = catalog_.relations.at(id);
        queue(relation.code);
        follow_foreign_keys(relation);
    }

    /// A cascade goes on from table to table.
    void follow_foreign_keys(const Relation& relation) {
        for (const ResourceId other : relation.foreign_keys) {
            if (!found_.by_foreign_key.insert(other).second) continue;
            if (const auto at = catalog_.relations.find(other); at != catalog_.relations.end()) {
                queue(at->second.code);
                follow_foreign_keys(at->second);
            }
        }
    }

    const Catalog& catalog_;
    Reach found_;
    std::set<std::string> seen_;
    std::vector<std::string> waiting_;
};

}  // namespace

void Catalog::add_relation(Relation relation) {
    relations_by_name.emplace(lower_case(relation.name), relation.id);
    const ResourceId id = relation.id;
    relations.insert_or_assign(id, std::move(relation));
}

Reach reach_of(std::string_view text, const Catalog& catalog) {
    return ReachFinder(catalog).find(text);
}

}  // namespace rowlock::race
