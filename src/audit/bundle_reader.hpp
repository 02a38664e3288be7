// Cuts a stream of bytes into the records of a bundle. Pure: the bytes come from a function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "audit/bundle_format.hpp"
#include "rowlock/bundle.hpp"

namespace rowlock {

class BundleReader {
  public:
    using Source = std::function<std::size_t(std::span<std::byte>)>;

    explicit BundleReader(Source source) : source_(std::move(source)) {}

    struct Record {
        BundleRecord type;
        std::span<const std::byte> payload;  ///< Valid until the next call.
        std::int64_t offset;
    };
    struct End {};
    /// Damage ends the reading: where the next record begins is then unknown. To be called first: `begin`.
    using Next = std::variant<Record, End, BundleDamage>;

    /// Reads the bytes that every bundle begins with.
    [[nodiscard]] std::variant<std::monostate, BundleDamage> begin();
    [[nodiscard]] Next next();

  private:
    /// Are there so many bytes? The buffer grows only as far as bytes really come, whatever a record says of its
    /// length.
    bool have(std::size_t size);
    void drop(std::size_t size);
    [[nodiscard]] BundleDamage damage(std::string detail) const { return {offset_, std::move(detail)}; }

    Source source_;
    std::vector<std::byte> buffer_;
    std::size_t first_ = 0;
    std::size_t last_ = 0;
    bool source_ended_ = false;
    std::int64_t offset_ = 0;  ///< Of the byte at first_, in the stream.
    std::size_t given_ = 0;    ///< Bytes of the record that was given last.
};

}  // namespace rowlock
