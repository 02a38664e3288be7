#include "race/invented_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/hash.hpp"
#include "base/lines.hpp"
#include "race/server_watch.hpp"
#include "race/sql_tokens.hpp"

namespace rowlock::race {

namespace {

constexpr Statement columns_sql{
    "race.invented_columns",
    "SELECT format('%I.%I', n.nspname, c.relname),"
    " string_agg(CASE WHEN invents THEN 't' ELSE 'f' END, '' ORDER BY a.attnum),"
    " string_agg(a.attnum::text, ' ' ORDER BY a.attnum),"
    " string_agg(concat_ws(E'\\n', expression, s.relname), E'\\n') FILTER (WHERE invents),"
    " string_agg(a.attname, E'\\n') FILTER (WHERE invents)"
    " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid"
    " LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum"
    " CROSS JOIN LATERAL pg_get_expr(d.adbin, d.adrelid) expression"
    " CROSS JOIN LATERAL (SELECT a.attidentity <> '' OR coalesce(a.attgenerated = '' AND expression ~*"
    "  '\\y(nextval|now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday|current_date|current_time"
    "|current_timestamp|localtime|localtimestamp|gen_random_uuid|uuid_generate_v1|uuid_generate_v4|random|txid_current"
    "|pg_current_xact_id)\\y', false)) i (invents)"
    " LEFT JOIN pg_depend p ON p.refclassid = 'pg_class'::regclass AND p.refobjid = c.oid AND p.refobjsubid = a.attnum"
    "  AND p.classid = 'pg_class'::regclass AND p.deptype IN ('a', 'i')"
    " LEFT JOIN pg_class s ON s.oid = p.objid AND s.relkind = 'S'"
    " WHERE c.oid >= 16384 AND c.relkind = 'r' AND c.relpersistence <> 't' AND n.nspname <> 'rowlock_race_kept'"
    " AND a.attnum > 0 AND NOT a.attisdropped GROUP BY 1 ORDER BY 1"};

constexpr Statement links_sql{
    "race.links",
    "SELECT format('%I.%I', n.nspname, c.relname), array_to_string(k.conkey, ' '),"
    " format('%I.%I', m.nspname, f.relname), array_to_string(k.confkey, ' ')"
    " FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace"
    " JOIN pg_class f ON f.oid = k.confrelid JOIN pg_namespace m ON m.oid = f.relnamespace"
    " WHERE k.contype = 'f' AND c.oid >= 16384 AND c.relkind = 'r' AND f.relkind = 'r' ORDER BY k.oid"};

/// attnums to places among the columns that are still there.
std::vector<std::size_t> places_of(std::string_view numbers, const std::vector<int>& attnums) {
    std::vector<std::size_t> places;
    for (const int number : numbers_in(numbers)) {
        places.push_back(static_cast<std::size_t>(std::ranges::find(attnums, number) - attnums.begin()));
    }
    return places;
}

/// A foreign key copies what was made up, and another one may copy the copy.
bool spread(TableShapes& shapes) {
    bool grew = false;
    for (auto& [name, shape] : shapes) {
        for (const TableShape::Link& link : shape.links) {
            const TableShape& target = shapes.at(link.table);
            for (std::size_t i = 0; i < link.columns.size(); ++i) {
                if (!target.invented[link.target_columns[i]] || shape.invented[link.columns[i]]) continue;
                shape.invented[link.columns[i]] = true;
                grew = true;
            }
        }
    }
    return grew;
}

struct StateRow {
    const TableShape* shape;
    std::string_view table;
    std::vector<std::string_view> fields;  ///< As the server writes them, quotes included; empty: NULL.
    std::uint64_t color;
};

/// Reads `name:` and rows, each as PostgreSQL writes a composite value.
/// Source: https://www.postgresql.org/docs/15/rowtypes.html#ROWTYPES-IO-SYNTAX
class StateReader {
  public:
    StateReader(std::string_view state, const TableShapes& shapes) : rest_(state), shapes_(shapes) {}

