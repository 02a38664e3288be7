#include "cli/columns.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "base/utf8.hpp"

namespace rowlock::cli {

namespace {

struct Range {
    std::uint32_t first;
    std::uint32_t last;
};

/// Source: https://www.unicode.org/Public/15.0.0/ucd/EastAsianWidth.txt, W and F, neighbours put together.
constexpr Range wide[] = {{0x1100, 0x115F},   {0x231A, 0x231B},   {0x2329, 0x232A},   {0x23E9, 0x23EC},
                          {0x2614, 0x2615},   {0x2648, 0x2653},   {0x26AA, 0x26AB},   {0x26BD, 0x26BE},
                          {0x26C4, 0x26C5},   {0x2705, 0x2705},   {0x270A, 0x270B},   {0x2728, 0x2728},
                          {0x274C, 0x274C},   {0x2753, 0x2755},   {0x2795, 0x2797},   {0x2E80, 0x303E},
                          {0x3041, 0x33FF},   {0x3400, 0x4DBF},   {0x4E00, 0xA4CF},   {0xA960, 0xA97F},
                          {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
                          {0xFFE0, 0xFFE6},   {0x17000, 0x18CFF}, {0x1B000, 0x1B2FF}, {0x1F300, 0x1F64F},
                          {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x1FA70, 0x1FAFF}, {0x20000, 0x3FFFD}};

/// Combining marks of the common scripts, joiners, variation selectors, marks of direction.
constexpr Range without_width[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x0610, 0x061A}, {0x064B, 0x065F}, {0x0E34, 0x0E3A},
    {0x0E47, 0x0E4E}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x200B, 0x200F}, {0x202A, 0x202E}, {0x2060, 0x2064},
    {0x2066, 0x2069}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0xE0100, 0xE01EF}};

template <std::size_t count>
bool is_in(const Range (&ranges)[count], std::uint32_t code_point) {
    const auto* const after = std::ranges::upper_bound(ranges, code_point, {}, &Range::first);
    return after != std::begin(ranges) && code_point <= std::prev(after)->last;
}

bool continues(char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

/// Takes the next character off the text: its bytes, which may be one that is not UTF-8.
std::string_view take_character(std::string_view& text) {
    std::size_t length = 1;
    while (length < 4 && length < text.size() && continues(text[length])) ++length;
    const std::string_view character = text.substr(0, length);
    text.remove_prefix(length);
    return character;
}

std::uint32_t code_point_of(std::string_view character) {
    const auto byte = [&](std::size_t at) {
        return static_cast<std::uint32_t>(static_cast<unsigned char>(character[at]));
    };
    if (character.size() == 1) return byte(0);
    std::uint32_t code_point = byte(0) & (0x7FU >> character.size());
    for (std::size_t at = 1; at < character.size(); ++at) code_point = code_point << 6U | (byte(at) & 0x3FU);
    return code_point;
}

/// C0 and C1 controls and DEL, the breaks of lines and paragraphs, and what turns the direction of writing round.
bool is_control(std::uint32_t code_point) {
    return code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0) || code_point == 0x2028 ||
           code_point == 0x2029 || (code_point >= 0x202A && code_point <= 0x202E) ||
           (code_point >= 0x2066 && code_point <= 0x2069);
}

std::size_t columns_of_character(std::string_view character) {
    const std::uint32_t code_point = code_point_of(character);
    if (is_in(without_width, code_point)) return 0;
    return is_in(wide, code_point) ? 2 : 1;
}

}  // namespace

std::size_t columns_of(std::string_view text) {
    std::size_t columns = 0;
    while (!text.empty()) columns += columns_of_character(take_character(text));
    return columns;
}

std::string one_line(std::string_view text, std::size_t width) {
    std::string line;
    while (!text.empty()) {
        const std::string_view character = take_character(text);
        const bool stray = first_invalid_utf8(character).has_value();
        if (stray) {
            line += "\uFFFD";
        } else if (is_control(code_point_of(character))) {
            line += ' ';
        } else {
            line += character;
        }
    }
    if (columns_of(line) <= width) return line;
    std::string_view rest = line;
    std::string cut;
    std::size_t columns = 0;
    while (!rest.empty() && width > 0) {
        const std::string_view character = take_character(rest);
        columns += columns_of_character(character);
        if (columns + 1 > width) break;
        cut += character;
    }
    return width == 0 ? cut : cut + "…";
}

}  // namespace rowlock::cli
