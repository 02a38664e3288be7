#include "cli/connection.hpp"

#include <fmt/format.h>

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "cli/output.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/error.hpp"
#include "rowlock/schema.hpp"

namespace rowlock::cli {

namespace {

constexpr std::size_t keyring_text_max = 1 << 20;

constexpr Statement membership{"connection.membership",
                               "SELECT pg_has_role(current_user, oid, 'MEMBER') FROM pg_roles WHERE rolname = $1"};

bool may_act_as(Transaction& transaction, std::string_view role) {
    const Rows rows = transaction.execute(membership, {role});
    return !rows.empty() && rows[0].boolean(0);
}

/// The role to take on, so that row-level security holds also where the login would pass it.
std::string role_for(Transaction& transaction, Access access) {
    require_schema(transaction);
    if (access == Access::auditor && may_act_as(transaction, "rowlock_auditor")) return "rowlock_auditor";
    if (access == Access::sealer) return "rowlock_sealer";
    if (access == Access::log_owner) return "rowlock_owner";
    if (may_act_as(transaction, "rowlock_app")) return "rowlock_app";
    return {};
}

void install_on_private_server(Database& database) {
    database.transact({}, [](Transaction& transaction) {
        const SchemaStatus status = schema_status(transaction);
        if (status.installed < status.current) install_schema(transaction);
    });
}

std::string output_of(const std::string& command) {
    FILE* const pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) throw SetupError("the keyring command can't be started: " + command);
    std::string text;
    std::array<char, 4096> piece{};
    std::size_t length = 0;
    while ((length = std::fread(piece.data(), 1, piece.size(), pipe)) > 0 && text.size() < keyring_text_max) {
        text.append(piece.data(), length);
    }
    const int status = pclose(pipe);
    if (WIFSIGNALED(status)) {
        throw SetupError(fmt::format("the keyring command was ended by signal {}: {}", WTERMSIG(status), command));
    }
    if (status != 0) {
        throw SetupError(fmt::format("the keyring command failed with exit code {}: {}; its own words are above",
                                     WEXITSTATUS(status), command));
    }
    return text;
}

}  // namespace

PrivateServer private_server(const Globals& globals) {
    ServerOptions options;
    options.place =
        globals.data.empty() ? default_server_place() : ServerPlace{std::filesystem::absolute(globals.data)};
    return PrivateServer(std::move(options));
}

std::string server_connection(const Context& context) {
    if (!context.globals.db.empty()) return context.globals.db;
    PrivateServer server = private_server(context.globals);
    const ServerStatus status = server.ensure_running();
    if (status.created) {
        print_note(
            fmt::format("rowlock: made a private PostgreSQL {} in {}", status.version, status.directory.string()));
    }
    return server.connection("rowlock");
}

std::unique_ptr<Database> open_database(const Context& context, Access access, std::size_t connections_max) {
    DatabaseOptions options;
    options.connection = server_connection(context);
    options.connections_max = connections_max;
    auto as_login = std::make_unique<Database>(options);
    if (access == Access::owner) return as_login;
    if (context.globals.db.empty()) install_on_private_server(*as_login);
    options.role = as_login->transact({}, [&](Transaction& transaction) { return role_for(transaction, access); });
    if (options.role.empty()) return as_login;
    return std::make_unique<Database>(options);
}

std::filesystem::path configuration_folder() {
    const std::string configuration = environment("XDG_CONFIG_HOME");
    if (!configuration.empty()) return std::filesystem::path(configuration) / "rowlock";
    const std::string home = environment("HOME");
    if (home.empty()) {
        throw SetupError("no place for keys: neither HOME nor XDG_CONFIG_HOME is set; name a file with --keyring FILE");
    }
    return std::filesystem::path(home) / ".config" / "rowlock";
}

std::filesystem::path keyring_path(const Globals& globals) {
    return globals.keyring.empty() ? configuration_folder() / "keyring.json" : std::filesystem::path(globals.keyring);
}

namespace {

/// Behind entries that another keyring signed, a new one would only hide that the old one is lost.
bool nothing_signed(const Context& context) {
    // As the login: row-level security hides every entry from rowlock_app while no tenant is set.
    const auto database = open_database(context, Access::owner);
    return database->transact({}, [](Transaction& transaction) { return AuditLog::tenants(transaction).empty(); });
}

void make_keyring(const std::filesystem::path& path) {
    try {
        Keyring::generate().create_file(path);
    } catch (const SetupError&) {
        // Another command, doing its first work at the same time, was faster.
        if (std::filesystem::exists(path)) return;
        throw;
    }
    print_note(
        fmt::format("rowlock: made a keyring in {}: keep a copy, without it nothing can be verified", path.string()));
}

}  // namespace

Keyring load_keyring(const Globals& globals) {
    if (globals.keyring_command.empty()) return Keyring::load(keyring_path(globals));
    return Keyring::parse(output_of(globals.keyring_command), "of --keyring-command");
}

Keyring open_keyring(const Context& context) {
    const Globals& globals = context.globals;
    const bool default_place = globals.db.empty() && globals.keyring.empty() && globals.keyring_command.empty();
    if (default_place) {
        const std::filesystem::path path = keyring_path(globals);
        if (!std::filesystem::exists(path) && nothing_signed(context)) make_keyring(path);
    }
    return load_keyring(globals);
}

}  // namespace rowlock::cli