    std::vector<StateRow> rows() {
        std::vector<StateRow> rows;
        while (!rest_.empty()) {
            const std::size_t end = rest_.find(":\n");
            const std::string_view table = rest_.substr(0, end);
            rest_.remove_prefix(std::min(rest_.size(), end + 2));
            const auto shape = shapes_.find(table);
            while (rest_.starts_with('(')) {
                rows.push_back({shape == shapes_.end() ? nullptr : &shape->second, table, fields(), 0});
                skip_line_end();
            }
            skip_line_end();
        }
        return rows;
    }

  private:
    void skip_line_end() {
        if (rest_.starts_with('\n')) rest_.remove_prefix(1);
    }

    std::vector<std::string_view> fields() {
        std::vector<std::string_view> fields;
        std::size_t begin = 1;
        bool is_quoted = false;
        for (std::size_t at = 1; at < rest_.size(); ++at) {
            const char c = rest_[at];
            if (c == '"') is_quoted = !is_quoted;
            if (c == '\\') ++at;
            if (is_quoted || (c != ',' && c != ')')) continue;
            fields.push_back(rest_.substr(begin, at - begin));
            begin = at + 1;
            if (c == ')') break;
        }
        rest_.remove_prefix(std::min(begin, rest_.size()));
        return fields;
    }

    std::string_view rest_;
    const TableShapes& shapes_;
};

std::optional<std::string> key_of(const StateRow& row, const std::vector<std::size_t>& columns) {
    std::string key;
    for (const std::size_t column : columns) {
        if (column >= row.fields.size() || row.fields[column].empty()) return std::nullopt;
        key += fmt::format("{}:{},", row.fields[column].size(), row.fields[column]);
    }
    return key;
}

class Coloring {
  public:
    explicit Coloring(std::vector<StateRow>& rows) : rows_(rows) {
        for (StateRow& row : rows_) row.color = own_color(row);
        find_edges();
    }

    void refine() {
        std::size_t told_apart = count_colors();
        for (std::size_t round = 0; round < rows_.size(); ++round) {
            next();
            const std::size_t now = count_colors();
            if (now == told_apart) return;
            told_apart = now;
        }
    }

  private:
    struct Edge {
        std::size_t from;
        std::size_t to;
        std::size_t link;
    };

    static bool is_known(const TableShape& shape, std::size_t column, std::string_view value) {
        return column < shape.known.size() && shape.known[column].contains(value);
    }

    static std::uint64_t own_color(const StateRow& row) {
        std::string text(row.table);
        for (std::size_t i = 0; i < row.fields.size(); ++i) {
            const bool is_invented = row.shape != nullptr && i < row.shape->invented.size() && row.shape->invented[i] &&
                                     !is_known(*row.shape, i, row.fields[i]);
            // That there is a value at all is no invention.
            text += is_invented ? (row.fields[i].empty() ? ",-" : ",+") : fmt::format(",{}", row.fields[i]);
        }
        return fnv1a_64(text);
    }

    void find_edges() {
        for (std::size_t from = 0; from < rows_.size(); ++from) {
            if (rows_[from].shape == nullptr) continue;
            for (std::size_t link = 0; link < rows_[from].shape->links.size(); ++link) add_edge(from, link);
        }
    }

    void add_edge(std::size_t from, std::size_t link_index) {
        const TableShape::Link& link = rows_[from].shape->links[link_index];
        const auto key = key_of(rows_[from], link.columns);
        if (!key) return;
        for (std::size_t to = 0; to < rows_.size(); ++to) {
            if (rows_[to].table == link.table && key_of(rows_[to], link.target_columns) == key) {
                edges_.push_back({from, to, link_index});
            }
        }
    }

