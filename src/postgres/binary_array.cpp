#include "postgres/binary_array.hpp"

#include <array>

#include "base/big_endian.hpp"
#include "base/bytes.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

void append(std::string& to, std::span<const std::byte> bytes) {
    to.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void append_u32(std::string& to, std::uint32_t value) {
    std::array<std::byte, sizeof value> bytes{};
    put_u32(bytes.data(), value);
    append(to, bytes);
}

}  // namespace

void BinaryArray::add(std::int64_t value) {
    std::array<std::byte, sizeof value> bytes{};
    put_i64(bytes.data(), value);
    add(bytes);
}

void BinaryArray::add(std::span<const std::byte> value) {
    ++count_;
    append_u32(elements_, static_cast<std::uint32_t>(value.size()));
    append(elements_, value);
}

void BinaryArray::add(std::optional<std::string_view> value) {
    if (value) {
        if (value->find('\0') != std::string_view::npos) {
            throw InvalidInput("an element of an array has a NUL in it, which PostgreSQL can't hold as text");
        }
        return add(bytes_of(*value));
    }
    constexpr std::uint32_t null_length = 0xFFFFFFFF;
    ++count_;
    has_null_ = true;
    append_u32(elements_, null_length);
}

Parameter BinaryArray::parameter() const {
    constexpr std::uint32_t dimensions = 1;
    constexpr std::uint32_t first_index = 1;
    std::string array;
    for (const std::uint32_t word : {dimensions, static_cast<std::uint32_t>(has_null_),
                                     static_cast<std::uint32_t>(element_), count_, first_index}) {
        append_u32(array, word);
    }
    return Parameter::binary(array + elements_);
}

}  // namespace rowlock
