#include "cli/peer_sql.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <vector>

#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

using std::filesystem::path;

/// In the order in which they need each other; within a folder any order does.
constexpr std::array message_db_folders{"schema", "types", "tables", "functions", "indexes"};
constexpr std::string_view write_message_file = "functions/write-message.sql";

std::vector<path> sql_files(const path& folder) {
    std::vector<path> files;
    std::error_code unreadable;
    for (const auto& entry : std::filesystem::directory_iterator(folder, unreadable)) {
        if (entry.path().extension() == ".sql") files.push_back(entry.path());
    }
    std::ranges::sort(files);
    return files;
}

/// 0.3.1 of "supa_audit--0.3.1.sql"; nothing of an update's "supa_audit--0.2.3--0.3.0.sql".
std::optional<std::array<int, 3>> version_of(const std::string& name) {
    constexpr std::string_view prefix = "supa_audit--";
    if (!name.starts_with(prefix)) return std::nullopt;
    std::array<int, 3> version{};
    const char* at = name.data() + prefix.size();
    const char* const end = name.data() + name.size();
    for (int& number : version) {
        const auto [next, error] = std::from_chars(at, end, number);
        if (error != std::errc() || next == end || *next != '.') return std::nullopt;
        at = next + 1;
    }
    return std::string_view(at, end) == "sql" ? std::optional(version) : std::nullopt;
}

}  // namespace

std::string script_of_file(const path& file) {
    std::ifstream stream(file);
    std::string text((std::istreambuf_iterator<char>(stream)), {});
    if (!stream) throw SetupError(fmt::format("{} can't be read", file.string()));
    return text;
}

std::string message_db_script(const path& folder) {
    for (const path& home : {folder, folder / "database", folder / "message-db" / "database"}) {
        if (!std::filesystem::exists(home / write_message_file)) continue;
        std::string script;
        for (const char* const part : message_db_folders) {
            const std::vector<path> files = sql_files(home / part);
            if (files.empty()) {
                throw SetupError(fmt::format("{} has no SQL files, so message-db's is not whole: get it again",
                                             (home / part).string()));
            }
            for (const path& file : files) script += script_of_file(file) + ";\n";
        }
        return script;
    }
    throw SetupError(fmt::format("{} is not message-db's: it has no {}: give the folder `database` of its repository",
                                 folder.string(), write_message_file));
}

std::string supa_audit_script(const path& folder) {
    std::optional<std::pair<std::array<int, 3>, path>> newest;
    for (const path& file : sql_files(folder)) {
        const auto version = version_of(file.filename().string());
        if (version && (!newest || newest->first < *version)) newest.emplace(*version, file);
    }
    if (!newest) {
        throw SetupError(
            fmt::format("{} is not supa_audit's: it has no supa_audit--N.N.N.sql: give the folder of its "
                        "repository",
                        folder.string()));
    }
    // That function is for CREATE EXTENSION alone; what it marks matters to pg_dump only.
    std::string script = "CREATE EXTENSION IF NOT EXISTS \"uuid-ossp\";\n";
    std::istringstream lines(script_of_file(newest->second));
    for (std::string line; std::getline(lines, line);) {
        if (line.find("pg_extension_config_dump") == std::string::npos) script += line + "\n";
    }
    return script;
}

}  // namespace rowlock::cli
