#include "unit/chain_log.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "audit/keyring_keys.hpp"
#include "base/big_endian.hpp"

namespace rowlock::test {

namespace {

constexpr LedgerId ledger{std::byte{7}};

}  // namespace

void Log::append(Row row) {
    ChainKeys keys(keyring, ledger, tenant);
    row.seq = state.last_seq + 1;
    put_u64(put_u64(row.entry_id.data(), 0x018c2f5e00007000),
            (std::hash<std::string>{}(tenant.text()) << 16U) + ++ids_taken);
    row.recorded_at = 1'700'000'000'000'000 + row.seq * 1000;
    row.key_id = state.key_id;
    if (row.seq == 1) {
        const Mac genesis = keys.genesis(row.key_id);
        row.prev_mac.assign(genesis.begin(), genesis.end());
    } else {
        row.prev_mac = state.head_mac;
    }
    const Mac mac = keys.mac(row.view());
    row.mac.assign(mac.begin(), mac.end());
    state.last_seq = row.seq;
    state.head_mac = row.mac;
    if (row.action == rotation_action) state.key_id = *row.object;
    rows.push_back(std::move(row));
}

void Log::rotate(std::size_t key) {
    Row row;
    row.action = rotation_action;
    row.object = keyring.ids().at(key);
    append(std::move(row));
}

Row& Log::at(std::int64_t seq) {
    return *std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.seq == seq; });
}

void Log::erase(std::int64_t seq) {
    std::erase_if(rows, [&](const Row& row) { return row.seq == seq; });
}

Verification Log::verify(const Keyring& with, ChainVerifierOptions options) const {
    ChainVerifier verifier(with, ledger, tenant, std::move(options));
    std::vector<const Row*> sorted;
    for (const Row& row : rows) sorted.push_back(&row);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Row* left, const Row* right) { return left->seq < right->seq; });
    for (const Row* row : sorted) {
        // A copy that is gone after the call: the verifier must keep nothing of it.
        const auto copy = std::make_unique<Row>(*row);
        verifier.feed(copy->view());
    }
    if (!has_state) return verifier.finish(std::nullopt);
    return verifier.finish(StateRow{state.last_seq, state.head_mac, state.key_id});
}

Log make_log(const Keyring& keyring, const std::string& tenant) {
    Log log(keyring, tenant);
    for (int i = 1; i <= 20; ++i) {
        if (i == 10) {
            log.rotate(1);
            continue;
        }
        Row row;
        if (i % 3 != 0) row.actor = i % 2 == 0 ? "" : "ann";
        if (i % 4 != 0) row.action = i % 5 == 0 ? "" : "approve";
        if (i % 5 != 0) row.object = i % 3 == 0 ? "" : fmt::format("invoice/{}", i);
        if (i % 6 != 0) row.data = i % 7 == 0 ? "" : fmt::format(R"({{"n": {}}})", i);
        log.append(std::move(row));
    }
    return log;
}

Log make_random_log(std::mt19937& random) {
    Log log(Keyring::generate().rotated().rotated().rotated(), fmt::format("tenant-{}", random() % 100));
    const auto text = [&]() -> std::optional<std::string> {
        if (random() % 4 == 0) return std::nullopt;
        std::string bytes(random() % 4 == 0 ? 0 : random() % 60, ' ');
        for (char& byte : bytes) byte = static_cast<char>(random());
        return bytes;
    };
    std::size_t key = 0;
    for (std::size_t left = random() % 41; left > 0; --left) {
        if (key < 3 && random() % 12 == 0) {
            log.rotate(++key);
        } else {
            Row row;
            row.actor = text();
            row.action = text();
            row.object = text();
            row.data = text();
            log.append(std::move(row));
        }
    }
    return log;
}

Keyring without(const Keyring& keyring, std::string_view key_id) {
    auto keys = std::make_shared<Keyring::Keys>();
    for (const auto& key : keyring.keys().all) {
        if (key.id != key_id) keys->all.push_back(key);
    }
    return Keyring(std::move(keys));
}

std::string findings_of(const Verification& verification) {
    std::string all;
    for (const Finding& finding : verification.findings) {
        if (!all.empty()) all += ", ";
        all += fmt::format("{} {}", name_of(finding.kind), finding.seq);
        if (finding.last_seq != finding.seq) all += fmt::format("-{}", finding.last_seq);
        if (finding.belongs_at) all += fmt::format(">{}", *finding.belongs_at);
    }
    return all;
}

}  // namespace rowlock::test
