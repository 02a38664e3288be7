// A PostgreSQL of rowlock's own, for those who name none: no set-up, no network, nobody else's.
//
// All of it is in one folder, mode 0700, which belongs to the account that the server runs under. It listens on a Unix
// socket in that folder and on nothing else; the kernel's word on who is calling decides who gets in. It stays up when
// the command that started it ends. Commands that do something to one folder at once do it one after the other.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rowlock/error.hpp"

namespace rowlock {

struct ServerPlace {
    std::filesystem::path directory;
};

/// rowlock/ in XDG_STATE_HOME, else in ~/.local/state. For root without XDG_STATE_HOME /var/lib/rowlock, since the
/// unprivileged account can't enter root's home. Throws SetupError if neither variable names a folder.
[[nodiscard]] ServerPlace default_server_place();

struct ServerOptions {
    ServerPlace place;
    /// Settings of postgresql.conf for the next start. They can't open the server to others.
    std::vector<std::pair<std::string, std::string>> settings;
    /// For tests: nothing is flushed to disk, so a crash of the machine loses the lot. A crash of the server does not.
    bool throwaway = false;
};

struct ServerStatus {
    bool exists = false;   ///< There is a cluster.
    bool running = false;  ///< It accepts connections.
    int pid = 0;           ///< The postmaster's, starting or stopping ones too; 0 for none.
    std::string version;   ///< The cluster's major version, such as "15"; empty if there is no cluster.
    std::filesystem::path directory;
    std::string connection;  ///< To the database "rowlock".
    bool created = false;    ///< By this call.
    bool started = false;    ///< By this call.
};

/// Every member may throw SetupError with one line: what happened, where, what to do. Prints nothing.
class PrivateServer {
  public:
    /// Throws SetupError if no server could ever live in the folder: the path of its socket would be too long, say.
    explicit PrivateServer(ServerOptions options);

    /// Makes the cluster, with the role "rowlock" and the database "rowlock", if there is none; starts it if it is
    /// down; comes back when it accepts connections. Takes over from a server or a command that died in any state.
    /// Throws SetupError, and leaves alone a folder that holds anything else.
    ServerStatus ensure_running();

    /// Changes nothing and waits for nobody.
    [[nodiscard]] ServerStatus status() const;

    /// Waits until the server is down. Open sessions are ended, their transactions undone. False: there was none.
    bool stop();

    /// For tests: the death of the postmaster with no chance to tidy up. Its backends may live on. False: there was
    /// none.
    bool kill_immediately();

    /// Stops the server and removes the folder with all its data. False: there was none. Throws SetupError for a folder
    /// that is not rowlock's.
    bool destroy();

    /// A keyword string of libpq, as the role "rowlock".
    [[nodiscard]] std::string connection(std::string_view database) const;

    /// The path of one of PostgreSQL's programs (psql, pgbench), of the cluster's version if there is one.
    /// Throws SetupError if it is not installed.
    [[nodiscard]] std::filesystem::path binary(std::string_view name) const;

  private:
    ServerOptions options_;
};

}  // namespace rowlock
