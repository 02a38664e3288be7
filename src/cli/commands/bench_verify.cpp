#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

#include "audit/bundle_writer.hpp"
#include "audit/log_reader.hpp"
#include "cli/bars.hpp"
#include "cli/commands/commands.hpp"
#include "cli/contest.hpp"
#include "cli/output.hpp"
#include "cli/sample_log.hpp"
#include "cli/scratch_database.hpp"
#include "rowlock/audit_log.hpp"
#include "rowlock/error.hpp"

namespace rowlock::cli {

namespace {

constexpr int verify_rounds = 3;

using TemporaryFile = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// A bundle of a chain that was never in a database.
void write_bundle(std::FILE* file, const Keyring& keyring, const SigningKey& key, std::int64_t entries) {
    const TenantId tenant("bench");
    const LedgerId ledger{};
    ChainKeys keys(keyring, ledger, tenant);
    BundleWriter writer(ledger, key, [&](std::span<const std::byte> bytes) {
        if (std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size()) {
            throw SetupError("the benchmark's bundle can't be written: is the disk full?");
        }
    });
    Mac before = keys.genesis(keyring.active_id());
    for (std::int64_t seq = 1; seq <= entries; ++seq) {
        const std::string object = fmt::format("invoice {}", seq);
        const std::string data = fmt::format(R"({{"total":"{}.90","currency":"EUR"}})", seq);
        SignedEntry entry;
        entry.seq = seq;
        entry.recorded_at = seq;
        entry.actor = "ann";
        entry.action = "invoice.paid";
        entry.object = object;
        entry.data = data;
        entry.key_id = keyring.active_id();
        entry.prev_mac = before;
        const Mac mac = keys.mac(entry);
        entry.mac = mac;
        writer.add(tenant, entry);
        before = mac;
    }
    writer.finish(0);
    std::fflush(file);
}

double verify_seconds_of(std::FILE* file, const BundleVerifyOptions& options, std::int64_t entries) {
    if (std::fseek(file, 0, SEEK_SET) != 0) throw SetupError("the file of the bundle can't be read from its start");
    return seconds_of([&] {
        const auto read = [&](std::span<std::byte> into) { return std::fread(into.data(), 1, into.size(), file); };
        const BundleVerification verification = verify_bundle(read, options);
        if (verification.verdict != Verdict::intact || verification.entries != entries) {
            throw SetupError("the bundle of the benchmark is not intact");
        }
    });
}

Exit bench_bundle(const Context& context, std::int64_t entries) {
    const Keyring keyring = Keyring::generate();
    const SigningKey key = SigningKey::generate("bench");
    const TemporaryFile file(std::tmpfile(), &std::fclose);
    if (file == nullptr) throw SetupError("no temporary file can be made for the benchmark");
    write_bundle(file.get(), keyring, key, entries);
    const BundleVerifyOptions signature{.pinned = {key.public_key()}};
    const BundleVerifyOptions macs{.pinned = {key.public_key()}, .keyring = keyring};
    std::vector<double> plain;
    std::vector<double> with_macs;
    reset_peak_memory();
    for (int round = 0; round < verify_rounds; ++round) {
        plain.push_back(verify_seconds_of(file.get(), signature, entries));
        with_macs.push_back(verify_seconds_of(file.get(), macs, entries));
    }
    const std::int64_t rate = per_second(entries, median(plain));
    const std::int64_t rate_with_macs = per_second(entries, median(with_macs));
    if (context.globals.json) {
        JsonObject object;
        object.number("entries", entries).number("bundle_per_second", rate);
        object.number("bundle_with_macs_per_second", rate_with_macs);
        print_line(object.real("peak_memory_mib", peak_memory()).str());
    } else {
        print_line(fmt::format("{} entries, medians of {} rounds, one core", grouped(entries), verify_rounds));
        print_line(fmt::format("bundle                 {}/s, peak memory {:.0f} MiB", grouped(rate), peak_memory()));
        print_line(fmt::format("bundle with its HMACs  {}/s", grouped(rate_with_macs)));
    }
    tell_bar(context, {"verify a bundle, one core: entries/s", static_cast<double>(rate), 1'000'000});
    return Exit::fine;
}

}  // namespace

Exit bench_verify(const Context& context, const BenchVerifyOptions& options) {
    if (options.bundle) return bench_bundle(context, options.entries);
    const ScratchDatabase scratch(context, "rowlock_bench");
    Database app(scratch.as_app(2));
    const AuditLog log(Keyring::generate());
    const TenantId tenant("bench");
    Progress progress(context.style);
    grow_log(app, log, tenant, options.entries, progress);
    const TransactionPolicy policy{.tenant = tenant};
    const auto copy = [&](Transaction& transaction) {
        LogRange range;
        read_range(transaction, tenant, range);
        read_pieces(transaction, tenant, range,
                    {VerifyOptions{}.chunk_entries, [](std::int64_t) {}, [](std::span<const std::byte>) {}});
    };
    std::vector<double> copy_seconds;
    std::vector<double> verify_seconds;
    std::vector<double> ratios;
    double memory = 0;
    app.transact(policy, copy);  // once, so that both find the pages in memory
    for (int round = 0; round < verify_rounds; ++round) {
        progress.show(fmt::format("round {} of {}", round + 1, verify_rounds));
        copy_seconds.push_back(seconds_of([&] { app.transact(policy, copy); }));
        reset_peak_memory();
        verify_seconds.push_back(seconds_of([&] {
            const Verification verification =
                app.transact(policy, [&](Transaction& transaction) { return log.verify(transaction, tenant); });
            if (verification.verdict != Verdict::intact || verification.entries != options.entries) {
                throw SetupError("the log of the benchmark is not intact");
            }
        }));
        memory = std::max(memory, peak_memory());
        ratios.push_back(copy_seconds.back() / verify_seconds.back());
    }
    progress.clear();
    const auto rate = [&](const std::vector<double>& seconds) {
        return static_cast<std::int64_t>(static_cast<double>(options.entries) / median(seconds));
    };
    if (context.globals.json) {
        JsonObject object;
        object.number("entries", options.entries).number("copy_per_second", rate(copy_seconds));
        object.number("verify_per_second", rate(verify_seconds)).real("of_copy", median(ratios));
        print_line(object.real("peak_memory_mib", memory).str());
    } else {
        print_line(fmt::format("{} entries, medians of {} rounds in turn", grouped(options.entries), verify_rounds));
        print_line(fmt::format("COPY thrown away  {}/s", grouped(rate(copy_seconds))));
        print_line(fmt::format("verify            {}/s", grouped(rate(verify_seconds))));
    }
    tell_bar(context, {"verify from the server: × the COPY thrown away", median(ratios), 0.9});
    tell_bar(context, {"verify from the server: MiB of memory", memory, 64, true});
    tell_machine(context, scratch);
    return Exit::fine;
}

}  // namespace rowlock::cli
