// From the options of a command to an open database and a keyring.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "cli/context.hpp"
#include "rowlock/database.hpp"
#include "rowlock/keyring.hpp"
#include "server/private_server.hpp"

namespace rowlock::cli {

/// As whom a command works on the database.
enum class Access {
    app,        ///< As rowlock_app: row-level security holds. The schema must be there.
    auditor,    ///< As rowlock_auditor where the login may, to read all tenants; else as rowlock_app.
    log_owner,  ///< As rowlock_owner, who alone may drop entries.
    sealer,     ///< As rowlock_sealer, or not at all.
    owner,      ///< As the login itself, for the schema. The schema need not be there.
};

/// The private server that the options mean; nothing is started.
[[nodiscard]] PrivateServer private_server(const Globals& globals);

/// The connection string of the options; without --db the private server is started if need be.
[[nodiscard]] std::string server_connection(const Context& context);

/// Opens the database of the options. Without --db the private server is started if need be, with the schema, and a
/// line on stderr says what was made. With --db nothing is installed.
[[nodiscard]] std::unique_ptr<Database> open_database(const Context& context, Access access,
                                                      std::size_t connections_max = 2);

/// rowlock/ under XDG_CONFIG_HOME, where keys are by default.
[[nodiscard]] std::filesystem::path configuration_folder();

/// The keyring file that the options mean.
[[nodiscard]] std::filesystem::path keyring_path(const Globals& globals);

/// The keyring of the options: a file, or what a command prints.
[[nodiscard]] Keyring load_keyring(const Globals& globals);

/// Loads the keyring. On the private server, where nothing was ever appended, a missing one in the default place is
/// made, and a line on stderr says so.
[[nodiscard]] Keyring open_keyring(const Context& context);

}  // namespace rowlock::cli
