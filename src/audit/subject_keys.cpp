#include "rowlock/subject_keys.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "audit/frame.hpp"
#include "audit/keyring_file.hpp"
#include "base/base64.hpp"
#include "base/bytes.hpp"
#include "base/hex.hpp"
#include "crypto/aes_gcm.hpp"
#include "crypto/sha256.hpp"
#include "json/json.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

constexpr std::string_view envelope_format = "rowlock/sealed/1";
constexpr std::string_view file_start = "rowlock-subject-key-1 ";
constexpr std::string_view file_end = ".key";
constexpr std::string_view id_label = "rowlock/subject-key-id/1";
constexpr std::string_view nonce_label = "rowlock/subject-nonce/1";
constexpr std::string_view bound_label = "rowlock/subject-data/1";

constexpr SecretFileKind subject_key_kind{"subject key", "rowlock append --subject",
                                          "another process has just made it"};

/// What the ciphertext can't be taken out of.
Frame bound_to(std::string_view label, const TenantId& tenant, const EntryId& id) {
    Frame frame;
    frame.add(label);
    frame.add(tenant.text());
    frame.add(std::span<const std::byte>(id.bytes()));
    return frame;
}

/// By what it encrypts: a retry then gives the same bytes, and two texts never share a nonce, but for a collision of
/// 96 bits.
AesNonce nonce_for(const AesKey& key, const TenantId& tenant, const AuditEntry& entry) {
    Frame frame = bound_to(nonce_label, tenant, entry.id);
    frame.add(*entry.data);
    AesKey nonce_key{};
    hkdf_sha256(key, {}, bytes_of(nonce_label), nonce_key);
    const Mac mac = Hmac(nonce_key).of(frame.bytes());
    wipe(std::span(nonce_key));
    AesNonce nonce{};
    std::copy_n(mac.begin(), nonce.size(), nonce.begin());
    return nonce;
}

struct Envelope {
    std::string key_id;
    AesNonce nonce{};
    std::vector<std::byte> sealed;
};

std::optional<Envelope> envelope_of(std::string_view data) {
    const auto parsed = parse_object(data);
    const auto* const members = std::get_if<std::vector<JsonMember>>(&parsed);
    constexpr std::string_view names[] = {"sealed", "key", "nonce", "data"};
    if (members == nullptr || !std::ranges::equal(*members, names, {}, &JsonMember::name)) return std::nullopt;
    if (members->at(0).text != envelope_format) return std::nullopt;
    const auto nonce = from_base64(members->at(2).text);
    auto sealed = from_base64(members->at(3).text);
    Envelope envelope;
    if (!nonce || nonce->size() != envelope.nonce.size() || !sealed) return std::nullopt;
    envelope.key_id = members->at(1).text;
    std::ranges::copy(*nonce, envelope.nonce.begin());
    envelope.sealed = std::move(*sealed);
    return envelope;
}

[[noreturn]] void fail_at(const std::string& what, const std::filesystem::path& path, int error) {
    throw SetupError("cannot " + what + " " + path.string() + ": " + std::system_category().message(error));
}

/// What a file system with copies on write, or a flash disk, keeps nevertheless is beyond a program.
void overwrite_and_remove(const std::filesystem::path& path) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) fail_at("open", path, errno);
    struct stat status{};
    const bool looked = ::fstat(file, &status) == 0;
    const std::string zeros(looked ? static_cast<std::size_t>(status.st_size) : 0, '\0');
    const bool done = looked && ::pwrite(file, zeros.data(), zeros.size(), 0) == static_cast<ssize_t>(zeros.size()) &&
                      ::fsync(file) == 0;
    const int error = errno;
    ::close(file);
    if (!done) fail_at("overwrite", path, error);
    if (::unlink(path.c_str()) != 0) fail_at("remove", path, errno);
    const int folder = ::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 || ::fsync(folder) != 0) fail_at("make durable the removal of", path, errno);
    ::close(folder);
}

}  // namespace

struct SubjectKeys::Key {
    std::string id;
    AesKey bytes{};

    explicit Key(const AesKey& key) : bytes(key) {
        std::array<std::byte, 8> name{};
        hkdf_sha256(bytes, {}, bytes_of(id_label), name);
        id = "s" + to_hex(name);
    }
    Key(const Key&) = delete;
    Key& operator=(const Key&) = delete;
    ~Key() { wipe(std::span(bytes)); }

