#include "rowlock/identifiers.hpp"

#include <chrono>
#include <span>
#include <utility>

#include "base/hex.hpp"
#include "base/utf8.hpp"
#include "crypto/hmac.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

constexpr std::size_t tenant_bytes_max = 256;
constexpr std::size_t uuid_text_size = 36;

bool is_dash_place(std::size_t place) {
    return place == 8 || place == 13 || place == 18 || place == 23;
}

}  // namespace

TenantId::TenantId(std::string text) : text_(std::move(text)) {
    if (text_.empty()) throw InvalidInput("a tenant must be named: the name is empty");
    if (text_.size() > tenant_bytes_max) {
        throw InvalidInput("the tenant's name has " + std::to_string(text_.size()) + " bytes; at most " +
                           std::to_string(tenant_bytes_max) + " fit");
    }
    if (text_.find('\0') != std::string::npos) throw InvalidInput("the tenant's name has a NUL in it");
    if (const auto offset = first_invalid_utf8(text_)) {
        throw InvalidInput("the tenant's name is not UTF-8 at byte " + std::to_string(*offset + 1));
    }
}

EntryId EntryId::generate() {
    using namespace std::chrono;
    const auto now = duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
    const auto milliseconds = static_cast<std::uint64_t>(now) / 1'000'000U;
    // RFC 9562, 6.2, method 3: the 12 bits after the version go on with the time, so that ids of one millisecond keep
    // their order and the index over them grows at its end.
    const std::uint64_t fraction = static_cast<std::uint64_t>(now) % 1'000'000U * 4096U / 1'000'000U;
    std::array<std::byte, 16> bytes{};
    fill_random(std::span(bytes).subspan(8));
    for (unsigned i = 0; i < 6; ++i) bytes[i] = static_cast<std::byte>(milliseconds >> (40U - 8U * i));
    bytes[6] = static_cast<std::byte>(0x70U | (fraction >> 8U));
    bytes[7] = static_cast<std::byte>(fraction & 0xFFU);
    bytes[8] = (bytes[8] & std::byte{0x3F}) | std::byte{0x80};
    return EntryId(bytes);
}

EntryId EntryId::parse(std::string_view text) {
    const auto refuse = [&]() -> InvalidInput {
        return InvalidInput("\"" + std::string(text.substr(0, 64)) +
                            "\" is no UUID of the form 01890a5d-ac96-774b-bcce-b302099a8057");
    };
    if (text.size() != uuid_text_size) throw refuse();
    std::string digits;
    digits.reserve(32);
    for (std::size_t place = 0; place < text.size(); ++place) {
        if (is_dash_place(place) != (text[place] == '-')) throw refuse();
        if (text[place] != '-') digits += text[place];
    }
    const auto decoded = from_hex(digits);
    std::array<std::byte, 16> bytes{};
    if (!decoded || decoded->size() != bytes.size()) throw refuse();
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = (*decoded)[i];
    return EntryId(bytes);
}

std::string EntryId::text() const {
    std::string text = to_hex(bytes_);
    for (const std::size_t place : {8U, 13U, 18U, 23U}) text.insert(place, 1, '-');
    return text;
}

}  // namespace rowlock
