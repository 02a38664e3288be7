#include "cli/trust.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <system_error>

#include "cli/connection.hpp"
#include "cli/output.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

/// A line for each tenant has about 80 bytes, so this is ten million tenants.
constexpr std::size_t signed_file_max = std::size_t{1} << 30U;
constexpr std::size_t key_file_max = 4096;

std::string whole_file(const std::string& path, std::string_view what, std::size_t bytes_max) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
    if (file == nullptr) {
        throw SetupError(fmt::format("cannot open {} {}: {}", what, path, std::system_category().message(errno)));
    }
    std::string content;
    std::string piece(std::size_t{1} << 16U, '\0');
    while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), file.get())) {
        content.append(piece, 0, got);
        if (content.size() > bytes_max) {
            throw SetupError(fmt::format("{} is longer than any {}", path, what));
        }
    }
    if (std::ferror(file.get()) != 0) {
        throw SetupError(fmt::format("cannot read {} {}: {}", what, path, std::system_category().message(errno)));
    }
    return content;
}

PublicKey pinned_key(const std::string& option) {
    try {
        return PublicKey::parse(option);
    } catch (const InvalidInput&) {
        // A file's name may have any form, a key's text only one.
        if (!std::filesystem::exists(option)) throw;
    }
    return PublicKey::parse(whole_file(option, "public key", key_file_max));
}

}  // namespace

std::filesystem::path signing_key_path(const std::string& option) {
    if (!option.empty()) return option;
    const std::string named = environment("ROWLOCK_SIGNING_KEY");
    if (!named.empty()) return named;
    return configuration_folder() / "signing.key";
}

std::filesystem::path subject_keys_path(const std::string& option) {
    if (!option.empty()) return option;
    const std::string named = environment("ROWLOCK_SUBJECT_KEYS");
    return named.empty() ? configuration_folder() / "subject-keys" : std::filesystem::path(named);
}

std::vector<PublicKey> pinned_keys(const std::vector<std::string>& options) {
    if (options.empty()) {
        throw InvalidInput(
            "name the public key that you trust with --pin-key (rowlock keys public prints it): without "
            "one, anybody's signature would do");
    }
    std::vector<PublicKey> keys;
    for (const std::string& option : options) keys.push_back(pinned_key(option));
    return keys;
}

Exit tell_forged(const Forged& forged) {
    print_note("rowlock: " + shown(forged.line));
    return Exit::finding;
}

std::variant<Checkpoint, Forged> read_checkpoint_file(const TrustOptions& options) {
    const auto pinned = pinned_keys(options.pin_keys);
    const std::string note = whole_file(options.checkpoint, "checkpoint", signed_file_max);
    auto opened = open_checkpoint(note, pinned);
    if (auto* const checkpoint = std::get_if<Checkpoint>(&opened)) return std::move(*checkpoint);
    const auto& refused = std::get<NoteRefused>(opened);
    switch (refused.reason) {
        case NoteRefused::Reason::damaged:
            throw SetupError(fmt::format("{} is no checkpoint: {}; name a file that rowlock checkpoint has written",
                                         options.checkpoint, refused.detail));
        case NoteRefused::Reason::other_signer:
            throw SetupError(
                fmt::format("the checkpoint {} is not to be trusted: {}; pin the key that made it, if it is "
                            "one that you trust",
                            options.checkpoint, refused.detail));
        case NoteRefused::Reason::bad_signature:
            break;
    }
    return Forged{fmt::format("the checkpoint {} is forged: {}", options.checkpoint, refused.detail)};
}

std::variant<std::optional<Checkpoint>, Forged> read_checkpoint_if_named(const TrustOptions& options) {
    if (options.checkpoint.empty()) {
        if (options.pin_keys.empty()) return std::optional<Checkpoint>();
        throw InvalidInput("--pin-key says whose checkpoint is trusted: name one with --checkpoint");
    }
    auto opened = read_checkpoint_file(options);
    if (auto* const forged = std::get_if<Forged>(&opened)) return std::move(*forged);
    return std::optional(std::get<Checkpoint>(std::move(opened)));
}

std::vector<TenantId> tenants_of(Database& database, const Checkpoint* checkpoint) {
    std::vector<TenantId> here =
        database.transact({}, [](Transaction& transaction) { return AuditLog::tenants(transaction); });
    if (checkpoint == nullptr) return here;
    std::vector<TenantId> counted_there;
    for (const ChainHead& head : checkpoint->heads) counted_there.push_back(head.tenant);
    std::vector<TenantId> all;
    std::ranges::set_union(here, counted_there, std::back_inserter(all));
    return all;
}

}  // namespace rowlock::cli
