// What every command is given: where to write, how to write it, and which database is meant.
#pragma once

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>

namespace rowlock::cli {

/// The exit codes of every command.
enum class Exit : int {
    fine = 0,
    finding = 1,       ///< Tampered, a race, busy.
    setup = 2,         ///< Wrong usage or surroundings; nothing was half-done.
    undetermined = 3,  ///< Could not tell: a key is not at hand, a budget ran out.
};

/// The options that every command takes.
struct Globals {
    std::string db;               ///< --db or ROWLOCK_DB; empty for the private server.
    std::string data;             ///< --data; empty for the default place.
    std::string keyring;          ///< --keyring or ROWLOCK_KEYRING; empty for the default place.
    std::string keyring_command;  ///< --keyring-command: prints the keyring.
    bool json = false;
};

/// How output may look; worked out once from the streams and the environment.
struct Style {
    bool color = false;      ///< On a terminal, unless NO_COLOR is set or TERM is dumb.
    bool progress = false;   ///< stderr is a terminal.
    std::size_t width = 80;  ///< Columns of the terminal; `unlimited` where there is none, so that nothing is cut.
    static constexpr std::size_t unlimited = std::size_t{1} << 30U;

    static Style of_this_process();
};

struct Context {
    Globals globals;
    Style style;
};

/// The value of an environment variable; empty if it is not set.
[[nodiscard]] std::string environment(const char* name);

}  // namespace rowlock::cli
