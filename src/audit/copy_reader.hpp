// The rows of `COPY … TO STDOUT (FORMAT binary)` as entries, in place.
// Source: https://www.postgresql.org/docs/15/sql-copy.html, "Binary Format"
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "audit/frame.hpp"

namespace rowlock {

/// The columns that CopyReader expects, in this order.
#define ROWLOCK_COPY_COLUMNS "seq, entry_id, recorded_at, actor, action, object, data, format, key_id, prev_mac, mac"

/// The server sends a row in one piece, the header before the first one. Throws InvalidInput for anything else.
class CopyReader {
  public:
    explicit CopyReader(std::function<void(const SignedEntry&)> sink) : sink_(std::move(sink)) {}
    void take(std::span<const std::byte> piece);

  private:
    std::function<void(const SignedEntry&)> sink_;
    bool header_read_ = false;
};

}  // namespace rowlock
