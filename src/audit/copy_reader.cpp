#include "audit/copy_reader.hpp"

#include <array>
#include <cstdint>
#include <string_view>

#include "rowlock/error.hpp"

namespace rowlock {

namespace {

constexpr std::size_t column_count = 11;
constexpr std::string_view signature("PGCOPY\n\377\r\n\0", 11);
/// PostgreSQL counts from 2000-01-01, we from 1970-01-01.
constexpr std::int64_t epoch_difference = 946684800LL * 1000000;

/// Reads big-endian numbers and fields off the front of a piece.
class Cursor {
  public:
    explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

    [[nodiscard]] bool at_end() const { return bytes_.empty(); }

    std::span<const std::byte> take(std::size_t count) {
        if (count > bytes_.size()) throw InvalidInput("the server's COPY ended in the middle of a row");
        const auto taken = bytes_.first(count);
        bytes_ = bytes_.subspan(count);
        return taken;
    }

    template <class Number>
    Number number() {
        return to_number<Number>(take(sizeof(Number)));
    }

    /// A field's bytes; a span without data for NULL.
    std::span<const std::byte> field() {
        const auto length = number<std::int32_t>();
        return length < 0 ? std::span<const std::byte>() : take(static_cast<std::size_t>(length));
    }

    template <class Number>
    static Number to_number(std::span<const std::byte> bytes) {
        if (bytes.size() != sizeof(Number))
            throw InvalidInput("a column of rowlock.audit_log has another type than ours");
        std::uint64_t value = 0;
        for (const std::byte byte : bytes) value = (value << 8U) | std::to_integer<std::uint64_t>(byte);
        return static_cast<Number>(value);
    }

  private:
    std::span<const std::byte> bytes_;
};

std::string_view text_of(std::span<const std::byte> bytes) {
    // Bytes and characters may be looked at as each other.
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::optional<std::string_view> optional_text(std::span<const std::byte> bytes) {
    if (bytes.data() == nullptr) return std::nullopt;
    return text_of(bytes);
}

template <class Number>
Number number_or_zero(std::span<const std::byte> bytes) {
    return bytes.data() == nullptr ? Number{} : Cursor::to_number<Number>(bytes);
}

SignedEntry entry_from(Cursor& cursor) {
    std::array<std::span<const std::byte>, column_count> fields;
    for (auto& field : fields) field = cursor.field();
    SignedEntry entry;
    entry.seq = number_or_zero<std::int64_t>(fields[0]);
    for (std::size_t i = 0; i < entry.entry_id.size() && i < fields[1].size(); ++i) entry.entry_id[i] = fields[1][i];
    entry.recorded_at = number_or_zero<std::int64_t>(fields[2]) + epoch_difference;
    entry.actor = optional_text(fields[3]);
    entry.action = optional_text(fields[4]);
    entry.object = optional_text(fields[5]);
    entry.data = optional_text(fields[6]);
    entry.format = number_or_zero<std::int16_t>(fields[7]);
    entry.key_id = text_of(fields[8]);
    entry.prev_mac = fields[9];
    entry.mac = fields[10];
    return entry;
}

}  // namespace

void CopyReader::take(std::span<const std::byte> piece) {
    Cursor cursor(piece);
    if (!header_read_) {
        if (text_of(cursor.take(signature.size())) != signature) throw InvalidInput("the server's COPY is not binary");
        cursor.take(sizeof(std::int32_t));
        cursor.take(static_cast<std::size_t>(cursor.number<std::uint32_t>()));
        header_read_ = true;
    }
    while (!cursor.at_end()) {
        const auto columns = cursor.number<std::int16_t>();
        if (columns == -1) return;
        if (columns != column_count)
            throw InvalidInput("the server's COPY has another number of columns than was asked for");
        sink_(entry_from(cursor));
    }
}

}  // namespace rowlock
