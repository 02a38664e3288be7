#include "audit/own_entries.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "base/hex.hpp"
#include "json/json.hpp"

namespace rowlock {

namespace {

/// The members of an entry's data, looked up by name and kind.
class OwnData {
  public:
    explicit OwnData(const SignedEntry& entry) : parsed_(parse_object(entry.data.value_or(""))) {}

    [[nodiscard]] std::optional<std::int64_t> number(std::string_view name) const {
        const JsonMember* const member = find(name, JsonKind::number);
        if (member == nullptr) return std::nullopt;
        const std::string_view digits = member->raw;
        std::int64_t number = 0;
        const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
        const bool is_whole = fault == std::errc{} && end == digits.data() + digits.size();
        return is_whole ? std::optional(number) : std::nullopt;
    }

    [[nodiscard]] std::optional<std::string> text(std::string_view name) const {
        const JsonMember* const member = find(name, JsonKind::string);
        return member == nullptr ? std::nullopt : std::optional(member->text);
    }

    [[nodiscard]] std::optional<Mac> mac(std::string_view name) const {
        const auto digits = text(name);
        const auto bytes = digits ? from_hex(*digits) : std::nullopt;
        Mac mac{};
        if (!bytes || bytes->size() != mac.size()) return std::nullopt;
        std::ranges::copy(*bytes, mac.begin());
        return mac;
    }

  private:
    [[nodiscard]] const JsonMember* find(std::string_view name, JsonKind kind) const {
        const auto* const members = std::get_if<std::vector<JsonMember>>(&parsed_);
        if (members == nullptr) return nullptr;
        const auto found = std::ranges::find(*members, name, &JsonMember::name);
        return found != members->end() && found->kind == kind ? &*found : nullptr;
    }

    JsonMembers parsed_;
};

}  // namespace

std::string resumption_json(const Resumption& resumption) {
    return R"({"after": )" + std::to_string(resumption.after) + R"(, "size": )" + std::to_string(resumption.size) +
           R"(, "mac": ")" + to_hex(resumption.mac) + R"(", "reason": )" + quote_json(resumption.reason) + "}";
}

std::string retirement_json(const Retirement& retirement) {
    return R"({"through": )" + std::to_string(retirement.through) + R"(, "mac": ")" + to_hex(retirement.mac) +
           R"(", "key_id": )" + quote_json(retirement.key_id) + R"(, "reason": )" + quote_json(retirement.reason) + "}";
}

std::string acknowledgement_json(const Acknowledgement& acknowledgement) {
    return R"({"kind": ")" + std::string(name_of(acknowledgement.kind)) + R"(", "seq": )" +
           std::to_string(acknowledgement.first_seq) + R"(, "last_seq": )" + std::to_string(acknowledgement.last_seq) +
           R"(, "evidence": ")" + to_hex(acknowledgement.evidence) + R"(", "reason": )" +
           quote_json(acknowledgement.reason) + "}";
}

std::optional<Resumption> resumption_of(const SignedEntry& entry) {
    const OwnData data(entry);
    const auto after = data.number("after");
    const auto size = data.number("size");
    const auto mac = data.mac("mac");
    auto reason = data.text("reason");
    if (!after || !size || !mac || !reason) return std::nullopt;
    return Resumption{entry.seq,         *after, *size, *mac, entry.recorded_at, std::string(entry.actor.value_or("")),
                      std::move(*reason)};
}

std::optional<Retirement> retirement_of(const SignedEntry& entry) {
    const OwnData data(entry);
    const auto through = data.number("through");
    const auto mac = data.mac("mac");
    auto key_id = data.text("key_id");
    auto reason = data.text("reason");
    if (!through || *through < 1 || *through >= entry.seq || !mac || !key_id || !reason) return std::nullopt;
    return Retirement{entry.seq, *through, *mac, std::move(*key_id), std::move(*reason)};
}

std::optional<Acknowledgement> acknowledgement_of(const SignedEntry& entry) {
    const OwnData data(entry);
    const auto kind = finding_kind_of(data.text("kind").value_or(""));
    const auto first = data.number("seq");
    const auto last = data.number("last_seq");
    const auto evidence = data.mac("evidence");
    auto reason = data.text("reason");
    if (!kind || !first || *first < 1 || !last || *last < *first || *last >= entry.seq || !evidence || !reason) {
        return std::nullopt;
    }
    return Acknowledgement{
        entry.seq,          *kind, *first, *last, *evidence, entry.recorded_at, std::string(entry.actor.value_or("")),
        std::move(*reason), false};
}

}  // namespace rowlock
