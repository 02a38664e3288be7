#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <system_error>

#include "cli/commands/commands.hpp"
#include "cli/connection.hpp"
#include "cli/new_file.hpp"
#include "cli/output.hpp"
#include "cli/trust.hpp"
#include "cli/verdicts.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/bundle.hpp"
#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

constexpr std::size_t absent_tenants_shown = 20;

std::string_view as_characters(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Exit tell_not_exported(const Context& context, const NotExported& refused) {
    print_verification(context, refused.tenant, refused.verification);
    print_note("rowlock: nothing was exported: only an intact log is signed");
    return exit_of(refused.verification.verdict);
}

std::int64_t acknowledged_in_bundle(const BundleVerification& verification) {
    return std::ranges::count_if(verification.acknowledged,
                                 [](const auto& each) { return each.acknowledgement.found; });
}

std::string bundle_json(const std::string& file, const BundleVerification& verification) {
    std::vector<std::string> findings;
    for (const Finding& finding : verification.findings) findings.push_back(finding_json(finding));
    JsonObject object;
    object.text("bundle", file).text("verdict", verdict_word(verification.verdict));
    object.text("ledger", EntryId(verification.ledger).text()).text("made_at", utc_time(verification.made_at));
    object.text("signer", verification.signer).number("tenants", verification.tenants);
    object.number("entries", verification.entries).number("unverifiable_entries", verification.unverifiable_entries);
    object.number("findings_total", verification.findings_total).raw("findings", json_array(findings));
    std::vector<std::string> acknowledgements;
    for (const auto& [tenant, each] : verification.acknowledged) {
        acknowledgements.push_back(acknowledged_json(tenant, each));
    }
    object.raw("acknowledgements", json_array(acknowledgements));
    std::vector<std::string> not_in_bundle;
    for (const TenantId& each : verification.not_in_bundle) {
        not_in_bundle.push_back(JsonObject().text("tenant", each.text()).str());
    }
    object.raw("not_in_bundle", json_array(not_in_bundle));
    if (verification.damage) {
        object.number("damaged_at", verification.damage->offset).text("damage", verification.damage->detail);
    }
    if (verification.refused) object.text("signature", verification.refused->detail);
    return object.str();
}

void print_bundle(const Context& context, const std::string& file, const BundleVerification& verification) {
    print_line(fmt::format("{}: {}, {}, {}, ledger {}, of {}", shown(file),
                           verdict_on_screen(context, verification.verdict, acknowledged_in_bundle(verification)),
                           counted(verification.tenants, "tenant", "tenants"),
                           counted(verification.entries, "entry", "entries"), EntryId(verification.ledger).text(),
                           utc_time(verification.made_at)));
    if (verification.damage) {
        print_line(fmt::format("  damaged at byte {}: {}; nothing behind it was read", verification.damage->offset,
                               shown(verification.damage->detail)));
    }
    if (verification.refused) print_line(fmt::format("  signature: {}", shown(verification.refused->detail)));
    for (const Finding& finding : verification.findings) {
        print_line(fmt::format("  {}: {}", shown(finding.tenant.text()), finding_line(finding)));
    }
    const auto untold = verification.findings_total - static_cast<std::int64_t>(verification.findings.size());
    if (untold > 0) print_line(fmt::format("  … and {} findings more", grouped(untold)));
    for (const BundleRetired& each : verification.retired) {
        print_line(fmt::format("  {}: entries 1 to {} were retired before: entry {} says so", shown(each.tenant.text()),
                               each.through, each.seq));
    }
    for (const auto& [tenant, acknowledgement] : verification.acknowledged) {
        print_line(fmt::format("  {}: {}", shown(tenant.text()), acknowledgement_line(acknowledgement)));
    }
    const std::span absent(verification.not_in_bundle);
    const std::span absent_shown = absent.first(std::min(absent.size(), absent_tenants_shown));
    for (const TenantId& each : absent_shown) {
        print_line(fmt::format("  {}: named by the checkpoint, and not in this bundle", shown(each.text())));
    }
    if (absent.size() > absent_shown.size()) {
        print_line(fmt::format("  … and {} more", absent.size() - absent_shown.size()));
    }
    if (verification.unverifiable_entries > 0) {
        print_line(fmt::format("  the HMACs of {} could not be checked: their keys are not in the keyring",
                               counted(verification.unverifiable_entries, "entry", "entries")));
    }
}

}  // namespace

