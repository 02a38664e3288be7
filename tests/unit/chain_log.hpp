// A chain to be tampered with, for tests.
#pragma once

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "audit/chain.hpp"
#include "audit/owned_entry.hpp"

namespace rowlock::test {

/// A row of rowlock.audit_log.
using Row = OwnedEntry;

struct State {
    std::int64_t last_seq = 0;
    std::vector<std::byte> head_mac;
    std::string key_id;
};

/// One tenant's rows and state row, and the means to append to them truly.
struct Log {
    Log(Keyring keyring_to_sign, std::string tenant_name)
        : keyring(std::move(keyring_to_sign)), tenant(std::move(tenant_name)) {
        state.key_id = keyring.ids().front();
    }

    void append(Row row);
    /// Rotates to the key of this place in the keyring.
    void rotate(std::size_t key);
    [[nodiscard]] Row& at(std::int64_t seq);
    void erase(std::int64_t seq);

    /// Rows in order of seq, those of one seq in the order of `rows`.
    [[nodiscard]] Verification verify(const Keyring& with, ChainVerifierOptions options = {}) const;
    [[nodiscard]] Verification verify() const { return verify(keyring); }

    Keyring keyring;
    TenantId tenant;
    std::vector<Row> rows;
    std::optional<State> state_row() const { return has_state ? std::optional(state) : std::nullopt; }
    State state;
    bool has_state = true;
    std::uint64_t ids_taken = 0;
};

/// Twenty entries with NULLs and empty strings, the key rotated at seq 10.
[[nodiscard]] Log make_log(const Keyring& keyring, const std::string& tenant = "acme");

/// A log of any length from 0 to 40, with any content and up to three rotations.
[[nodiscard]] Log make_random_log(std::mt19937& random);

/// The keyring without one of its keys.
[[nodiscard]] Keyring without(const Keyring& keyring, std::string_view key_id);

/// The findings as "kind first", "kind first-last", with ">seq" where the entry belongs; joined by ", ".
[[nodiscard]] std::string findings_of(const Verification& verification);

}  // namespace rowlock::test
