#include <fmt/format.h>

#include "cli/commands/commands.hpp"
#include "cli/connection.hpp"
#include "cli/output.hpp"
#include "cli/trust.hpp"
#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

void print_key(const Context& context, std::string_view what, const Keyring& keyring) {
    const std::string path = keyring_path(context.globals).string();
    if (context.globals.json) {
        print_line(JsonObject().text("keyring", path).text("active", keyring.active_id()).str());
    } else {
        print_line(fmt::format("{}: {} in {}", what, keyring.active_id(), path));
    }
}

void print_public_key(const Context& context, const PublicKey& key, const std::filesystem::path& path) {
    if (context.globals.json) {
        print_line(JsonObject().text("signing_key", path.string()).text("public_key", key.text()).str());
    } else {
        print_line(key.text());
    }
}

void require_file(const Context& context) {
    if (context.globals.keyring_command.empty()) return;
    throw InvalidInput(
        "the keyring comes from a command, which can't be written to: leave out --keyring-command and "
        "ROWLOCK_KEYRING_COMMAND, and name a file with --keyring");
}

}  // namespace

Exit keys_new(const Context& context, const SigningKeyOptions& signing) {
    if (signing.named) {
        const SigningKey key = SigningKey::generate(signing.name);
        key.create_file(signing_key_path(signing.file));
        print_public_key(context, key.public_key(), signing_key_path(signing.file));
        if (!context.globals.json) {
            print_note(
                "give this line to whoever checks checkpoints and bundles; keep the file where the database is not");
        }
        return Exit::fine;
    }
    require_file(context);
    const Keyring keyring = Keyring::generate();
    keyring.create_file(keyring_path(context.globals));
    print_key(context, "new key", keyring);
    if (!context.globals.json)
        print_note("keep a copy of the file where the database is not: without it nothing can be verified");
    return Exit::fine;
}

Exit keys_public(const Context& context, const SigningKeyOptions& signing) {
    const std::filesystem::path path = signing_key_path(signing.file);
    print_public_key(context, SigningKey::load(path).public_key(), path);
    return Exit::fine;
}

Exit keys_list(const Context& context) {
    const Keyring keyring = load_keyring(context.globals);
    std::vector<std::string> elements;
    for (const std::string& id : keyring.ids()) {
        const bool active = id == keyring.active_id();
        if (context.globals.json) {
            elements.push_back(JsonObject().text("id", id).boolean("active", active).str());
        } else {
            print_line(active ? id + "  active: signs new entries" : id + "  verifies old entries");
        }
    }
    if (context.globals.json) print_line(json_array(elements));
    return Exit::fine;
}

Exit keys_rotate(const Context& context) {
    require_file(context);
    const Keyring keyring = Keyring::load(keyring_path(context.globals)).rotated();
    keyring.replace_file(keyring_path(context.globals));
    print_key(context, "new active key", keyring);
    if (!context.globals.json) {
        print_note("each tenant's next append writes a rotation entry, signed with the old key; keep the old keys");
    }
    return Exit::fine;
}

}  // namespace rowlock::cli
