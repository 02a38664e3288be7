#include "audit/bundle_reader.hpp"

#include <algorithm>
#include <cstring>

namespace rowlock {

namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 20U;
constexpr std::string_view cut_off = "the file is cut off here";

bool is_record_type(std::byte type) {
    return std::string_view("HENZ").find(static_cast<char>(type)) != std::string_view::npos;
}

}  // namespace

bool BundleReader::have(std::size_t size) {
    while (last_ - first_ < size && !source_ended_) {
        if (first_ > 0) {
            std::memmove(buffer_.data(), buffer_.data() + first_, last_ - first_);
            last_ -= first_;
            first_ = 0;
        }
        if (last_ == buffer_.size()) buffer_.resize(std::max(piece_bytes, buffer_.size() * 2));
        const std::size_t got = source_(std::span(buffer_).subspan(last_));
        source_ended_ = got == 0;
        last_ += got;
    }
    return last_ - first_ >= size;
}

void BundleReader::drop(std::size_t size) {
    first_ += size;
    offset_ += static_cast<std::int64_t>(size);
}

std::variant<std::monostate, BundleDamage> BundleReader::begin() {
    const bool long_enough = have(bundle_magic.size());
    if (!long_enough || std::memcmp(buffer_.data(), bundle_magic.data(), bundle_magic.size()) != 0) {
        return damage("this is no bundle: it does not begin with rowlock/bundle/1");
    }
    drop(bundle_magic.size());
    return {};
}

BundleReader::Next BundleReader::next() {
    drop(given_);
    given_ = 0;
    if (!have(bundle_record_head)) {
        if (first_ == last_) return End{};
        return damage(std::string(cut_off));
    }
    const std::byte type = buffer_[first_];
    if (!is_record_type(type)) return damage("no record of a bundle begins like this");
    std::size_t size = 0;
    for (std::size_t i = 1; i < bundle_record_head; ++i) {
        size = (size << 8U) | std::to_integer<std::size_t>(buffer_[first_ + i]);
    }
    if (size > bundle_record_max) return damage("a record says that it has more than 2 GiB");
    if (!have(bundle_record_head + size)) return damage(std::string(cut_off));
    given_ = bundle_record_head + size;
    return Record{static_cast<BundleRecord>(type), std::span(buffer_).subspan(first_ + bundle_record_head, size),
                  offset_};
}

}  // namespace rowlock
