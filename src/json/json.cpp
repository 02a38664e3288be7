#include "json/json.hpp"

#include <stdexcept>

namespace rowlock {

namespace {

/// A rule of the library's own that input may turn out to break must not stop the program.
[[noreturn]] void library_rule_broken() {
    throw std::logic_error("RapidJSON broke a rule of its own");
}

}  // namespace

}  // namespace rowlock

#define RAPIDJSON_ASSERT(condition) \
    (static_cast<bool>(condition) ? static_cast<void>(0) : ::rowlock::library_rule_broken())
#include <rapidjson/reader.h>

#include <optional>
#include <unordered_set>

#include "base/utf8.hpp"
#include "json/text_stream.hpp"

namespace rowlock {

namespace {

using rapidjson::ParseErrorCode;
using Reader = rapidjson::GenericReader<rapidjson::UTF8<>, rapidjson::UTF8<>, WipingAllocator>;
constexpr unsigned flags = rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag;

constexpr bool is_high_surrogate(std::uint32_t unit) {
    return unit >= 0xD800 && unit <= 0xDBFF;
}
constexpr bool is_low_surrogate(std::uint32_t unit) {
    return unit >= 0xDC00 && unit <= 0xDFFF;
}

/// The four digits at `place`; the reader has already seen that they are digits.
std::uint32_t hex4(std::string_view text, std::size_t place) {
    std::uint32_t unit = 0;
    for (const char digit : text.substr(place, 4)) {
        const auto byte = static_cast<unsigned char>(digit);
        const unsigned value = byte <= '9' ? byte - unsigned{'0'} : (byte | 0x20U) - unsigned{'a'} + 10U;
        unit = unit * 16U + value;
    }
    return unit;
}

char simple_escape(char letter) {
    switch (letter) {
        case 'b':
            return '\b';
        case 'f':
            return '\f';
        case 'n':
            return '\n';
        case 'r':
            return '\r';
        case 't':
            return '\t';
        default:
            return letter;
    }
}

/// Unescapes a string literal that the reader has accepted. Nothing for a lone surrogate; `place` is then where it
/// stands.
std::optional<std::string> unescape(std::string_view literal, std::size_t& place) {
    std::string text;
    // At once, so that a key leaves no shorter copies of itself behind.
    text.reserve(literal.size());
    const std::size_t end = literal.size() - 1;
    for (place = 1; place < end;) {
        if (literal[place] != '\\') {
            text += literal[place++];
            continue;
        }
        if (literal[place + 1] != 'u') {
            text += simple_escape(literal[place + 1]);
            place += 2;
            continue;
        }
        std::uint32_t unit = hex4(literal, place + 2);
        std::size_t length = 6;
        if (is_high_surrogate(unit) && literal.substr(place + 6, 2) == "\\u") {
            const std::uint32_t low = hex4(literal, place + 8);
            if (!is_low_surrogate(low)) return std::nullopt;
            unit = 0x10000U + ((unit - 0xD800U) << 10U) + (low - 0xDC00U);
            length = 12;
        } else if (is_high_surrogate(unit) || is_low_surrogate(unit)) {
            return std::nullopt;
        }
        append_utf8(text, unit);
        place += length;
    }
    return text;
}

/// Takes the reader's events and keeps what belongs to the top level. The events carry no offsets, but the stream
/// stands at the end of what an event is about, and between two values of the top level there is only white space, ','
/// and ':'.
class Collector : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Collector> {
  public:
    Collector(std::string_view text, const TextStream& stream, std::optional<JsonKind> wanted)
        : text_(text), stream_(stream), wanted_(wanted) {}

    bool Default() { return true; }
    bool Null() { return scalar(JsonKind::null); }
    bool Bool(bool) { return scalar(JsonKind::boolean); }
    bool RawNumber(const char*, rapidjson::SizeType, bool) { return scalar(JsonKind::number); }
    bool String(const char*, rapidjson::SizeType, bool) { return scalar(JsonKind::string); }
    bool StartObject() { return open(JsonKind::object); }
    bool StartArray() { return open(JsonKind::array); }
    bool EndObject(rapidjson::SizeType) { return close(JsonKind::object); }
    bool EndArray(rapidjson::SizeType) { return close(JsonKind::array); }
    bool Key(const char*, rapidjson::SizeType, bool) { return depth_ != 1 || !wanted_ || name(); }

    [[nodiscard]] std::vector<JsonMember>& members() { return members_; }
    [[nodiscard]] const std::optional<JsonError>& error() const { return error_; }

  private:
    bool fail(std::size_t offset, std::string reason) {
        error_ = JsonError{offset, std::move(reason)};
        return false;
    }

    bool wrong_top_level(std::size_t offset) {
        return fail(offset, *wanted_ == JsonKind::object ? "expected an object: '{'" : "expected an array: '['");
    }

    [[nodiscard]] std::size_t next_token() const { return text_.find_first_not_of(" \t\r\n,:", cursor_); }

    bool name() {
        const std::size_t begin = next_token();
        cursor_ = stream_.Tell();
        std::size_t place = 0;
        auto text = unescape(text_.substr(begin, cursor_ - begin), place);
        if (!text) return fail(begin + place, "half a surrogate pair has no text");
        if (!names_.insert(*text).second) return fail(begin, "the member \"" + *text + "\" is there twice");
        name_ = std::move(*text);
        return true;
    }

    bool open(JsonKind kind) {
        if (depth_ == 0 && wanted_) {
            if (*wanted_ != kind) return wrong_top_level(stream_.Tell());
            cursor_ = stream_.Tell() + 1;
        }
        ++depth_;
        return true;
    }

