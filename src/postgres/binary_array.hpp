// Arrays in PostgreSQL's binary format: the server takes them in at a third of what parsing their text costs it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rowlock/rows.hpp"

namespace rowlock {

/// A one-dimensional array, built element by element, all of the same type.
/// Source: PostgreSQL's src/backend/utils/adt/arrayfuncs.c, array_recv
class BinaryArray {
  public:
    /// The numbers that the types have in pg_type, in every database.
    enum class Element : std::uint32_t { bytea = 17, bigint = 20, text = 25, json = 114, uuid = 2950 };

    explicit BinaryArray(Element element) : element_(element) {}

    /// A bigint.
    void add(std::int64_t value);
    /// A bytea or a uuid.
    void add(std::span<const std::byte> value);
    /// A text or a json, or NULL. Throws InvalidInput for text with a NUL in it.
    void add(std::optional<std::string_view> value);

    [[nodiscard]] Parameter parameter() const;

  private:
    Element element_;
    std::string elements_;
    std::uint32_t count_ = 0;
    bool has_null_ = false;
};

}  // namespace rowlock
