// The SQL of projects that do the same work, read from a folder of the user's: this repository has none of it.
#pragma once

#include <filesystem>
#include <string>

namespace rowlock::cli {

/// What installs message-db's functions, for a database that has none of them and with message_store in its
/// search_path. `folder` is its `database` folder, or one that has it. Throws SetupError where they are not there.
/// Source: https://github.com/message-db/message-db
[[nodiscard]] std::string message_db_script(const std::filesystem::path& folder);

/// What installs supa_audit outside of an extension. `folder` holds supa_audit--N.N.N.sql; the newest is taken.
/// Throws SetupError where there is none. Source: https://github.com/supabase/supa_audit
[[nodiscard]] std::string supa_audit_script(const std::filesystem::path& folder);

/// The whole file; SetupError where it can't be read.
[[nodiscard]] std::string script_of_file(const std::filesystem::path& file);

}  // namespace rowlock::cli
