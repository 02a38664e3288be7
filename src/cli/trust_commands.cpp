// The words of the commands for those who trust nothing: signing keys, checkpoints, resumptions.
#include <CLI/CLI.hpp>

#include "cli/command_words.hpp"
#include "cli/commands/commands.hpp"

namespace rowlock::cli {

namespace {

constexpr const char* signing_key_help =
    "Signing key file. Default: ROWLOCK_SIGNING_KEY, else rowlock/signing.key under XDG_CONFIG_HOME";

constexpr const char* subject_keys_help =
    "Folder of keys. Default: ROWLOCK_SUBJECT_KEYS, else rowlock/subject-keys under XDG_CONFIG_HOME";

}  // namespace

void add_subject(CLI::App& command, AppendOptions& options) {
    command
        .add_option("--subject", options.subject, "Encrypt the data under the key of this person: see rowlock erase")
        ->type_name("NAME");
    command.add_option("--subject-keys", options.subject_keys, subject_keys_help)->type_name("DIR");
}

void add_trust(CLI::App& command, TrustOptions& trust) {
    command.add_option("--checkpoint", trust.checkpoint, "Compare with it: what was cut off at the end is found, too")
        ->type_name("FILE");
    command.add_option("--pin-key", trust.pin_keys, "A public key that you trust, or a file with one; may come again")
        ->type_name("KEY");
}

void add_signing_keys(CLI::App& keys, const Context& context, TrustWords& words, Chosen& chosen) {
    CLI::App* const making =
        add_command(keys, chosen, "new", "Make a keyring with one key, or a signing key", [&keys, &context, &words] {
            words.signing.named = keys.get_subcommand("new")->count("--signing-key") > 0;
            return keys_new(context, words.signing);
        });
    making
        ->add_option("--signing-key", words.signing.file,
                     "Make an Ed25519 key in this file instead: it signs checkpoints")
        ->type_name("FILE");
    making->add_option("--name", words.signing.name, "Of the signing key, such as shop.example/audit. Default: rowlock")
        ->type_name("NAME");
    add_command(keys, chosen, "public", "Print the public half of a signing key, for others to pin",
                [&] { return keys_public(context, words.signing); })
        ->add_option("--signing-key", words.signing.file, signing_key_help)
        ->type_name("FILE");
}

void add_full_speed(CLI::App& command, bool& full_speed) {
    command.add_flag("--full-speed", full_speed, "Do not rest while others write to the database");
}

void add_trust_commands(CLI::App& app, const Context& context, TrustWords& words, Chosen& chosen) {
    CLI::App* const making = add_command(app, chosen, "checkpoint", "Write where every chain ends, signed",
                                         [&] { return make_checkpoint(context, words.checkpoint); });
    making->add_option("--out", words.checkpoint.out, "A new file; - for stdout")->required()->type_name("FILE");
    making->add_option("--signing-key", words.checkpoint.signing_key, signing_key_help)->type_name("FILE");

    CLI::App* const exporting = add_command(app, chosen, "export", "Write entries into one signed file: a bundle",
                                            [&] { return export_entries(context, words.export_entries); });
    exporting->add_option("--tenant", words.export_entries.tenant, "Whose log")->type_name("NAME");
    exporting->add_flag("--all", words.export_entries.all, "Every tenant");
    exporting->add_option("--out", words.export_entries.out, "A new file; - for stdout")->required()->type_name("FILE");
    exporting->add_option("--signing-key", words.export_entries.signing_key, signing_key_help)->type_name("FILE");
    add_full_speed(*exporting, words.export_entries.full_speed);
    add_trust(*exporting, words.export_entries.trust);

    CLI::App* const resuming =
        add_command(app, chosen, "resume", "Let a log go on that was put back to an older state (a restore)",
                    [&] { return resume(context, words.resume); });
    resuming->add_option("--tenant", words.resume.tenant, "Whose log")->type_name("NAME");
    resuming->add_flag("--all", words.resume.all,
                       "Of every tenant that the checkpoint names, those that were put back");
    resuming->add_option("--reason", words.resume.reason, "Why; it stays in the log")->required()->type_name("TEXT");
    resuming->add_option("--actor", words.resume.actor, "Who says so")->type_name("TEXT");
    add_trust(*resuming, words.resume.trust);
    resuming->get_option("--checkpoint")->required();

    CLI::App* const acknowledging =
        add_command(app, chosen, "acknowledge", "Say of a break that verify found that it is known, for ever visible",
                    [&] { return acknowledge(context, words.acknowledge); });
    acknowledging->add_option("--tenant", words.acknowledge.tenant, "Whose log")->required()->type_name("NAME");
    acknowledging->add_option("--seq", words.acknowledge.seq, "An entry that the finding is about")
        ->required()
        ->type_name("SEQ");
    acknowledging
        ->add_option("--kind", words.acknowledge.kind, "Of the finding, such as changed, where there are several")
        ->type_name("KIND");
    acknowledging->add_option("--reason", words.acknowledge.reason, "Why; it stays in the log")
        ->required()
        ->type_name("TEXT");
    acknowledging->add_option("--actor", words.acknowledge.actor, "Who says so")->type_name("TEXT");

    CLI::App* const erasing =
        add_command(app, chosen, "erase", "Destroy a subject's key: what it encrypted can't be read any more",
                    [&] { return erase(context, words.erase); });
    erasing->add_option("--subject", words.erase.subject, "Whose key")->required()->type_name("NAME");
    erasing->add_option("--subject-keys", words.erase.subject_keys, subject_keys_help)->type_name("DIR");

    CLI::App* const retiring =
        add_command(app, chosen, "retire-entries", "Drop the oldest entries of a tenant that a checkpoint covers",
                    [&] { return retire_entries(context, words.retire_entries); });
    retiring->add_option("--tenant", words.retire_entries.tenant, "Whose log")->required()->type_name("NAME");
    retiring->add_option("--through", words.retire_entries.through, "The last entry to drop")
        ->required()
        ->type_name("SEQ");
    retiring->add_option("--reason", words.retire_entries.reason, "Why; it stays in the log")
        ->required()
        ->type_name("TEXT");
    retiring->add_option("--actor", words.retire_entries.actor, "Who says so")->type_name("TEXT");
    add_trust(*retiring, words.retire_entries.trust);
    retiring->get_option("--checkpoint")->required();
}

}  // namespace rowlock::cli
