#include "cli/jsonl.hpp"

#include <fmt/format.h>

#include <optional>

#include "json/json.hpp"

namespace rowlock::cli {

namespace {

struct Fields {
    std::optional<TenantId> tenant;
    AuditEntry entry;
    std::optional<std::string> subject;
};

std::optional<std::string> text_of(const JsonMember& member) {
    if (member.kind == JsonKind::null) return std::nullopt;
    if (member.kind != JsonKind::string) throw InvalidInput(fmt::format("\"{}\" must be a string", member.name));
    return member.text;
}

void take(Fields& fields, const JsonMember& member) {
    if (member.name == "tenant") {
        fields.tenant.emplace(text_of(member).value_or(""));
    } else if (member.name == "actor") {
        fields.entry.actor = text_of(member);
    } else if (member.name == "action") {
        fields.entry.action = text_of(member);
    } else if (member.name == "object") {
        fields.entry.object = text_of(member);
    } else if (member.name == "data") {
        if (member.kind != JsonKind::null) fields.entry.data = std::string(member.raw);
    } else if (member.name == "entry_id") {
        if (const auto text = text_of(member)) fields.entry.id = EntryId::parse(*text);
    } else if (member.name == "subject") {
        fields.subject = text_of(member);
        if (fields.subject == "") throw InvalidInput("\"subject\" is empty");
    } else {
        throw InvalidInput(
            fmt::format("\"{}\" is not known: an entry has tenant, actor, action, object, data, entry_id and subject",
                        member.name));
    }
}

}  // namespace

std::variant<JsonlEntry, BadLine> parse_line(std::string_view line) {
    const auto parsed = parse_object(line);
    if (const auto* const error = std::get_if<JsonError>(&parsed)) return BadLine{error->offset + 1, error->reason};
    Fields fields;
    for (const JsonMember& member : std::get<std::vector<JsonMember>>(parsed)) {
        try {
            take(fields, member);
        } catch (const InvalidInput& refused) {
            return BadLine{member.offset + 1, refused.what()};
        }
    }
    if (!fields.tenant) return BadLine{1, "\"tenant\" is missing"};
    if (fields.subject && !fields.entry.data)
        return BadLine{1, "\"subject\" says whose key encrypts the data, and there is no \"data\""};
    return JsonlEntry{{std::move(*fields.tenant), std::move(fields.entry)}, std::move(fields.subject)};
}

}  // namespace rowlock::cli
