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

void print_resumed(const Context& context, const TenantId& tenant, const Resumed& resumed) {
    if (context.globals.json) {
        print_line(
            JsonObject().text("tenant", tenant.text()).number("seq", resumed.seq).number("after", resumed.after).str());
    } else {
        print_line(fmt::format("{} {}  resumed after entry {}", shown(tenant.text()), resumed.seq, resumed.after));
    }
}

/// Each tenant in a transaction of its own: what an interruption leaves is done when it is run again.
class Resuming {
  public:
    Resuming(const Context& context, const ResumeOptions& options, const Checkpoint& checkpoint)
        : context_(context),
          request_{.reason = options.reason, .actor = options.actor},
          checkpoint_(checkpoint),
          database_(open_database(context, Access::app)),
          log_(open_keyring(context)) {}

    Exit resume_one(const TenantId& tenant) {
        const Exit exit = resume(tenant);
        if (exit == Exit::setup) {
            print_note(fmt::format("rowlock: tenant {} is not behind this checkpoint: nothing was appended",
                                   shown(tenant.text())));
        }
        return exit;
    }

    Exit resume_all() {
        Exit exit = Exit::fine;
        std::int64_t count = 0;
        for (const ChainHead& head : checkpoint_.heads) {
            const Exit one = resume(head.tenant);
            if (one == Exit::fine) ++count;
            if (one == Exit::finding) exit = one;
        }
        if (!context_.globals.json) {
            print_line(fmt::format("{} of {} resumed", grouped(count),
                                   counted(static_cast<std::int64_t>(checkpoint_.heads.size()), "tenant", "tenants")));
        }
        return exit;
    }

  private:
    /// Tells what was appended, or what is in the way of it. `setup`: the tenant is not behind, and nothing was told.
    Exit resume(const TenantId& tenant) {
        const ResumeOutcome outcome = database_->transact({.tenant = tenant}, [&](Transaction& transaction) {
            return log_.resume(transaction, checkpoint_, request_);
        });
        if (const auto* const resumed = std::get_if<Resumed>(&outcome)) {
            print_resumed(context_, tenant, *resumed);
            return Exit::fine;
        }
        if (std::get<NothingToResume>(outcome).verification.verdict != Verdict::tampered) return Exit::setup;
        print_note(
            fmt::format("rowlock: tenant {} is tampered with, which no entry puts right: look with rowlock "
                        "verify",
                        shown(tenant.text())));
        return Exit::finding;
    }

    const Context& context_;
    ResumeRequest request_;
    const Checkpoint& checkpoint_;
    std::unique_ptr<Database> database_;
    AuditLog log_;
};

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
    if (options.all != options.tenant.empty()) throw InvalidInput("name one tenant with --tenant, or say --all");
    const auto opened = read_checkpoint_file(options.trust);
    if (const auto* const forged = std::get_if<Forged>(&opened)) return tell_forged(*forged);
    Resuming resuming(context, options, std::get<Checkpoint>(opened));
    return options.all ? resuming.resume_all() : resuming.resume_one(TenantId(options.tenant));
}

}  // namespace rowlock::cli
