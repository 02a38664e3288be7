#include "audit/bundle_format.hpp"

#include <algorithm>

#include "audit/head_list.hpp"
#include "base/base64.hpp"
#include "base/big_endian.hpp"
#include "base/contract.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

constexpr std::string_view bundle_kind = "rowlock/bundle/1";

/// The fields of a frame, one after the other; the first that is none spoils all that follow.
class FieldCursor {
  public:
    explicit FieldCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

    [[nodiscard]] bool ended_well() const { return good_ && bytes_.empty(); }
    [[nodiscard]] bool good() const { return good_; }
    [[nodiscard]] std::size_t left() const { return bytes_.size(); }

    /// A span without data for a NULL, and once something was wrong.
    std::span<const std::byte> next() {
        constexpr std::size_t head = 5;
        if (!good_ || bytes_.size() < head) return fail();
        const auto presence = std::to_integer<unsigned>(bytes_[0]);
        std::size_t size = 0;
        for (std::size_t i = 1; i < head; ++i) size = (size << 8U) | std::to_integer<std::size_t>(bytes_[i]);
        if (presence > 1 || (presence == 0 && size != 0) || size > bytes_.size() - head) return fail();
        const auto field = presence == 0 ? std::span<const std::byte>() : bytes_.subspan(head, size);
        bytes_ = bytes_.subspan(head + size);
        return field;
    }

    std::span<const std::byte> required() {
        const auto field = next();
        return field.data() == nullptr ? fail() : field;
    }

    template <std::size_t size>
    std::span<const std::byte> sized() {
        const auto field = next();
        return field.size() == size ? field : fail();
    }

    std::string_view text() { return text_of(required()); }

    std::optional<std::string_view> optional_text() {
        const auto field = next();
        return field.data() == nullptr ? std::nullopt : std::optional(text_of(field));
    }

    std::int64_t number() {
        std::uint64_t value = 0;
        for (const std::byte byte : sized<8>()) value = (value << 8U) | std::to_integer<std::uint64_t>(byte);
        return static_cast<std::int64_t>(value);
    }

  private:
    static std::string_view text_of(std::span<const std::byte> bytes) {
        // Bytes and characters may be looked at as each other.
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }

    std::span<const std::byte> fail() {
        good_ = false;
        return {};
    }

    std::span<const std::byte> bytes_;
    bool good_ = true;
};

std::optional<BundleHead> bundle_head_of(std::span<const std::string_view> words) {
    if (words.size() != 6) return std::nullopt;
    auto tenant = from_note_word(words[0]);
    const auto first = number_of_word(words[1]);
    const auto last = number_of_word(words[2]);
    const auto mac = digest_of_word(words[3]);
    auto key_id = from_note_word(words[4]);
    const auto hash = digest_of_word(words[5]);
    if (!tenant || !first || !last || !mac || !key_id || !hash || key_id->empty() || *first < 1 || *last < *first) {
        return std::nullopt;
    }
    try {
        return BundleHead{TenantId(std::move(*tenant)), *first, *last, *mac, std::move(*key_id), *hash};
    } catch (const InvalidInput&) {
        return std::nullopt;
    }
}

}  // namespace

std::array<std::byte, bundle_record_head> bundle_record_start(BundleRecord type, std::size_t size) {
    contract(size <= bundle_record_max, "a record of a bundle is below 2 GiB");
    std::array<std::byte, bundle_record_head> start{static_cast<std::byte>(type)};
    put_u32(start.data() + 1, static_cast<std::uint32_t>(size));
    return start;
}

void add_header(Frame& frame, const BundleHeader& header) {
    frame.add(std::span<const std::byte>(header.ledger));
    frame.add(header.signer);
}

void add_trailer(Frame& frame, const BundleTrailer& trailer) {
    frame.add(trailer.tenants);
    frame.add(trailer.entries);
}

void add_entry(Frame& frame, const TenantId& tenant, const SignedEntry& entry) {
    frame.add(entry_domains.at(entry_domain_of(entry.action)).domain);
    frame.add(mac_algorithm);
    frame.add(entry.key_id);
    frame.add(tenant.text());
    frame.add_content(entry);
    frame.add(entry.mac);
}

std::optional<BundleHeader> read_header(std::span<const std::byte> payload) {
    FieldCursor fields(payload);
    BundleHeader header;
    const auto ledger = fields.sized<16>();
    header.signer = fields.text();
    if (!fields.ended_well()) return std::nullopt;
    std::ranges::copy(ledger, header.ledger.begin());
    return header;
}

std::optional<BundleTrailer> read_trailer(std::span<const std::byte> payload) {
    FieldCursor fields(payload);
    BundleTrailer trailer;
    trailer.tenants = fields.number();
    trailer.entries = fields.number();
    return fields.ended_well() ? std::optional(trailer) : std::nullopt;
}

std::optional<BundleEntry> read_entry(std::span<const std::byte> payload) {
    FieldCursor fields(payload);
    BundleEntry read;
    SignedEntry& entry = read.entry;
    const std::string_view domain = fields.text();
    const std::string_view algorithm = fields.text();
    entry.key_id = fields.text();
    read.tenant = fields.text();
    entry.seq = fields.number();
    const auto entry_id = fields.sized<16>();
    entry.recorded_at = fields.number();
    entry.actor = fields.optional_text();
    entry.action = fields.optional_text();
    entry.object = fields.optional_text();
    entry.data = fields.optional_text();
    entry.prev_mac = fields.sized<32>();
    entry.mac = fields.sized<32>();
    read.hashed = payload.first(payload.size() - fields.left());
    const auto hash = fields.sized<32>();
    if (!fields.ended_well() || algorithm != mac_algorithm) return std::nullopt;
    if (domain != entry_domains.at(entry_domain_of(entry.action)).domain) return std::nullopt;
    std::ranges::copy(entry_id, entry.entry_id.begin());
    std::ranges::copy(hash, read.hash.begin());
    return read;
}

std::string bundle_text(const LedgerId& ledger, std::int64_t made_at, const std::vector<BundleHead>& heads) {
    std::string text = head_list_start(bundle_kind, {ledger, made_at}, heads.size());
    for (const BundleHead& head : heads) {
        (text += note_word(head.tenant.text())) += ' ';
        (text += std::to_string(head.first)) += ' ';
        (text += std::to_string(head.last)) += ' ';
        (text += to_base64(head.mac)) += ' ';
        (text += note_word(head.key_id)) += ' ';
        (text += to_base64(head.hash)) += '\n';
    }
    return text;
}

std::variant<BundleText, std::string> parse_bundle_text(std::string_view text) {
    BundleText parsed;
    HeadListStart start;
    const auto wrong = read_head_list(text, bundle_kind, start, [&](std::span<const std::string_view> words) {
        auto head = bundle_head_of(words);
        if (!head || (!parsed.heads.empty() && head->tenant <= parsed.heads.back().tenant)) return false;
        parsed.heads.push_back(std::move(*head));
        return true;
    });
    if (wrong) return *wrong;
    parsed.ledger = start.ledger;
    parsed.made_at = start.time;
    if (bundle_text(parsed.ledger, parsed.made_at, parsed.heads) != text) {
        return "it is not written in the one form that it has";
    }
    return parsed;
}

std::string_view next_key_of(const SignedEntry& entry) {
    return entry.action == rotation_action ? entry.object.value_or("") : entry.key_id;
}

}  // namespace rowlock