    static std::unique_ptr<Key> read(const std::filesystem::path& path) {
        const Wiped content(read_keyring_file(path, subject_key_kind));
        std::string_view text = content.view();
        if (text.ends_with('\n')) text.remove_suffix(1);
        AesKey key{};
        auto bytes = text.starts_with(file_start) ? from_hex(text.substr(file_start.size())) : std::nullopt;
        if (!bytes || bytes->size() != key.size()) {
            throw SetupError("the subject key " + path.string() + " is damaged: restore it from a copy");
        }
        std::ranges::copy(*bytes, key.begin());
        wipe(std::span(*bytes));
        auto read = std::make_unique<Key>(key);
        wipe(std::span(key));
        return read;
    }
};

SubjectKeys::SubjectKeys(std::filesystem::path folder) : folder_(std::move(folder)) {
    struct stat status{};
    if (::stat(folder_.c_str(), &status) != 0) return;
    if (!S_ISDIR(status.st_mode)) throw SetupError(folder_.string() + " is no folder of subject keys");
    if ((status.st_mode & 077U) != 0) {
        throw SetupError("the folder of subject keys " + folder_.string() + " is open to others: chmod 700 " +
                         shell_word(folder_));
    }
}

SubjectKeys::~SubjectKeys() = default;
SubjectKeys::SubjectKeys(SubjectKeys&&) noexcept = default;
SubjectKeys& SubjectKeys::operator=(SubjectKeys&&) noexcept = default;

/// A subject may be any text, a file's name not.
std::filesystem::path SubjectKeys::file_of(std::string_view subject) const {
    Sha256 hash;
    hash.begin();
    hash.update(bytes_of(subject));
    return folder_ / (to_hex(hash.finish()) + std::string(file_end));
}

const SubjectKeys::Key& SubjectKeys::key_of(std::string_view subject) {
    const std::filesystem::path path = file_of(subject);
    if (!std::filesystem::exists(path)) {
        AesKey key{};
        fill_random(key);
        std::string digits = to_hex(key);
        wipe(std::span(key));
        const Wiped content(std::string(file_start) + digits + "\n");
        wipe(digits);
        try {
            create_keyring_file(path, content.view(), subject_key_kind);
        } catch (const SetupError&) {
            // Another process, doing its first work with this subject at the same time, was faster.
            if (!std::filesystem::exists(path)) throw;
        }
    }
    auto key = Key::read(path);
    const std::string id = key->id;
    return *by_id_.insert_or_assign(id, std::move(key)).first->second;
}

void SubjectKeys::load_all() {
    if (loaded_) return;
    loaded_ = true;
    std::error_code none;
    for (const auto& file : std::filesystem::directory_iterator(folder_, none)) {
        if (file.path().extension() != file_end) continue;
        auto key = Key::read(file.path());
        const std::string id = key->id;
        by_id_.insert_or_assign(id, std::move(key));
    }
}

std::string SubjectKeys::seal(std::string_view subject, const TenantId& tenant, const AuditEntry& entry) {
    if (subject.empty()) throw InvalidInput("a subject has a name");
    if (!entry.data) throw InvalidInput("there is nothing to encrypt: the entry has no data");
    if (!valid_json(*entry.data)) throw InvalidInput("the data to encrypt is no JSON");
    const Key& key = key_of(subject);
    const AesNonce nonce = nonce_for(key.bytes, tenant, entry);
    const Frame bound = bound_to(bound_label, tenant, entry.id);
    const auto sealed = aes_gcm_seal(key.bytes, nonce, bound.bytes(), bytes_of(*entry.data));
    return R"({"sealed": ")" + std::string(envelope_format) + R"(", "key": ")" + key.id + R"(", "nonce": ")" +
           to_base64(nonce) + R"(", "data": ")" + to_base64(sealed) + "\"}";
}

bool SubjectKeys::is_sealed(const std::optional<std::string>& data) {
    return data && envelope_of(*data).has_value();
}

std::optional<std::string> SubjectKeys::open(const TenantId& tenant, const StoredEntry& entry) {
    const auto envelope = entry.data ? envelope_of(*entry.data) : std::nullopt;
    if (!envelope) return std::nullopt;
    load_all();
    const auto key = by_id_.find(envelope->key_id);
    if (key == by_id_.end()) return std::nullopt;
    const Frame bound = bound_to(bound_label, tenant, entry.id);
    const auto plain = aes_gcm_open(key->second->bytes, envelope->nonce, bound.bytes(), envelope->sealed);
    if (!plain) return std::nullopt;
    return std::string(reinterpret_cast<const char*>(plain->data()), plain->size());
}

bool SubjectKeys::erase(std::string_view subject) {
    const std::filesystem::path path = file_of(subject);
    if (!std::filesystem::exists(path)) return false;
    by_id_.clear();
    loaded_ = false;
    overwrite_and_remove(path);
    return true;
}

}  // namespace rowlock
