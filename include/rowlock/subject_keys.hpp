// Erasure in a log that only grows: data of a person is encrypted under a key of that person's own, and forgotten with
// it.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "rowlock/audit_log.hpp"
#include "rowlock/identifiers.hpp"

namespace rowlock {

/// A folder of keys, one file of mode 0600 for each subject (a person, as a rule). It belongs where the database is
/// not, and so do copies of it: a key that is in a backup is not destroyed.
///
/// The MAC of an entry is over the ciphertext, so a log is as intact without the keys as with them. The ciphertext
/// names its key by a random id, which says nothing of the subject. Not for use by two threads at once; any number of
/// processes may use one folder.
class SubjectKeys {
  public:
    /// Makes the folder, with mode 0700, once a key is made. Throws SetupError for a folder that others may look into.
    explicit SubjectKeys(std::filesystem::path folder);
    ~SubjectKeys();
    SubjectKeys(SubjectKeys&&) noexcept;
    SubjectKeys& operator=(SubjectKeys&&) noexcept;

    /// The entry's `data` encrypted, as JSON; makes a key for a subject that has none. The same entry, id included,
    /// gives the same bytes again, so that a retry is known for one. Throws InvalidInput for an entry without data.
    [[nodiscard]] std::string seal(std::string_view subject, const TenantId& tenant, const AuditEntry& entry);

    /// Is this what `seal` makes?
    [[nodiscard]] static bool is_sealed(const std::optional<std::string>& data);
    /// What was sealed into the entry; nothing where its key is not here (any more), or it was sealed into another
    /// entry.
    [[nodiscard]] std::optional<std::string> open(const TenantId& tenant, const StoredEntry& entry);

    /// Destroys the subject's key: overwritten, then removed. False where there is none.
    bool erase(std::string_view subject);

  private:
    struct Key;
    [[nodiscard]] std::filesystem::path file_of(std::string_view subject) const;
    const Key& key_of(std::string_view subject);
    void load_all();

    std::filesystem::path folder_;
    bool loaded_ = false;
    std::map<std::string, std::unique_ptr<Key>, std::less<>> by_id_;
};

}  // namespace rowlock
