#include "rowlock/keyring.hpp"

#include <algorithm>
#include <utility>

#include "audit/keyring_file.hpp"
#include "audit/keyring_keys.hpp"
#include "base/bytes.hpp"
#include "base/hex.hpp"
#include "json/json.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

constexpr std::string_view file_format = "rowlock-keyring-1";
constexpr std::string_view key_id_label = "rowlock/key-id/1";
constexpr std::size_t secret_digits = 64;

Keyring::Keys::Key new_key() {
    Keyring::Keys::Key key;
    fill_random(key.secret);
    key.id = key_id_of(key.secret);
    return key;
}

/// Members of a JSON text with keys in it: wiped when they go.
class SecretMembers {
  public:
    explicit SecretMembers(JsonMembers&& parsed) : parsed_(std::move(parsed)) {}
    SecretMembers(const SecretMembers&) = delete;
    SecretMembers& operator=(const SecretMembers&) = delete;
    ~SecretMembers() {
        if (auto* members = std::get_if<std::vector<JsonMember>>(&parsed_)) {
            for (JsonMember& member : *members) wipe(member.text);
        }
    }

    [[nodiscard]] const JsonError* error() const { return std::get_if<JsonError>(&parsed_); }
    [[nodiscard]] const std::vector<JsonMember>& all() const { return std::get<std::vector<JsonMember>>(parsed_); }

  private:
    JsonMembers parsed_;
};

class Parser {
  public:
    explicit Parser(std::string_view origin) : origin_(origin) {}

    [[nodiscard]] Keyring::Keys read(std::string_view json) const {
        const SecretMembers top(parse_object(json));
        check(top, "");
        only_known(top, {"format", "active", "keys"}, "the keyring");
        if (text_of(top, "format", "the keyring") != file_format) {
            damaged("its \"format\" is not \"" + std::string(file_format) + "\"");
        }
        const std::string& active = text_of(top, "active", "the keyring");
        const SecretMembers elements(parse_array(member_of(top, "keys", "the keyring").raw));
        check(elements, "\"keys\": ");
        Keyring::Keys keys;
        keys.all.reserve(elements.all().size());
        for (const JsonMember& element : elements.all()) keys.all.push_back(read_key(element, keys));
        const auto found =
            std::find_if(keys.all.begin(), keys.all.end(), [&](const auto& key) { return key.id == active; });
        if (found == keys.all.end()) damaged("the active key \"" + active + "\" is not among its keys");
        keys.active = static_cast<std::size_t>(found - keys.all.begin());
        return keys;
    }

  private:
    [[noreturn]] void damaged(const std::string& how) const {
        throw SetupError("the keyring " + std::string(origin_) + " is damaged: " + how +
                         "; restore it from a copy, since nothing else can verify what its keys signed");
    }

    void check(const SecretMembers& members, const std::string& where) const {
        if (const JsonError* error = members.error()) {
            damaged(where + "at byte " + std::to_string(error->offset + 1) + ": " + error->reason);
        }
    }

    void only_known(const SecretMembers& members, std::initializer_list<std::string_view> names,
                    const std::string& whose) const {
        for (const JsonMember& member : members.all()) {
            if (std::find(names.begin(), names.end(), member.name) == names.end()) {
                damaged(whose + " has an unknown member " + quote_json(member.name));
            }
        }
    }

    [[nodiscard]] const JsonMember& member_of(const SecretMembers& members, std::string_view name,
                                              const std::string& whose) const {
        for (const JsonMember& member : members.all()) {
            if (member.name == name) return member;
        }
        damaged(whose + " has no \"" + std::string(name) + "\"");
    }

    [[nodiscard]] const std::string& text_of(const SecretMembers& members, std::string_view name,
                                             const std::string& whose) const {
        const JsonMember& member = member_of(members, name, whose);
        if (member.kind != JsonKind::string) damaged("the \"" + std::string(name) + "\" of " + whose + " is no string");
        return member.text;
    }

