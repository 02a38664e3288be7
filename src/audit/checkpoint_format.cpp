#include "audit/checkpoint_format.hpp"

#include <algorithm>

#include "audit/head_list.hpp"
#include "audit/note.hpp"
#include "base/base64.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

constexpr std::string_view checkpoint_kind = "rowlock/checkpoint/1";

std::optional<ChainHead> head_of_words(std::span<const std::string_view> words) {
    if (words.size() != 4) return std::nullopt;
    auto tenant = from_note_word(words[0]);
    const auto size = number_of_word(words[1]);
    const auto mac = digest_of_word(words[2]);
    auto key_id = from_note_word(words[3]);
    if (!tenant || !size || *size < 1 || !mac || !key_id || key_id->empty()) return std::nullopt;
    try {
        return ChainHead{TenantId(std::move(*tenant)), *size, *mac, std::move(*key_id)};
    } catch (const InvalidInput&) {
        return std::nullopt;
    }
}

}  // namespace

const ChainHead* Checkpoint::find(const TenantId& tenant) const {
    const auto found = std::ranges::lower_bound(heads, tenant, {}, &ChainHead::tenant);
    return found != heads.end() && found->tenant == tenant ? &*found : nullptr;
}

std::string checkpoint_text(const Checkpoint& checkpoint) {
    std::string text =
        head_list_start(checkpoint_kind, {checkpoint.ledger, checkpoint.made_at}, checkpoint.heads.size());
    for (const ChainHead& head : checkpoint.heads) {
        (text += note_word(head.tenant.text())) += ' ';
        (text += std::to_string(head.size)) += ' ';
        (text += to_base64(head.mac)) += ' ';
        (text += note_word(head.key_id)) += '\n';
    }
    return text;
}

std::variant<Checkpoint, std::string> parse_checkpoint(std::string_view text) {
    Checkpoint checkpoint;
    HeadListStart start;
    const auto wrong = read_head_list(text, checkpoint_kind, start, [&](std::span<const std::string_view> words) {
        auto head = head_of_words(words);
        // find() looks by halves.
        if (!head || (!checkpoint.heads.empty() && head->tenant <= checkpoint.heads.back().tenant)) return false;
        checkpoint.heads.push_back(std::move(*head));
        return true;
    });
    if (wrong) return *wrong;
    checkpoint.ledger = start.ledger;
    checkpoint.made_at = start.time;
    if (checkpoint_text(checkpoint) != text) return "it is not written in the one form that it has";
    return checkpoint;
}

std::string sign_checkpoint(const Checkpoint& checkpoint, const SigningKey& key) {
    return sign_note(checkpoint_text(checkpoint), key);
}

std::variant<Checkpoint, NoteRefused> open_checkpoint(std::string_view note, std::span<const PublicKey> pinned) {
    const auto opened = open_note(note, pinned);
    if (const auto* const refused = std::get_if<NoteRefused>(&opened)) return *refused;
    auto parsed = parse_checkpoint(std::get<std::string_view>(opened));
    if (auto* const wrong = std::get_if<std::string>(&parsed)) {
        return NoteRefused{NoteRefused::Reason::damaged, std::move(*wrong)};
    }
    return std::get<Checkpoint>(std::move(parsed));
}

}  // namespace rowlock
