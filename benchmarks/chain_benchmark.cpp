// How fast entries are signed and verified, on one core, without a server.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "audit/chain.hpp"

namespace rowlock {

namespace {

constexpr LedgerId ledger{std::byte{1}};

struct Log {
    std::string data;
    std::vector<SignedEntry> entries;
    std::vector<Mac> macs;
    std::string key_id;
};

/// A true chain whose entries have `size` bytes of data each.
Log make_log(const Keyring& keyring, std::size_t size) {
    constexpr std::size_t length = 10000;
    Log log{std::string(size, 'x'), {}, std::vector<Mac>(length + 1), keyring.active_id()};
    ChainKeys keys(keyring, ledger, TenantId("acme"));
    log.macs[0] = keys.genesis(log.key_id);
    for (std::size_t i = 0; i < length; ++i) {
        SignedEntry entry;
        entry.seq = static_cast<std::int64_t>(i) + 1;
        entry.recorded_at = 1'700'000'000'000'000 + entry.seq;
        entry.actor = "ann@example.org";
        entry.action = "invoice.approve";
        entry.object = "invoice/1";
        entry.data = log.data;
        entry.key_id = log.key_id;
        entry.prev_mac = log.macs[i];
        log.macs[i + 1] = keys.mac(entry);
        entry.mac = log.macs[i + 1];
        log.entries.push_back(entry);
    }
    return log;
}

void hmac_of_256_bytes(benchmark::State& state) {
    Hmac hmac(std::array<std::byte, 32>{});
    const std::vector<std::byte> message(256);
    for (auto unused : state) {
        (void)unused;
        benchmark::DoNotOptimize(hmac.of(message));
    }
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(hmac_of_256_bytes);

void verify_chain(benchmark::State& state) {
    const Keyring keyring = Keyring::generate();
    const Log log = make_log(keyring, static_cast<std::size_t>(state.range(0)));
    for (auto unused : state) {
        (void)unused;
        ChainVerifier verifier(keyring, ledger, TenantId("acme"));
        for (const SignedEntry& entry : log.entries) verifier.feed(entry);
        const StateRow end{static_cast<std::int64_t>(log.entries.size()), log.macs.back(), log.key_id};
        if (verifier.finish(end).verdict != Verdict::intact) state.SkipWithError("a true chain is not found intact");
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(log.entries.size()));
}
BENCHMARK(verify_chain)->Arg(0)->Arg(100)->Arg(1000)->ArgName("data_bytes");

void make_chain_keys(benchmark::State& state) {
    const Keyring keyring = Keyring::generate();
    const TenantId tenant("acme");
    for (auto unused : state) {
        (void)unused;
        ChainKeys keys(keyring, ledger, tenant);
        benchmark::DoNotOptimize(keys.has(keyring.active_id()));
    }
}
BENCHMARK(make_chain_keys);

}  // namespace

}  // namespace rowlock