    [[nodiscard]] Keyring::Keys::Key read_key(const JsonMember& element, const Keyring::Keys& before) const {
        const std::string whose = "key number " + std::to_string(before.all.size() + 1);
        const SecretMembers members(parse_object(element.raw));
        check(members, whose + ": ");
        only_known(members, {"id", "key"}, whose);
        Keyring::Keys::Key key;
        key.id = text_of(members, "id", whose);
        const std::string& digits = text_of(members, "key", whose);
        auto secret = from_hex(digits);
        if (digits.size() != secret_digits || !secret)
            damaged("the \"key\" of " + whose + " is not 64 hexadecimal digits");
        std::copy(secret->begin(), secret->end(), key.secret.begin());
        wipe(std::span(*secret));
        if (key_id_of(key.secret) != key.id) damaged("the id and the key of " + whose + " do not belong together");
        if (before.find(key.id) != nullptr) damaged(whose + " is there twice");
        return key;
    }

    std::string_view origin_;
};

/// The caller wipes it.
std::string file_text(const Keyring::Keys& keys) {
    std::string text;
    text.reserve(200 + keys.all.size() * 120);
    ((text += "{\n  \"format\": ") += quote_json(file_format)) += ",\n  \"active\": ";
    (text += quote_json(keys.all[keys.active].id)) += ",\n  \"keys\": [";
    std::string_view separator = "\n";
    for (const Keyring::Keys::Key& key : keys.all) {
        std::string digits = to_hex(key.secret);
        ((text += separator) += "    {\"id\": ") += quote_json(key.id);
        ((text += ", \"key\": \"") += digits) += "\"}";
        wipe(digits);
        separator = ",\n";
    }
    return text += "\n  ]\n}\n";
}

}  // namespace

std::string key_id_of(std::span<const std::byte, 32> secret) {
    std::array<std::byte, 6> name{};
    hkdf_sha256(secret, {}, bytes_of(key_id_label), name);
    return std::string("k").append(to_hex(name));
}

const Keyring::Keys::Key* Keyring::Keys::find(std::string_view id) const {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Key& key) { return key.id == id; });
    return found == all.end() ? nullptr : &*found;
}

Keyring Keyring::generate() {
    auto keys = std::make_shared<Keys>();
    keys->all.push_back(new_key());
    return Keyring(std::move(keys));
}

Keyring Keyring::load(const std::filesystem::path& path) {
    const Wiped content(read_keyring_file(path, keyring_file_kind));
    return parse(content.view(), path.string());
}

Keyring Keyring::parse(std::string_view json, std::string_view origin) {
    return Keyring(std::make_shared<const Keys>(Parser(origin).read(json)));
}

void Keyring::create_file(const std::filesystem::path& path) const {
    const Wiped content(file_text(*keys_));
    create_keyring_file(path, content.view(), keyring_file_kind);
}

void Keyring::replace_file(const std::filesystem::path& path) const {
    const Wiped content(file_text(*keys_));
    replace_keyring_file(path, content.view(), [&](std::string_view old) {
        const Keyring standing = parse(old, path.string());
        for (const std::string& id : standing.ids()) {
            if (contains(id)) continue;
            throw SetupError("the keyring " + path.string() + " has a key " + id +
                             " that would be lost: it was changed meanwhile; run the command again");
        }
    });
}

Keyring Keyring::rotated() const {
    auto keys = std::make_shared<Keys>();
    keys->all.reserve(keys_->all.size() + 1);
    keys->all = keys_->all;
    keys->all.push_back(new_key());
    keys->active = keys->all.size() - 1;
    return Keyring(std::move(keys));
}

const std::string& Keyring::active_id() const {
    return keys_->all[keys_->active].id;
}

std::vector<std::string> Keyring::ids() const {
    std::vector<std::string> ids;
    ids.reserve(keys_->all.size());
    for (const Keys::Key& key : keys_->all) ids.push_back(key.id);
    return ids;
}

bool Keyring::contains(std::string_view id) const {
    return keys_->find(id) != nullptr;
}

}  // namespace rowlock
