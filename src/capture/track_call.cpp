#include "capture/track_call.hpp"

#include <fmt/format.h>

#include <optional>

#include "postgres/identifier.hpp"

namespace rowlock {

void require_column_names(const TrackedTable& table) {
    static_cast<void>(quote_identifier(table.tenant_column));
    static_cast<void>(quote_identifiers(table.excluded));
    static_cast<void>(quote_identifiers(table.masked));
}

Parameter names_array(const std::vector<std::string>& names) {
    const std::vector<std::optional<std::string>> elements(names.begin(), names.end());
    return Parameter::array(elements);
}

std::string track_sql(const TrackedTable& table) {
    require_column_names(table);
    std::string sql =
        fmt::format("SELECT rowlock.track({}, {}", quote_literal(table.table), quote_literal(table.tenant_column));
    const auto add_names = [&](const char* parameter, const std::vector<std::string>& names) {
        if (!names.empty()) sql += fmt::format(", {} => {}", parameter, quote_literal(*names_array(names).text()));
    };
    add_names("p_exclude", table.excluded);
    add_names("p_mask", table.masked);
    if (table.actor_setting != TrackedTable().actor_setting) {
        sql += fmt::format(", p_actor_setting => {}", quote_literal(table.actor_setting));
    }
    return sql + ");";
}

}  // namespace rowlock
