#include <fmt/format.h>

#include "cli/commands/commands.hpp"
#include "cli/connection.hpp"
#include "cli/new_file.hpp"
#include "cli/output.hpp"
#include "cli/trust.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/checkpoint.hpp"
#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

Exit tell_nothing_to_resume(const TenantId& tenant, const Verification& verification) {
    const bool tampered = verification.verdict == Verdict::tampered;
    print_note(tampered
                   ? fmt::format("rowlock: tenant {} is tampered with, which no entry puts right: look with rowlock "
                                 "verify",
                                 shown(tenant.text()))
                   : fmt::format("rowlock: tenant {} is not behind this checkpoint: nothing was appended",
                                 shown(tenant.text())));
    return tampered ? Exit::finding : Exit::setup;
}

}  // namespace

Exit make_checkpoint(const Context& context, const CheckpointOptions& options) {
    const SigningKey key = SigningKey::load(signing_key_path(options.signing_key));
    NewFile file(options.out);
    const auto database = open_database(context, Access::auditor);
    const Checkpoint checkpoint =
        database->transact({}, [](Transaction& transaction) { return read_checkpoint(transaction); });
    file.write(sign_checkpoint(checkpoint, key));
    file.keep();
    const bool noted =
        database->transact({}, [&](Transaction& transaction) { return note_checkpoint(transaction, checkpoint); });
    if (!noted) {
        print_note(
            "rowlock: the database does not note that this checkpoint was made, so rowlock status can't tell: the "
            "login "
            "is no rowlock_auditor, or the server takes no writes");
    }
    if (options.out == "-") return Exit::fine;
    std::int64_t entries = 0;
    for (const ChainHead& head : checkpoint.heads) entries += head.size;
    if (context.globals.json) {
        JsonObject object;
        object.text("file", options.out).text("made_at", utc_time(checkpoint.made_at));
        object.number("tenants", static_cast<std::int64_t>(checkpoint.heads.size())).number("entries", entries);
        print_line(object.text("public_key", key.public_key().text()).str());
    } else {
        print_line(fmt::format("{}: {}, {}, signed by {}", options.out,
                               counted(static_cast<std::int64_t>(checkpoint.heads.size()), "tenant", "tenants"),
                               counted(entries, "entry", "entries"), key.public_key().name()));
        print_note(
            "keep it where the database is not, and check against it: rowlock verify --all --checkpoint … --pin-key …");
    }
    return Exit::fine;
}

Exit resume(const Context& context, const ResumeOptions& options) {
    const TenantId tenant(options.tenant);
    const auto opened = read_checkpoint_file(options.trust);
    if (const auto* const forged = std::get_if<Forged>(&opened)) return tell_forged(*forged);
    const auto database = open_database(context, Access::app);
    const AuditLog log(open_keyring(context));
    const ResumeRequest request{.reason = options.reason, .actor = options.actor};
    const ResumeOutcome outcome = database->transact({.tenant = tenant}, [&](Transaction& transaction) {
        return log.resume(transaction, std::get<Checkpoint>(opened), request);
    });
    if (const auto* const nothing = std::get_if<NothingToResume>(&outcome)) {
        return tell_nothing_to_resume(tenant, nothing->verification);
    }
    const auto& resumed = std::get<Resumed>(outcome);
    if (context.globals.json) {
        print_line(
            JsonObject().text("tenant", tenant.text()).number("seq", resumed.seq).number("after", resumed.after).str());
    } else {
        print_line(fmt::format("{} {}  resumed after entry {}", shown(tenant.text()), resumed.seq, resumed.after));
    }
    return Exit::fine;
}

}  // namespace rowlock::cli
