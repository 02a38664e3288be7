#include <fmt/format.h>

#include "cli/commands/commands.hpp"
#include "cli/output.hpp"
#include "cli/trust.hpp"
#include "rowlock/error.hpp"
#include "rowlock/subject_keys.hpp"

namespace rowlock::cli {

Exit erase(const Context& context, const EraseOptions& options) {
    const std::filesystem::path folder = subject_keys_path(options.subject_keys);
    SubjectKeys keys(folder);
    if (!keys.erase(options.subject)) {
        throw InvalidInput(fmt::format("{} has no key for subject {}: it was erased before, or is spelt otherwise",
                                       folder.string(), options.subject));
    }
    if (context.globals.json) {
        print_line(JsonObject().text("subject", options.subject).boolean("erased", true).str());
    } else {
        print_line(fmt::format("the key of {} is destroyed: what it encrypted can't be read any more",
                               shown(options.subject)));
        print_note("copies of the folder, in backups for one, must go, too");
    }
    return Exit::fine;
}

}  // namespace rowlock::cli
