#include "base/base64.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

namespace rowlock {

namespace {

constexpr std::string_view sextets = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::size_t group_bytes = 3;
constexpr std::size_t group_letters = 4;

/// Letters of one group, most significant first.
void append_group(std::string& text, std::span<const std::byte> bytes) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < group_bytes; ++i) {
        bits = (bits << 8U) | (i < bytes.size() ? std::to_integer<std::uint32_t>(bytes[i]) : 0U);
    }
    for (std::size_t i = 0; i < group_letters; ++i) {
        text += i <= bytes.size() ? sextets[(bits >> (18U - 6U * static_cast<unsigned>(i))) & 63U] : '=';
    }
}

}  // namespace

std::string to_base64(std::span<const std::byte> bytes) {
    std::string text;
    text.reserve((bytes.size() + 2) / group_bytes * group_letters);
    while (!bytes.empty()) {
        const std::size_t size = std::min(bytes.size(), group_bytes);
        append_group(text, bytes.first(size));
        bytes = bytes.subspan(size);
    }
    return text;
}

std::optional<std::vector<std::byte>> from_base64(std::string_view text) {
    if (text.size() % group_letters != 0) return std::nullopt;
    std::vector<std::byte> bytes;
    bytes.reserve(text.size() / group_letters * group_bytes);
    const std::size_t padding = text.size() - std::min(text.size(), text.find_last_not_of('=') + 1);
    if (padding > 2) return std::nullopt;
    for (std::size_t at = 0; at < text.size(); at += group_letters) {
        std::uint32_t bits = 0;
        for (std::size_t i = at; i < at + group_letters; ++i) {
            const std::size_t value = i < text.size() - padding ? sextets.find(text[i]) : 0;
            if (value == std::string_view::npos) return std::nullopt;
            bits = (bits << 6U) | static_cast<std::uint32_t>(value);
        }
        for (const unsigned shift : {16U, 8U, 0U}) bytes.push_back(static_cast<std::byte>(bits >> shift));
    }
    for (std::size_t i = 0; i < padding; ++i) {
        // Bits that belong to no byte: two texts would mean the same.
        if (bytes.back() != std::byte{0}) return std::nullopt;
        bytes.pop_back();
    }
    return bytes;
}

}  // namespace rowlock
