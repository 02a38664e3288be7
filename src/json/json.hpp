// JSON (RFC 8259): checks a text and finds the members of its top level, each with its exact bytes.
//
// Numbers stay text, so they may have any size; nesting may have any depth; nothing is copied but names and strings.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rowlock {

enum class JsonKind { object, array, string, number, boolean, null };

struct JsonMember {
    std::string name;      ///< Unescaped; empty for an element of an array.
    std::string_view raw;  ///< The value, byte for byte, without the white space around it. Points into the text.
    JsonKind kind = JsonKind::null;
    std::string text;        ///< A string's value, unescaped; empty for every other kind.
    std::size_t offset = 0;  ///< Where `raw` begins.
};

struct JsonError {
    std::size_t offset = 0;  ///< Of the byte that does not fit; the size of the text where it ends too early.
    std::string reason;      ///< In plain words, such as "expected ',' or '}'".
};

using JsonMembers = std::variant<std::vector<JsonMember>, JsonError>;

/// The members of a top-level object, in their order. The whole text is checked: grammar and UTF-8 (a byte order mark
/// is none of JSON). A name that the top level has twice is an error, deeper down it is not. A lone surrogate
/// (`"\ud800"`) is in the grammar, so `raw` may hold one; a name or a string of the top level may not, having no text.
/// Memory: 8 bytes for each level of nesting that is open.
[[nodiscard]] JsonMembers parse_object(std::string_view text);

/// The elements of a top-level array, in their order; otherwise the same.
[[nodiscard]] JsonMembers parse_array(std::string_view text);

/// Is the text one JSON value, whatever it is?
[[nodiscard]] bool valid_json(std::string_view text);

/// A JSON string literal. What is not UTF-8 in it becomes U+FFFD.
[[nodiscard]] std::string quote_json(std::string_view text);

}  // namespace rowlock
