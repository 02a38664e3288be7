#include "race/generated_race.hpp"

#include <gtest/gtest.h>

#include "race/check_on_server.hpp"
#include "race/conductor.hpp"

namespace rowlock::race::test {

std::string with_values(std::string_view sql, const std::vector<std::string>& values) {
    std::string text;
    for (std::size_t at = 0; at < sql.size();) {
        std::size_t number = 0;
        std::size_t end = at + 1;
        while (sql[at] == '$' && end < sql.size() && sql[end] >= '0' && sql[end] <= '9') {
            number = number * 10 + static_cast<std::size_t>(sql[end++] - '0');
        }
        if (number == 0) {
            text += sql[at++];
            continue;
        }
        text += values.at(number - 1);
        at = end;
    }
    return text;
}

std::string without(std::string_view text, std::string_view piece, std::string_view instead) {
    std::string changed(text);
    const std::size_t at = changed.find(piece);
    EXPECT_NE(at, std::string::npos) << piece << " is not in " << text;
    if (at != std::string::npos) changed.replace(at, piece.size(), instead);
    return changed;
}

CheckResult RaceRunner::check_text(const std::string& text, bool stop_at_first) {
    CheckOptions options;
    options.time_max = std::chrono::minutes(5);
    options.stop_at_first = stop_at_first;
    return check_on_server(parse_scenario(text, "generated.race"), {.server = cluster_.connection()}, "", options);
}

std::size_t RaceRunner::expect_holds(const std::string& name, const std::string& text) {
    const CheckResult result = check_text(text);
    EXPECT_EQ(result.exit_code(), 0) << name << " " << (result.findings.empty() ? "" : result.findings[0].symptom.title)
                                     << text;
    EXPECT_TRUE(result.summary.exhausted) << name;
    EXPECT_GT(result.summary.executions, 1U) << name;
    EXPECT_TRUE(result.refusals.empty()) << name << " " << result.refusals.begin()->first;
    return result.summary.executions;
}

}  // namespace rowlock::race::test
