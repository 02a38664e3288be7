#include "base/utf8.hpp"

namespace rowlock {

namespace {

struct Lead {
    std::size_t length;  ///< Of the whole sequence; 0 where no sequence may begin so.
    unsigned char low;   ///< The range of the second byte keeps out overlong forms, surrogates and what is too large.
    unsigned char high;
};

Lead lead_of(unsigned char byte) {
    if (byte < 0x80) return {1, 0, 0};
    if (byte < 0xC2) return {0, 0, 0};
    if (byte < 0xE0) return {2, 0x80, 0xBF};
    if (byte == 0xE0) return {3, 0xA0, 0xBF};
    if (byte == 0xED) return {3, 0x80, 0x9F};
    if (byte < 0xF0) return {3, 0x80, 0xBF};
    if (byte == 0xF0) return {4, 0x90, 0xBF};
    if (byte < 0xF4) return {4, 0x80, 0xBF};
    if (byte == 0xF4) return {4, 0x80, 0x8F};
    return {0, 0, 0};
}

/// The length of the sequence at `position`, or 0 if it is none.
std::size_t sequence_length(std::string_view text, std::size_t position) {
    const Lead lead = lead_of(static_cast<unsigned char>(text[position]));
    if (lead.length <= 1) return lead.length;
    if (text.size() - position < lead.length) return 0;
    const auto second = static_cast<unsigned char>(text[position + 1]);
    if (second < lead.low || second > lead.high) return 0;
    for (std::size_t i = 2; i < lead.length; ++i) {
        const auto next = static_cast<unsigned char>(text[position + i]);
        if (next < 0x80 || next > 0xBF) return 0;
    }
    return lead.length;
}

}  // namespace

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
    std::size_t position = 0;
    while (position < text.size()) {
        const std::size_t length = sequence_length(text, position);
        if (length == 0) return position;
        position += length;
    }
    return std::nullopt;
}

void append_utf8(std::string& text, std::uint32_t code_point) {
    const auto put = [&](std::uint32_t byte) { text += static_cast<char>(static_cast<unsigned char>(byte)); };
    if (code_point < 0x80) {
        put(code_point);
    } else if (code_point < 0x800) {
        put(0xC0U | (code_point >> 6U));
        put(0x80U | (code_point & 0x3FU));
    } else if (code_point < 0x10000) {
        put(0xE0U | (code_point >> 12U));
        put(0x80U | ((code_point >> 6U) & 0x3FU));
        put(0x80U | (code_point & 0x3FU));
    } else {
        put(0xF0U | (code_point >> 18U));
        put(0x80U | ((code_point >> 12U) & 0x3FU));
        put(0x80U | ((code_point >> 6U) & 0x3FU));
        put(0x80U | (code_point & 0x3FU));
    }
}

}  // namespace rowlock
