// Every statement of ours on a table with a tenant names the tenant, so that each goes to the one server that has it
// where the tables are distributed. Those that are about all tenants are named here, one by one.
#include <gmock/gmock.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace rowlock {
namespace {

using testing::UnorderedElementsAre;

constexpr std::array tenant_tables{"rowlock.audit_log",         "rowlock.tenant_seq", "rowlock.audit_staged",
                                   "rowlock.audit_quarantined", "rowlock.quota",      "rowlock.sequence_counter"};

std::string text_of(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

bool is_about_tenants(std::string_view statement) {
    return std::ranges::any_of(tenant_tables, [&](const char* table) { return contains(statement, table); });
}

/// Compares the column with something, or writes it.
bool names_the_tenant(std::string_view statement) {
    return contains(statement, "tenant_id = ") || contains(statement, "(tenant_id") ||
           contains(statement, "tenant_id > ") || contains(statement, "tenant_id <> ");
}

/// The pieces of a text that begin with one word and end before another.
std::vector<std::string_view> pieces(std::string_view text, std::string_view begin, std::string_view end) {
    std::vector<std::string_view> found;
    for (std::size_t at = text.find(begin); at != std::string_view::npos; at = text.find(begin, at + 1)) {
        found.push_back(text.substr(at, text.find(end, at) - at));
    }
    return found;
}

TEST(TenantStatements, InTheSourcesNameTheTenantOrAreAboutAllOfThem) {
    std::vector<std::string> about_all;
    std::size_t seen = 0;
    for (const char* const folder : {"audit", "claim", "capture", "lifecycle", "quota", "sequence", "cli"}) {
        const auto root = std::filesystem::path(ROWLOCK_SOURCES) / "src" / folder;
        for (const auto& file : std::filesystem::recursive_directory_iterator(root)) {
            if (!file.is_regular_file()) continue;
            if (file.path().filename().string().starts_with("bench_")) continue;  // of tables that the bench makes
            const std::string text = text_of(file.path());
            for (const std::string_view statement : pieces(text, "constexpr Statement ", "};\n")) {
                if (!is_about_tenants(statement)) continue;
                ++seen;
                if (names_the_tenant(statement)) continue;
                about_all.emplace_back(statement.substr(20, statement.find('{') - 20));
            }
        }
    }
    EXPECT_GE(seen, 20U) << "the statements are found";
    EXPECT_THAT(about_all, UnorderedElementsAre("list_tenants_there", "list_staged_tenants_there", "read_heads",
                                                "ledger_sql", "longest_sql"));
}

TEST(TenantStatements, InTheFunctionsOfTheSchemaNameTheTenant) {
    std::size_t seen = 0;
    for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(ROWLOCK_SOURCES) / "sql")) {
        const std::string text = text_of(file.path());
        for (const std::string_view function : pieces(text, "\nAS $$\n", "\n$$;")) {
            std::istringstream statements{std::string(function)};
            for (std::string statement; std::getline(statements, statement, ';');) {
                if (!is_about_tenants(statement)) continue;
                if (!contains(statement, "WHERE") && !contains(statement, "INSERT")) continue;
                ++seen;
                EXPECT_TRUE(names_the_tenant(statement)) << file.path() << ": " << statement;
            }
        }
    }
    EXPECT_GE(seen, 20U) << "the statements are found";
}

}  // namespace
}  // namespace rowlock