    bool close(JsonKind kind) {
        --depth_;
        return depth_ != 1 || !wanted_ || value(kind, stream_.Tell() + 1);
    }

    bool scalar(JsonKind kind) {
        if (depth_ == 0 && wanted_) return wrong_top_level(next_token());
        return depth_ != 1 || !wanted_ || value(kind, stream_.Tell());
    }

    bool value(JsonKind kind, std::size_t end) {
        const std::size_t begin = next_token();
        JsonMember member{std::move(name_), text_.substr(begin, end - begin), kind, {}, begin};
        name_.clear();
        cursor_ = end;
        if (kind == JsonKind::string) {
            std::size_t place = 0;
            auto text = unescape(member.raw, place);
            if (!text) return fail(begin + place, "half a surrogate pair has no text");
            member.text = std::move(*text);
        }
        members_.push_back(std::move(member));
        return true;
    }

    std::string_view text_;
    const TextStream& stream_;
    std::optional<JsonKind> wanted_;
    std::size_t depth_ = 0;
    std::size_t cursor_ = 0;
    std::string name_;
    std::unordered_set<std::string> names_;
    std::vector<JsonMember> members_;
    std::optional<JsonError> error_;
};

std::string_view expected_at_end(ParseErrorCode code) {
    switch (code) {
        case rapidjson::kParseErrorDocumentEmpty:
            return "there is no value: the text is empty";
        case rapidjson::kParseErrorObjectMissName:
            return "the text ends where a member's name was expected";
        case rapidjson::kParseErrorObjectMissColon:
            return "the text ends where ':' was expected";
        case rapidjson::kParseErrorObjectMissCommaOrCurlyBracket:
            return "the text ends where ',' or '}' was expected";
        case rapidjson::kParseErrorArrayMissCommaOrSquareBracket:
            return "the text ends where ',' or ']' was expected";
        case rapidjson::kParseErrorStringMissQuotationMark:
            return "the text ends inside a string";
        default:
            return "the text ends where a value was expected";
    }
}

std::string_view expected_instead(ParseErrorCode code, char found) {
    switch (code) {
        case rapidjson::kParseErrorDocumentRootNotSingular:
            return "expected nothing more after the value";
        case rapidjson::kParseErrorObjectMissName:
            return "expected a member's name in double quotes";
        case rapidjson::kParseErrorObjectMissColon:
            return "expected ':'";
        case rapidjson::kParseErrorObjectMissCommaOrCurlyBracket:
            return "expected ',' or '}'";
        case rapidjson::kParseErrorArrayMissCommaOrSquareBracket:
            return "expected ',' or ']'";
        case rapidjson::kParseErrorStringUnicodeEscapeInvalidHex:
            return "expected four hexadecimal digits after \\u";
        case rapidjson::kParseErrorStringEscapeInvalid:
            return found == '\\' ? "unknown escape in a string" : "a control character in a string must be escaped";
        case rapidjson::kParseErrorStringMissQuotationMark:
            return "a control character in a string must be escaped";
        case rapidjson::kParseErrorNumberMissFraction:
            return "expected a digit after the decimal point";
        case rapidjson::kParseErrorNumberMissExponent:
            return "expected a digit in the exponent";
        default:
            return "expected a value";
    }
}

JsonError describe(ParseErrorCode code, std::size_t offset, std::string_view text) {
    if (offset >= text.size()) return {text.size(), std::string(expected_at_end(code))};
    return {offset, std::string(expected_instead(code, text[offset]))};
}

JsonMembers parse(std::string_view text, std::optional<JsonKind> wanted) {
    if (const auto offset = first_invalid_utf8(text)) return JsonError{*offset, "the text is not UTF-8"};
    TextStream stream(text);
    Collector collector(text, stream, wanted);
    try {
        WipingAllocator allocator;
        Reader reader(&allocator);
        const rapidjson::ParseResult result = reader.Parse<flags>(stream, collector);
        if (collector.error()) return *collector.error();
        if (result.IsError()) return describe(result.Code(), result.Offset(), text);
    } catch (const std::logic_error& fault) {
        return JsonError{stream.Tell(), fault.what()};
    }
    // The reader takes a NUL for the end.
    if (stream.Tell() != text.size()) return JsonError{stream.Tell(), "expected nothing more after the value"};
    return std::move(collector.members());
}

}  // namespace

JsonMembers parse_object(std::string_view text) {
    return parse(text, JsonKind::object);
}

JsonMembers parse_array(std::string_view text) {
    return parse(text, JsonKind::array);
}

bool valid_json(std::string_view text) {
    return std::holds_alternative<std::vector<JsonMember>>(parse(text, std::nullopt));
}

std::string quote_json(std::string_view text) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string literal = "\"";
    literal.reserve(text.size() + 2);
    std::size_t valid_to = first_invalid_utf8(text).value_or(text.size());
    for (std::size_t place = 0; place < text.size(); ++place) {
        if (place == valid_to) {
            literal += "\xEF\xBF\xBD";
            valid_to = place + 1 + first_invalid_utf8(text.substr(place + 1)).value_or(text.size() - place - 1);
            continue;
        }
        const char letter = text[place];
        const auto byte = static_cast<unsigned char>(letter);
        if (letter == '"' || letter == '\\') {
            (literal += '\\') += letter;
        } else if (letter == '\n') {
            literal += "\\n";
        } else if (letter == '\t') {
            literal += "\\t";
        } else if (byte < 0x20 || byte == 0x7F) {
            ((literal += "\\u00") += digits[byte >> 4U]) += digits[byte & 15U];
        } else {
            literal += letter;
        }
    }
    return literal += '"';
}

}  // namespace rowlock
