#include "rowlock/signing_key.hpp"

#include <algorithm>
#include <optional>

#include "audit/keyring_file.hpp"
#include "audit/signing_key_seed.hpp"
#include "base/base64.hpp"
#include "base/bytes.hpp"
#include "base/hex.hpp"
#include "base/utf8.hpp"
#include "crypto/sha256.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

/// The number that C2SP has given to Ed25519.
constexpr std::byte ed25519_type{1};
constexpr std::size_t key_name_bytes_max = 256;
constexpr std::string_view private_start = "PRIVATE+KEY+";

/// Unicode's spaces beyond ASCII, as UTF-8: https://www.unicode.org/Public/15.0.0/ucd/PropList.txt, White_Space.
constexpr std::string_view wide_blanks[] = {"\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003",
                                            "\u2004", "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200a",
                                            "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};

bool is_key_name(std::string_view name) {
    if (name.empty() || name.size() > key_name_bytes_max || first_invalid_utf8(name)) return false;
    const bool plain = std::ranges::none_of(name, [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte <= ' ' || byte == 0x7f || c == '+';
    });
    return plain && std::ranges::none_of(wide_blanks, [&](std::string_view blank) {
               return name.find(blank) != std::string_view::npos;
           });
}

std::array<std::byte, 4> note_key_id(std::string_view name, std::span<const std::byte, 32> key) {
    Sha256 hash;
    hash.begin();
    hash.update(bytes_of(name));
    hash.update(bytes_of("\n"));
    hash.update({&ed25519_type, 1});
    hash.update(key);
    const Digest digest = hash.finish();
    std::array<std::byte, 4> id{};
    std::copy_n(digest.begin(), id.size(), id.begin());
    return id;
}

/// name+hash+base64, without what is before and behind it.
struct KeyText {
    std::string_view name;
    std::string_view id;
    std::vector<std::byte> key;  ///< Its type, then its 32 bytes.
};

std::optional<KeyText> split_key(std::string_view text) {
    const std::size_t first = text.find('+');
    const std::size_t second = first == std::string_view::npos ? first : text.find('+', first + 1);
    if (second == std::string_view::npos) return std::nullopt;
    auto key = from_base64(text.substr(second + 1));
    if (!key || key->size() != 33 || key->front() != ed25519_type) return std::nullopt;
    return KeyText{text.substr(0, first), text.substr(first + 1, second - first - 1), std::move(*key)};
}

std::string join_key(std::string_view name, std::span<const std::byte, 4> id, std::span<const std::byte, 32> key) {
    std::vector<std::byte> typed{ed25519_type};
    typed.insert(typed.end(), key.begin(), key.end());
    std::string encoded = to_base64(typed);
    wipe(std::span(typed));
    std::string text;
    // All the room at once, so that growing leaves no copy of a private key behind.
    text.reserve(name.size() + encoded.size() + 10);
    (((text += name) += '+') += to_hex(id)) += '+';
    text += encoded;
    wipe(encoded);
    return text;
}

std::string_view without_line_end(std::string_view text) {
    if (text.ends_with('\n')) text.remove_suffix(1);
    return text;
}

}  // namespace

PublicKey::PublicKey(std::string name, const std::array<std::byte, 32>& key) : name_(std::move(name)), key_(key) {
    if (!is_key_name(name_)) {
        throw InvalidInput(
            "a signing key's name has 1 to 256 bytes of UTF-8 without blanks, control characters and +, such as "
            "shop.example/audit; this one is \"" +
            name_ + "\"");
    }
    id_ = note_key_id(name_, key_);
}

PublicKey PublicKey::parse(std::string_view text) {
    text = without_line_end(text);
    const auto parts = split_key(text);
    if (!parts) {
        throw InvalidInput("\"" + std::string(text.substr(0, key_name_bytes_max)) +
                           "\" is no public key, which looks like name+hash+base64; rowlock keys public prints it");
    }
    std::array<std::byte, 32> bytes{};
    std::copy(parts->key.begin() + 1, parts->key.end(), bytes.begin());
    PublicKey key(std::string(parts->name), bytes);
    if (to_hex(key.id_) != parts->id) {
        throw InvalidInput("the hash in the public key of " + key.name_ +
                           " does not fit its name and key: it was copied wrongly");
    }
    return key;
}

std::string PublicKey::text() const {
    return join_key(name_, id_, key_);
}

SigningKey SigningKey::generate(std::string name) {
    auto seed = std::make_shared<Seed>();
    fill_random(seed->bytes);
    SigningKey key(std::move(name), std::move(seed));
    static_cast<void>(key.public_key());  // refuses a name that is none
    return key;
}

SigningKey SigningKey::load(const std::filesystem::path& path) {
    const Wiped content(read_keyring_file(path, signing_key_file_kind));
    return parse(content.view(), path.string());
}

SigningKey SigningKey::parse(std::string_view text, std::string_view origin) {
    const auto damaged = [&] {
        return SetupError("the signing key " + std::string(origin) +
                          " is damaged: it is one line, PRIVATE+KEY+name+hash+base64; restore it from a copy");
    };
    text = without_line_end(text);
    if (!text.starts_with(private_start)) throw damaged();
    auto parts = split_key(text.substr(private_start.size()));
    if (!parts || !is_key_name(parts->name)) throw damaged();
    auto seed = std::make_shared<Seed>();
    std::copy(parts->key.begin() + 1, parts->key.end(), seed->bytes.begin());
    wipe(std::span(parts->key));
    SigningKey key(std::string(parts->name), std::move(seed));
    if (to_hex(key.public_key().id()) != parts->id) throw damaged();
    return key;
}

void SigningKey::create_file(const std::filesystem::path& path) const {
    std::string line = join_key(name_, public_key().id(), seed_->bytes);
    std::string text;
    text.reserve(private_start.size() + line.size() + 1);
    ((text += private_start) += line) += '\n';
    wipe(line);
    const Wiped content(std::move(text));
    create_keyring_file(path, content.view(), signing_key_file_kind);
}

PublicKey SigningKey::public_key() const {
    return {name_, ed25519_public_key(seed_->bytes)};
}

}  // namespace rowlock