Exit export_entries(const Context& context, const ExportCommandOptions& options) {
    if (options.all != options.tenant.empty()) throw InvalidInput("name one tenant with --tenant, or say --all");
    const SigningKey key = SigningKey::load(signing_key_path(options.signing_key));
    const auto opened = read_checkpoint_if_named(options.trust);
    if (const auto* const forged = std::get_if<Forged>(&opened)) return tell_forged(*forged);
    const auto& checkpoint = std::get<std::optional<Checkpoint>>(opened);
    NewFile file(options.out);
    const auto database = open_database(context, Access::auditor);
    const Keyring keyring = open_keyring(context);
    Progress progress(context.style);
    ExportOptions export_options;
    export_options.sink = [&](std::span<const std::byte> bytes) { file.write(as_characters(bytes)); };
    export_options.progress = [&](const TenantId& tenant, std::int64_t done, std::int64_t all) {
        progress.show(fmt::format("{}: {} of {} entries", shown(tenant.text()), grouped(done), grouped(all)));
    };
    export_options.checkpoint = checkpoint ? &*checkpoint : nullptr;
    export_options.gives_way = !options.full_speed;
    TransactionPolicy policy{.attempts_max = 1};
    if (!options.all) policy.tenant = TenantId(options.tenant);
    const auto tenants = options.all ? tenants_of(*database, export_options.checkpoint) : std::vector{*policy.tenant};
    const ExportOutcome outcome = database->transact(policy, [&](Transaction& transaction) {
        return export_bundle(transaction, keyring, tenants, key, export_options);
    });
    progress.clear();
    if (const auto* const refused = std::get_if<NotExported>(&outcome)) return tell_not_exported(context, *refused);
    const auto& summary = std::get<BundleSummary>(outcome);
    if (summary.entries == 0) {
        print_note("rowlock: nothing was exported: there is no entry, or this login may not see it");
        return Exit::undetermined;
    }
    file.keep();
    if (options.out == "-") return Exit::fine;
    if (context.globals.json) {
        JsonObject object;
        object.text("file", options.out).number("tenants", summary.tenants).number("entries", summary.entries);
        print_line(object.text("public_key", key.public_key().text()).str());
    } else {
        print_line(fmt::format("{}: {}, {}, signed by {}", options.out, counted(summary.tenants, "tenant", "tenants"),
                               counted(summary.entries, "entry", "entries"), key.public_key().name()));
    }
    return Exit::fine;
}

Exit verify_bundle_file(const Context& context, const VerifyCommandOptions& options) {
    if (options.all || !options.tenant.empty()) {
        throw InvalidInput("--bundle is verified whole: leave out --tenant and --all");
    }
    BundleVerifyOptions verify_options;
    if (!options.trust.pin_keys.empty()) verify_options.pinned = pinned_keys(options.trust.pin_keys);
    std::optional<Checkpoint> checkpoint;
    if (!options.trust.checkpoint.empty()) {
        auto opened = read_checkpoint_file(options.trust);
        if (const auto* const forged = std::get_if<Forged>(&opened)) return tell_forged(*forged);
        checkpoint = std::get<Checkpoint>(std::move(opened));
        verify_options.checkpoint = &*checkpoint;
    }
    // Only if asked for: the point of a bundle is that it needs none.
    const bool keyring_named = !context.globals.keyring.empty() || !context.globals.keyring_command.empty();
    if (keyring_named) verify_options.keyring = load_keyring(context.globals);
    const std::string path = options.bundle == "-" ? "/dev/stdin" : options.bundle;
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
    if (file == nullptr) {
        throw SetupError(
            fmt::format("cannot open bundle {}: {}", options.bundle, std::system_category().message(errno)));
    }
    Progress progress(context.style);
    verify_options.progress = [&](std::int64_t entries) { progress.show(grouped(entries) + " entries"); };
    const auto read = [&](std::span<std::byte> into) {
        const std::size_t got = std::fread(into.data(), 1, into.size(), file.get());
        if (got == 0 && std::ferror(file.get()) != 0) {
            throw SetupError(
                fmt::format("cannot read bundle {}: {}", options.bundle, std::system_category().message(errno)));
        }
        return got;
    };
    const BundleVerification verification = verify_bundle(read, verify_options);
    progress.clear();
    if (context.globals.json) {
        print_line(bundle_json(options.bundle, verification));
    } else {
        print_bundle(context, options.bundle, verification);
    }
    if (verification.verdict == Verdict::unverifiable && verify_options.pinned.empty()) {
        print_note(fmt::format(
            "rowlock: it is signed by {}, as it says itself, and anybody can sign: verify with --pin-key and a "
            "key that you have from elsewhere",
            shown(verification.signer)));
    }
    return exit_of(verification.verdict);
}

}  // namespace rowlock::cli
