#include "audit/note.hpp"

#include <algorithm>
#include <optional>

#include "audit/signing_key_seed.hpp"
#include "base/base64.hpp"
#include "base/bytes.hpp"
#include "base/contract.hpp"
#include "base/lines.hpp"
#include "base/utf8.hpp"

namespace rowlock {

namespace {

constexpr std::string_view dash = "\u2014 ";
/// The specification asks for 16 at least.
constexpr std::size_t signatures_max = 64;
constexpr std::size_t id_bytes = 4;

struct Signature {
    std::string_view name;
    std::vector<std::byte> bytes;  ///< The key's id, then the signature.
};

struct ParsedNote {
    std::string_view text;
    std::vector<Signature> signatures;
};

std::optional<Signature> parse_signature(std::string_view line) {
    if (!line.starts_with(dash)) return std::nullopt;
    line.remove_prefix(dash.size());
    const std::size_t blank = line.find(' ');
    if (blank == 0 || blank == std::string_view::npos) return std::nullopt;
    auto bytes = from_base64(line.substr(blank + 1));
    if (!bytes || bytes->size() <= id_bytes) return std::nullopt;
    return Signature{line.substr(0, blank), std::move(*bytes)};
}

std::variant<ParsedNote, std::string> parse_note(std::string_view note) {
    if (const auto offset = first_invalid_utf8(note)) {
        return "byte " + std::to_string(*offset + 1) + " is not UTF-8";
    }
    const auto control =
        std::ranges::find_if(note, [](char c) { return static_cast<unsigned char>(c) < ' ' && c != '\n'; });
    if (control != note.end()) {
        return "byte " + std::to_string(control - note.begin() + 1) + " is a control character";
    }
    const std::size_t split = note.rfind("\n\n");
    if (split == std::string_view::npos) return "there is no empty line before the signatures";
    if (!note.ends_with('\n')) return "its last line does not end: the file is cut off";
    ParsedNote parsed{note.substr(0, split + 1), {}};
    for (const std::string_view line : lines_of(note.substr(split + 2))) {
        auto signature = parse_signature(line);
        if (!signature) return "a line behind the empty one is no signature";
        if (parsed.signatures.size() == signatures_max) return "there are more than 64 signatures";
        parsed.signatures.push_back(std::move(*signature));
    }
    if (parsed.signatures.empty()) return "there is no signature: the file is cut off";
    return parsed;
}

bool is_of(const Signature& signature, const PublicKey& key) {
    return signature.name == key.name() && std::equal(key.id().begin(), key.id().end(), signature.bytes.begin());
}

bool fits(const Signature& signature, const PublicKey& key, std::string_view text) {
    Ed25519Signature bytes{};
    if (signature.bytes.size() != id_bytes + bytes.size()) return false;
    std::copy(signature.bytes.begin() + id_bytes, signature.bytes.end(), bytes.begin());
    return ed25519_verify(key.bytes(), bytes_of(text), bytes);
}

std::string names_of(const std::vector<Signature>& signatures) {
    std::string names;
    for (const Signature& signature : signatures) ((names += names.empty() ? "" : ", ") += signature.name);
    return names;
}

}  // namespace

std::string sign_note(std::string_view text, const SigningKey& key) {
    contract(text.ends_with('\n'), "the text of a note ends in a line end");
    const PublicKey signer = key.public_key();
    const Ed25519Signature signature = ed25519_sign(key.seed().bytes, bytes_of(text));
    std::vector<std::byte> bytes(signer.id().begin(), signer.id().end());
    bytes.insert(bytes.end(), signature.begin(), signature.end());
    std::string note(text);
    (((note += '\n') += dash) += signer.name()) += ' ';
    return (note += to_base64(bytes)) += '\n';
}

std::variant<std::string_view, NoteRefused> open_note(std::string_view note, std::span<const PublicKey> pinned) {
    using Reason = NoteRefused::Reason;
    const auto result = parse_note(note);
    if (const auto* const wrong = std::get_if<std::string>(&result)) return NoteRefused{Reason::damaged, *wrong};
    const auto& parsed = std::get<ParsedNote>(result);
    bool good = false;
    for (const Signature& signature : parsed.signatures) {
        for (const PublicKey& key : pinned) {
            if (!is_of(signature, key)) continue;
            if (!fits(signature, key, parsed.text)) {
                return NoteRefused{Reason::bad_signature,
                                   "it is not what " + key.name() + " signed: somebody has changed it, or made it up"};
            }
            good = true;
        }
    }
    if (good) return parsed.text;
    return NoteRefused{Reason::other_signer,
                       "none of the pinned keys has signed it, but: " + names_of(parsed.signatures)};
}

}  // namespace rowlock
