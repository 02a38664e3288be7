// Signing keys, pinned keys and signed files, from the options of a command.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/commands/commands.hpp"
#include "rowlock/checkpoint.hpp"
#include "rowlock/database.hpp"

namespace rowlock::cli {

/// The signing key file that an option means: it, else ROWLOCK_SIGNING_KEY, else rowlock/signing.key in the user's
/// configuration folder.
[[nodiscard]] std::filesystem::path signing_key_path(const std::string& option);

/// The folder of subject keys that an option means: it, else ROWLOCK_SUBJECT_KEYS, else rowlock/subject-keys in the
/// user's configuration folder.
[[nodiscard]] std::filesystem::path subject_keys_path(const std::string& option);

/// Each is a public key, or the name of a file with one. Throws InvalidInput for neither, and where there is none.
[[nodiscard]] std::vector<PublicKey> pinned_keys(const std::vector<std::string>& options);

/// What a pinned key has signed was changed afterwards, or made up in its name: a finding, told in one line.
struct Forged {
    std::string line;
};

/// Tells it on stderr.
Exit tell_forged(const Forged& forged);

/// The checkpoint of the options. Throws SetupError for a file that is no checkpoint of a pinned key.
[[nodiscard]] std::variant<Checkpoint, Forged> read_checkpoint_file(const TrustOptions& options);

/// The same where it may be left out; --pin-key alone makes no sense then (InvalidInput).
[[nodiscard]] std::variant<std::optional<Checkpoint>, Forged> read_checkpoint_if_named(const TrustOptions& options);

/// All tenants of the database and, in order, those that only the checkpoint still knows (null: there is none).
[[nodiscard]] std::vector<TenantId> tenants_of(Database& database, const Checkpoint* checkpoint);

}  // namespace rowlock::cli
