// What the writer that tests kill appends: the same on every run, so that a retry is one.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "rowlock/audit_log.hpp"

namespace rowlock::test {

inline EntryId id_of_writer(int writer, int index) {
    std::array<std::byte, 16> bytes{};
    bytes[0] = std::byte{0xfe};
    bytes[7] = static_cast<std::byte>(writer);
    for (std::size_t i = 0; i < 4; ++i) bytes.at(15 - i) = static_cast<std::byte>((index >> (8 * i)) & 0xff);
    return EntryId(bytes);
}

inline TenantEntry entry_of_writer(int writer, int index, int tenants) {
    return {TenantId("tenant-" + std::to_string((writer + index) % tenants)),
            {.id = id_of_writer(writer, index),
             .actor = "writer " + std::to_string(writer),
             .action = "append",
             .object = std::to_string(index),
             .data = "{\"index\":  " + std::to_string(index) + "}"}};
}

}  // namespace rowlock::test
