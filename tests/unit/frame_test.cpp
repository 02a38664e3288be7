// A test for each sentence of docs/formats/audit-entry.md.
#include "audit/frame.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "audit/keyring_keys.hpp"
#include "base/bytes.hpp"
#include "base/hex.hpp"
#include "json/json.hpp"

namespace rowlock {

namespace {

using Vector = std::map<std::string, std::optional<std::string>>;

/// The lines of tests/unit/vectors/audit-entry.jsonl; null is nothing, numbers are their digits.
std::vector<Vector> vectors() {
    std::ifstream file(std::filesystem::path(ROWLOCK_SOURCES) / "tests" / "unit" / "vectors" / "audit-entry.jsonl");
    std::vector<Vector> all;
    for (std::string line; std::getline(file, line);) {
        const auto parsed = parse_object(line);
        Vector vector;
        for (const JsonMember& member : std::get<std::vector<JsonMember>>(parsed)) {
            if (member.kind == JsonKind::null) {
                vector[member.name] = std::nullopt;
            } else {
                vector[member.name] = member.kind == JsonKind::string ? member.text : std::string(member.raw);
            }
        }
        all.push_back(std::move(vector));
    }
    return all;
}

Keyring keyring_of(const Vector& vector) {
    auto keys = std::make_shared<Keyring::Keys>();
    Keyring::Keys::Key key;
    const auto secret = from_hex(*vector.at("key")).value();
    std::copy(secret.begin(), secret.end(), key.secret.begin());
    key.id = key_id_of(key.secret);
    keys->all.push_back(key);
    return Keyring(std::move(keys));
}

std::optional<std::string_view> view(const std::optional<std::string>& text) {
    return text ? std::optional<std::string_view>(*text) : std::nullopt;
}

std::string mac_of(const Vector& vector) {
    const Keyring keyring = keyring_of(vector);
    ChainKeys keys(keyring, EntryId::parse(*vector.at("ledger")).bytes(), TenantId(*vector.at("tenant")));
    EXPECT_EQ(keyring.active_id(), *vector.at("key_id"));
    if (*vector.at("what") == "genesis") return to_hex(keys.genesis(keyring.active_id()));
    SignedEntry entry;
    entry.seq = std::stoll(*vector.at("seq"));
    entry.entry_id = EntryId::parse(*vector.at("entry_id")).bytes();
    entry.recorded_at = std::stoll(*vector.at("recorded_at"));
    entry.actor = view(vector.at("actor"));
    entry.action = view(vector.at("action"));
    entry.object = view(vector.at("object"));
    entry.data = view(vector.at("data"));
    entry.key_id = keyring.active_id();
    const auto prev_mac = from_hex(*vector.at("prev_mac")).value();
    entry.prev_mac = prev_mac;
    return to_hex(keys.mac(entry));
}

TEST(AuditEntryFormat, GivesTheKnownAnswers) {
    const auto all = vectors();
    EXPECT_GE(all.size(), 15U);
    std::set<std::string> macs;
    for (const Vector& vector : all) {
        EXPECT_EQ(mac_of(vector), *vector.at("mac")) << *vector.at("what");
        EXPECT_TRUE(macs.insert(*vector.at("mac")).second) << *vector.at("what");
    }
}

TEST(AuditEntryFormat, AFieldIsPresenceLengthAndBytes) {
    Frame frame;
    frame.add(std::string_view("ab"));
    frame.add(std::nullopt);
    frame.add(std::string_view(""));
    frame.add(std::int64_t{-2});
    EXPECT_EQ(to_hex(frame.bytes()),
              "01000000026162"
              "0000000000"
              "0100000000"
              "0100000008fffffffffffffffe");
}

TEST(AuditEntryFormat, AnEntryHasTwelveFieldsInTheirOrder) {
    for (const Vector& vector : vectors()) {
        if (*vector.at("what") == "genesis") continue;
        Frame frame;
        const std::map<std::string, std::string> own{{"rowlock.key_rotation", "rowlock/rotation/1"},
                                                     {"rowlock.resume", "rowlock/resume/1"},
                                                     {"rowlock.retirement", "rowlock/retirement/1"},
                                                     {"rowlock.acknowledge", "rowlock/acknowledge/1"}};
        const auto domain = own.find(vector.at("action").value_or(""));
        frame.add(std::string_view(domain == own.end() ? "rowlock/entry/1" : domain->second));
        frame.add(std::string_view("HMAC-SHA-256"));
        frame.add(view(vector.at("key_id")));
        frame.add(view(vector.at("tenant")));
        frame.add(std::stoll(*vector.at("seq")));
        frame.add(std::span<const std::byte>(EntryId::parse(*vector.at("entry_id")).bytes()));
        frame.add(std::stoll(*vector.at("recorded_at")));
        frame.add(view(vector.at("actor")));
        frame.add(view(vector.at("action")));
        frame.add(view(vector.at("object")));
        frame.add(view(vector.at("data")));
        frame.add(std::span<const std::byte>(from_hex(*vector.at("prev_mac")).value()));
        EXPECT_EQ(to_hex(frame.bytes()), *vector.at("frame")) << *vector.at("what");
    }
}

TEST(AuditEntryFormat, AFrameUsedAgainHoldsNothingOfTheOneBefore) {
    Frame frame;
    frame.add(std::string_view("a long text that leaves its bytes behind"));
    frame.clear();
    frame.add(std::nullopt);
    EXPECT_EQ(to_hex(frame.bytes()), "0000000000");
}

TEST(AuditEntryFormat, EachTenantLedgerAndKeyHasAGenesisOfItsOwn) {
    const Keyring keyring = Keyring::generate().rotated();
    const LedgerId ledger{std::byte{1}};
    const LedgerId other{std::byte{2}};
    std::set<Mac> all;
    for (const std::string& id : keyring.ids()) {
        for (const char* tenant : {"a", "b"}) {
            all.insert(ChainKeys(keyring, ledger, TenantId(tenant)).genesis(id));
            all.insert(ChainKeys(keyring, other, TenantId(tenant)).genesis(id));
        }
    }
    EXPECT_EQ(all.size(), 8U);
}

TEST(ChainKeys, HasTheKeysOfTheKeyringOnly) {
    const Keyring keyring = Keyring::generate().rotated();
    ChainKeys keys(keyring, {}, TenantId("a"));
    for (int round = 0; round < 2; ++round) {
        for (const std::string& id : keyring.ids()) EXPECT_TRUE(keys.has(id));
        EXPECT_FALSE(keys.has("k000000000000"));
        EXPECT_FALSE(keys.has(""));
    }
}

}  // namespace

}  // namespace rowlock
