#include "sequence/numbered_table.hpp"

#include <fmt/format.h>

#include "postgres/identifier.hpp"

namespace rowlock {

namespace {

/// The placeholders are fmt's: the table, its number column, and the condition that picks the rows.
/// `next - 1 > number` and not `next > number + 1`: the latter overflows at the largest number there is.
constexpr std::string_view check_numbers_pattern = R"sql(
WITH numbers AS MATERIALIZED (
    SELECT {number}::bigint AS number, count(*) AS uses
      FROM {table}
     WHERE {condition} AND {number} IS NOT NULL
     GROUP BY 1)
(SELECT 0 AS kind, coalesce(min(number), 0) AS first, coalesce(max(number), 0) AS last,
        coalesce(sum(uses), 0)::bigint AS rows
   FROM numbers)
UNION ALL
(SELECT 1, number + 1, next - 1, 0
   FROM (SELECT number, lead(number) OVER (ORDER BY number) AS next FROM numbers) AS pairs
  WHERE next - 1 > number
  ORDER BY number
  LIMIT {limit})
UNION ALL
(SELECT 2, number, number, uses
   FROM numbers
  WHERE uses > 1
  ORDER BY number
  LIMIT {limit})
ORDER BY kind, first
)sql";

}  // namespace

std::string lock_table_sql(const NumberedTable& table) {
    return "LOCK TABLE " + quote_qualified_name(table.schema, table.table) + " IN SHARE ROW EXCLUSIVE MODE";
}

std::string check_numbers_sql(const NumberedTable& table) {
    std::string condition = quote_identifier(table.tenant_column) + " = $1";
    if (!table.series_column.empty()) condition += " AND " + quote_identifier(table.series_column) + " = $2";
    return fmt::format(check_numbers_pattern, fmt::arg("number", quote_identifier(table.number_column)),
                       fmt::arg("table", quote_qualified_name(table.schema, table.table)),
                       fmt::arg("condition", condition), fmt::arg("limit", NumberReport::findings_max + 1));
}

void add_to_report(NumberReport& report, NumberRow kind, const NumberReport::Hole& span, std::int64_t rows) {
    switch (kind) {
        case NumberRow::total:
            report.first = span.first;
            report.last = span.last;
            report.rows = rows;
            return;
        case NumberRow::hole:
            if (report.holes.size() == NumberReport::findings_max) {
                report.truncated = true;
            } else {
                report.holes.push_back(span);
            }
            return;
        case NumberRow::duplicate:
            if (report.duplicates.size() == NumberReport::findings_max) {
                report.truncated = true;
            } else {
                report.duplicates.push_back(span.first);
            }
            return;
    }
}

}  // namespace rowlock
