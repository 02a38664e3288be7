#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/commands/commands.hpp"
#include "cli/connection.hpp"
#include "cli/output.hpp"
#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

void require_private(const Context& context) {
    if (context.globals.db.empty()) return;
    throw InvalidInput("`rowlock server` is about the private server; leave out --db and ROWLOCK_DB");
}

void print_status(const Context& context, const PrivateServer& server, const ServerStatus& status) {
    if (context.globals.json) {
        JsonObject object;
        object.boolean("exists", status.exists).boolean("running", status.running);
        object.text("directory", status.directory.string());
        if (status.exists) object.text("version", status.version);
        if (status.running) object.number("pid", status.pid).text("connection", server.connection("rowlock"));
        print_line(object.str());
        return;
    }
    if (!status.exists) {
        print_line(fmt::format("no private server in {}; `rowlock server start` makes one", status.directory.string()));
    } else if (!status.running) {
        print_line(fmt::format("stopped: PostgreSQL {} in {}", status.version, status.directory.string()));
    } else {
        print_line(fmt::format("running: PostgreSQL {}, pid {}, in {}", status.version, status.pid,
                               status.directory.string()));
        print_line(fmt::format("connect: psql \"{}\"", server.connection("rowlock")));
    }
}

}  // namespace

Exit server_start(const Context& context) {
    require_private(context);
    PrivateServer server = private_server(context.globals);
    print_status(context, server, server.ensure_running());
    return Exit::fine;
}

Exit server_stop(const Context& context) {
    require_private(context);
    PrivateServer server = private_server(context.globals);
    const bool stopped = server.stop();
    if (context.globals.json) {
        print_line(JsonObject().boolean("stopped", stopped).str());
    } else {
        print_line(stopped ? "stopped" : "no private server was running");
    }
    return Exit::fine;
}

Exit server_status(const Context& context) {
    require_private(context);
    const PrivateServer server = private_server(context.globals);
    print_status(context, server, server.status());
    return Exit::fine;
}

Exit server_destroy(const Context& context) {
    require_private(context);
    PrivateServer server = private_server(context.globals);
    const bool destroyed = server.destroy();
    if (context.globals.json) {
        print_line(JsonObject().boolean("destroyed", destroyed).str());
    } else {
        print_line(destroyed ? "destroyed, with everything in it" : "there was no private server");
    }
    return Exit::fine;
}

Exit server_psql(const Context& context, const std::vector<std::string>& arguments) {
    require_private(context);
    if (context.globals.json) throw InvalidInput("psql prints in its own ways (--csv is one); leave out --json");
    PrivateServer server = private_server(context.globals);
    server.ensure_running();
    std::vector<std::string> words{server.binary("psql").string(), "--dbname=" + server.connection("rowlock")};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    execv(pointers[0], pointers.data());
    throw SetupError(fmt::format("psql can't be started: {}: {}", words[0],
                                 std::strerror(errno)));  // NOLINT(concurrency-mt-unsafe): one thread
}

}  // namespace rowlock::cli