    void next() {
        std::vector<std::vector<std::string>> seen(rows_.size());
        for (const Edge& edge : edges_) {
            seen[edge.from].push_back(fmt::format(">{}:{:x}", edge.link, rows_[edge.to].color));
            seen[edge.to].push_back(fmt::format("<{}:{:x}", edge.link, rows_[edge.from].color));
        }
        for (std::size_t i = 0; i < rows_.size(); ++i) {
            std::ranges::sort(seen[i]);
            rows_[i].color = fnv1a_64(fmt::format("{:x} {}", rows_[i].color, fmt::join(seen[i], " ")));
        }
    }

    [[nodiscard]] std::size_t count_colors() const {
        std::set<std::uint64_t> colors;
        for (const StateRow& row : rows_) colors.insert(row.color);
        return colors.size();
    }

    std::vector<StateRow>& rows_;
    std::vector<Edge> edges_;
};

}  // namespace

TableShapes read_table_shapes(Session& session) {
    TableShapes shapes;
    std::map<std::string, std::vector<int>, std::less<>> attnums;
    bool any = false;
    for (const Row row : query(session, columns_sql)) {
        TableShape& shape = shapes[std::string(row.text(0))];
        for (const char flag : row.text(1)) shape.invented.push_back(flag == 't');
        any = any || row.text(1).find('t') != std::string_view::npos;
        const std::string code = row.optional_text(3).value_or("");
        for (const std::string_view line : lines_of(code)) shape.code.emplace_back(line);
        const std::string defaulted = row.optional_text(4).value_or("");
        for (const std::string_view name : lines_of(defaulted)) shape.defaulted.push_back(lower_case(name));
        shape.known.resize(shape.invented.size());
        attnums.emplace(row.text(0), numbers_in(row.text(2)));
    }
    if (!any) return {};
    for (const Row row : query(session, links_sql)) {
        const auto from = attnums.find(row.text(0));
        const auto to = attnums.find(row.text(2));
        if (from == attnums.end() || to == attnums.end()) continue;
        shapes.at(from->first)
            .links.push_back({places_of(row.text(1), from->second), to->first, places_of(row.text(3), to->second)});
    }
    while (spread(shapes)) {
    }
    return shapes;
}

void note_known_values(TableShapes& shapes, std::string_view state) {
    for (const StateRow& row : StateReader(state, shapes).rows()) {
        const auto at = shapes.find(row.table);
        if (at == shapes.end()) continue;
        TableShape& shape = at->second;
        for (std::size_t i = 0; i < row.fields.size() && i < shape.known.size(); ++i) {
            if (shape.invented[i]) shape.known[i].emplace(row.fields[i]);
        }
    }
    for (auto& [name, shape] : shapes) {
        for (const TableShape::Link& link : shape.links) {
            for (std::size_t i = 0; i < link.columns.size(); ++i) {
                const auto& known = shapes.at(link.table).known[link.target_columns[i]];
                shape.known[link.columns[i]].insert(known.begin(), known.end());
            }
        }
    }
}

Catalog without_inventing_code(Catalog catalog, const TableShapes& shapes) {
    std::set<std::string_view> inventing;
    for (const auto& [name, shape] : shapes) inventing.insert(shape.code.begin(), shape.code.end());
    for (auto& [id, relation] : catalog.relations) {
        std::string left;
        for (const std::string_view line : lines_of(relation.code)) {
            if (!inventing.contains(line)) left.append(line).append("\n");
        }
        relation.code = std::move(left);
    }
    return catalog;
}

std::string without_invented_values(std::string_view state, const TableShapes& shapes) {
    if (shapes.empty()) return std::string(state);
    std::vector<StateRow> rows = StateReader(state, shapes).rows();
    Coloring(rows).refine();
    std::vector<std::string> lines;
    lines.reserve(rows.size());
    for (const StateRow& row : rows) lines.push_back(fmt::format("{} {:016x}\n", row.table, row.color));
    std::ranges::sort(lines);
    return fmt::format("{}", fmt::join(lines, ""));
}

}  // namespace rowlock::race
