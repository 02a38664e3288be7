// A bundle as text, cut into its records and put together again, for tests that tamper with it.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "audit/bundle_format.hpp"
#include "base/bytes.hpp"
#include "rowlock/bundle.hpp"

namespace rowlock::test {

inline std::string as_string(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A record with its head.
struct Piece {
    char type;
    std::string payload;
};

inline std::vector<Piece> pieces_of(const std::string& bundle) {
    std::vector<Piece> pieces;
    for (std::size_t at = bundle_magic.size(); at < bundle.size();) {
        std::size_t size = 0;
        for (std::size_t i = 1; i < 5; ++i) size = size * 256 + static_cast<unsigned char>(bundle[at + i]);
        pieces.push_back({bundle[at], bundle.substr(at + 5, size)});
        at += 5 + size;
    }
    return pieces;
}

inline std::string joined(const std::vector<Piece>& pieces) {
    std::string bundle(bundle_magic);
    for (const Piece& piece : pieces) {
        bundle += as_string(bundle_record_start(static_cast<BundleRecord>(piece.type), piece.payload.size()));
        bundle += piece.payload;
    }
    return bundle;
}

inline BundleVerification verify_text(const std::string& bundle, const BundleVerifyOptions& options,
                                      std::size_t step = 1000) {
    std::size_t at = 0;
    return verify_bundle(
        [&](std::span<std::byte> into) {
            const std::size_t size = std::min({into.size(), bundle.size() - at, step});
            std::ranges::copy(bytes_of(std::string_view(bundle).substr(at, size)), into.begin());
            at += size;
            return size;
        },
        options);
}

/// The verdict, then each finding as "tenant kind first-last", then what spoils the file as a whole.
inline std::string told(const BundleVerification& verification) {
    constexpr std::array<std::string_view, 6> verdicts{"intact", "tampered",    "unverifiable",
                                                       "empty",  "rolled_back", "acknowledged"};
    std::string text(verdicts.at(static_cast<std::size_t>(verification.verdict)));
    for (const Finding& finding : verification.findings) {
        text += fmt::format(", {} {} {}", finding.tenant.text(), name_of(finding.kind), finding.seq);
        if (finding.last_seq != finding.seq) text += fmt::format("-{}", finding.last_seq);
    }
    if (verification.refused) text += ", signature";
    if (verification.damage) text += ", damaged: " + verification.damage->detail;
    return text;
}

}  // namespace rowlock::test
