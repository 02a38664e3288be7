#include "audit/frame.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "audit/keyring_keys.hpp"
#include "base/big_endian.hpp"
#include "base/bytes.hpp"
#include "base/contract.hpp"
#include "rowlock/error.hpp"

namespace rowlock {

namespace {

constexpr std::string_view genesis_domain = "rowlock/genesis/1";
constexpr std::string_view sub_key_domain = "rowlock/sub-key/1";
constexpr std::string_view chain_purpose = "chain";

constexpr std::byte present{1};
constexpr std::byte absent{0};
constexpr std::size_t field_head = 5;

/// What all of the log's own actions begin with: others need no further look.
constexpr std::string_view own_actions = "rowlock.";

}  // namespace

std::size_t entry_domain_of(const std::optional<std::string_view>& action) {
    if (!action || !action->starts_with(own_actions)) return 0;
    for (std::size_t i = 1; i < entry_domains.size(); ++i) {
        if (*action == entry_domains.at(i).action) return i;
    }
    return 0;
}

std::byte* Frame::grow(std::size_t size) {
    if (buffer_.size() - used_ < size) buffer_.resize(std::max(used_ + size, buffer_.size() * 2));
    std::byte* const place = buffer_.data() + used_;
    used_ += size;
    return place;
}

void Frame::add(std::span<const std::byte> bytes) {
    if (bytes.size() > std::numeric_limits<std::uint32_t>::max()) {
        throw InvalidInput("an audit entry's field of " + std::to_string(bytes.size()) + " bytes can't be signed");
    }
    std::byte* place = grow(field_head + bytes.size());
    *place++ = present;
    place = put_u32(place, static_cast<std::uint32_t>(bytes.size()));
    if (!bytes.empty()) std::memcpy(place, bytes.data(), bytes.size());
}

void Frame::add(const std::optional<std::string_view>& text) {
    if (text) {
        add(bytes_of(*text));
        return;
    }
    std::byte* const place = grow(field_head);
    *place = absent;
    put_u32(place + 1, 0);
}

void Frame::add(std::int64_t number) {
    std::byte* place = grow(field_head + sizeof number);
    *place++ = present;
    place = put_u32(place, sizeof number);
    put_i64(place, number);
}

void Frame::append(std::span<const std::byte> fields) {
    if (fields.empty()) return;
    std::memcpy(grow(fields.size()), fields.data(), fields.size());
}

void Frame::add_content(const SignedEntry& entry) {
    add(entry.seq);
    add(std::span<const std::byte>(entry.entry_id));
    add(entry.recorded_at);
    add(entry.actor);
    add(entry.action);
    add(entry.object);
    add(entry.data);
    add(entry.prev_mac);
}

ChainKeys::ChainKeys(Keyring keyring, const LedgerId& ledger, TenantId tenant)
    : keyring_(std::move(keyring)), ledger_(ledger), tenant_(std::move(tenant)) {}

bool ChainKeys::has(std::string_view key_id) {
    return find(key_id) != nullptr;
}

Mac ChainKeys::genesis(std::string_view key_id) {
    Key& key = required(key_id);
    frame_.clear();
    frame_.append(start_of(genesis_domain, key_id));
    frame_.add(std::span<const std::byte>(ledger_));
    return key.hmac.of(frame_.bytes());
}

Mac ChainKeys::mac(const SignedEntry& entry) {
    Key& key = required(entry.key_id);
    frame_.clear();
    frame_.append(key.starts.at(entry_domain_of(entry.action)));
    frame_.add_content(entry);
    return key.hmac.of(frame_.bytes());
}

ChainKeys::Key* ChainKeys::find(std::string_view key_id) {
    if (last_used_ < keys_.size() && keys_[last_used_].id == key_id) return &keys_[last_used_];
    const auto found = std::find_if(keys_.begin(), keys_.end(), [&](const Key& key) { return key.id == key_id; });
    last_used_ = static_cast<std::size_t>(found - keys_.begin());
    if (found != keys_.end()) return &*found;
    const Keyring::Keys::Key* const source = keyring_.keys().find(key_id);
    if (source == nullptr) return nullptr;
    keys_.push_back(derive(key_id, source->secret));
    return &keys_.back();
}

ChainKeys::Key& ChainKeys::required(std::string_view key_id) {
    Key* const key = find(key_id);
    contract(key != nullptr, "the key of an entry that is signed or checked is at hand");
    return *key;
}

ChainKeys::Key ChainKeys::derive(std::string_view key_id, std::span<const std::byte> secret) {
    Frame info;
    info.add(sub_key_domain);
    info.add(chain_purpose);
    info.add(tenant_.text());
    std::array<std::byte, 32> sub_key{};
    hkdf_sha256(secret, ledger_, info.bytes(), sub_key);
    Key key{std::string(key_id), Hmac(sub_key), {}};
    for (std::size_t i = 0; i < entry_domains.size(); ++i) {
        key.starts.at(i) = start_of(entry_domains.at(i).domain, key_id);
    }
    wipe(std::span(sub_key));
    return key;
}

std::vector<std::byte> ChainKeys::start_of(std::string_view domain, std::string_view key_id) {
    Frame start;
    start.add(domain);
    start.add(mac_algorithm);
    start.add(key_id);
    start.add(tenant_.text());
    return {start.bytes().begin(), start.bytes().end()};
}

}  // namespace rowlock
