// Advisory locks by a name: which 32 bits stand for a text.
#pragma once

#include <string>
#include <string_view>

namespace rowlock {

/// SQL for the second part of an advisory key: the first four bytes of the SHA-256 of a text in UTF-8, as a signed
/// number with the highest byte first, so that any language can compute it. Two given texts share it with odds of 1 in
/// 2^32, some two of n texts with odds of about n² / 2^33 (1 % at 9,300 texts): then they wait for each other, and no
/// more. Computed by the server, which also knows the text of a value that was given as '007'.
[[nodiscard]] inline std::string advisory_key_sql(std::string_view text_expression) {
    return "('x' || left(encode(sha256(convert_to(" + std::string(text_expression) +
           ", 'UTF8')), 'hex'), 8))::bit(32)::int";
}

}  // namespace rowlock
