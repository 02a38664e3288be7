#include "server/server_rules.hpp"

#include <fmt/format.h>
#include <sys/un.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/lines.hpp"

namespace rowlock {

namespace {

constexpr std::string_view socket_name = ".s.PGSQL.5432";
/// The kernel's room for a socket's path, less the closing zero byte.
constexpr std::size_t socket_path_max = sizeof(sockaddr_un::sun_path) - 1;
constexpr std::size_t state_line = 7;

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view blanks = " \t\r";
    const std::size_t first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

PostmasterState state_named(std::string_view name) {
    if (name == "starting") return PostmasterState::starting;
    if (name == "stopping") return PostmasterState::stopping;
    if (name == "ready") return PostmasterState::ready;
    if (name == "standby") return PostmasterState::standby;
    return PostmasterState::unknown;
}

/// Each character of `escaped` in `text` gets `escape` in front of it.
std::string with_escapes(std::string_view text, std::string_view escaped, char escape) {
    std::string result;
    for (const char character : text) {
        if (escaped.find(character) != std::string_view::npos) result += escape;
        result += character;
    }
    return result;
}

}  // namespace

std::optional<PostmasterFile> parse_postmaster_file(std::string_view text) {
    const auto lines = lines_of(text);
    if (lines.empty()) return std::nullopt;
    const std::string_view digits = trimmed(lines[0]);
    PostmasterFile file;
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), file.pid);
    if (fault != std::errc() || end != digits.data() + digits.size() || file.pid <= 0) return std::nullopt;
    if (lines.size() > state_line) file.state = state_named(trimmed(lines[state_line]));
    return file;
}

std::optional<int> parse_major_version(std::string_view text) {
    constexpr std::string_view product = "(PostgreSQL) ";
    const std::size_t place = text.find(product);
    if (place != std::string_view::npos) text.remove_prefix(place + product.size());
    int major = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), major);
    if (fault != std::errc() || major <= 0) return std::nullopt;
    return major;
}

std::optional<Installation> choose_installation(std::span<const Installation> found, std::optional<int> wanted) {
    if (wanted) {
        const auto match = std::ranges::find(found, *wanted, &Installation::major);
        return match == found.end() ? std::nullopt : std::optional(*match);
    }
    const auto newest = std::ranges::max_element(found, {}, &Installation::major);
    return newest == found.end() ? std::nullopt : std::optional(*newest);
}

std::optional<std::string> folder_objection(const std::filesystem::path& folder) {
    const std::string text = folder.string();
    const auto unprintable = [](char character) { return std::iscntrl(static_cast<unsigned char>(character)) != 0; };
    if (std::ranges::any_of(text, unprintable)) return "its name has a control character in it";
    // libpq reads a comma in `host` as the end of one host and the start of the next, and knows no escape for it.
    if (text.find(',') != std::string::npos) return "its name has a comma in it, which libpq takes for two folders";
    const std::size_t length = (folder / socket_name).string().size();
    if (length > socket_path_max) {
        return fmt::format(
            "the socket in it would have a path of {} bytes, and the system's limit is {}: the folder's "
            "name may have {} at most and has {}",
            length, socket_path_max, socket_path_max - socket_name.size() - 1, text.size());
    }
    return std::nullopt;
}

std::optional<std::filesystem::path> server_folder_for(std::string_view state_home, std::string_view home, bool root) {
    if (state_home.starts_with('/')) return std::filesystem::path(state_home) / "rowlock";
    if (root) return "/var/lib/rowlock";
    if (home.starts_with('/')) return std::filesystem::path(home) / ".local/state/rowlock";
    return std::nullopt;
}

std::string connection_string(const std::filesystem::path& folder, std::string_view database) {
    const auto value = [](std::string_view text) {
        const bool plain = !text.empty() && text.find_first_of(" \t\n'\\") == std::string_view::npos;
        return plain ? std::string(text) : fmt::format("'{}'", with_escapes(text, "'\\", '\\'));
    };
    // The empty hostaddr keeps PGHOSTADDR of the environment from leading elsewhere.
    return fmt::format("host={} hostaddr='' port=5432 user={} dbname={}", value(folder.string()), server_role,
                       value(database));
}

std::string host_based_authentication() {
    return fmt::format("local all {} peer map=rowlock\nlocal all all scram-sha-256\n", server_role);
}

std::string identity_map(std::string_view account) {
    std::string map = fmt::format("rowlock \"{}\" {}\n", account, server_role);
    if (account != "root") map += fmt::format("rowlock root {}\n", server_role);
    return map;
}

std::string server_configuration() {
    return "# The settings of rowlock's private server. Change them here, then: rowlock server stop\n"
           "include 'pgdata/postgresql.conf'\n"
           "max_connections = 200\n"
           "shared_buffers = 128MB\n"
           "# Not \"$user\": the role rowlock would then make its tables in the schema rowlock, which is the "
           "ledger's.\n"
           "search_path = 'public'\n"
           "# After a crash: one flush of the file system, not one for each of a thousand files.\n"
           "recovery_init_sync_method = syncfs\n";
}

std::vector<std::string> server_arguments(const std::filesystem::path& folder, bool throwaway,
                                          const Settings& settings) {
    std::vector<std::string> arguments{"-D", (folder / "pgdata").string()};
    const auto set = [&](std::string_view name, std::string_view value) {
        arguments.emplace_back("-c");
        arguments.push_back(fmt::format("{}={}", name, value));
    };
    const std::string_view durable = throwaway ? "off" : "on";
    for (const std::string_view name : {"fsync", "synchronous_commit", "full_page_writes"}) set(name, durable);
    for (const auto& [name, value] : settings) set(name, value);
    set("config_file", (folder / "postgresql.conf").string());
    set("hba_file", (folder / "pg_hba.conf").string());
    set("ident_file", (folder / "pg_ident.conf").string());
    set("listen_addresses", "");
    set("port", "5432");
    set("unix_socket_directories", fmt::format("\"{}\"", with_escapes(folder.string(), "\"", '"')));
    set("unix_socket_permissions", "0700");
    return arguments;
}

std::string last_complaint(std::string_view output) {
    std::string_view last;
    std::string_view complaint;
    for (const std::string_view line : lines_of(output)) {
        if (trimmed(line).empty()) continue;
        last = trimmed(line);
        for (const std::string_view level : {"FATAL:", "PANIC:", "ERROR:", "error:"}) {
            if (line.find(level) != std::string_view::npos) complaint = last;
        }
    }
    return std::string(complaint.empty() ? last : complaint);
}

}  // namespace rowlock
