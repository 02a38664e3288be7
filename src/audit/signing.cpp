#include "audit/signing.hpp"

#include <fmt/format.h>

#include <map>

#include "rowlock/error.hpp"

namespace rowlock {

namespace {

bool same_content(const AuditEntry& one, const AuditEntry& other) {
    return one.actor == other.actor && one.action == other.action && one.object == other.object &&
           one.data == other.data;
}

class Signer {
  public:
    Signer(ChainKeys& keys, const SigningSituation& situation) : keys_(keys), situation_(situation) {
        for (const ExistingEntry& entry : situation.existing) {
            taken_.emplace(entry.content.id, std::pair(entry.seq, &entry.content));
        }
        next_seq_ = situation.head.last_seq + 1;
        key_id_ = situation.head.key_id.value_or(keys.keyring().active_id());
    }

    void add(const EntryToSign& to_sign) {
        const AuditEntry& entry = *to_sign.entry;
        const auto known = taken_.find(entry.id);
        if (known != taken_.end()) {
            const auto& [seq, content] = known->second;
            batch_.outcomes.push_back(same_content(*content, entry) ? AppendOutcome(AlreadyAppended{seq})
                                                                    : AppendOutcome(EntryIdTaken{seq}));
            return;
        }
        if (batch_.rows.empty()) begin_chain();
        if (key_id_ != keys_.keyring().active_id()) rotate();
        taken_.emplace(entry.id, std::pair(next_seq_, &entry));
        batch_.outcomes.emplace_back(Appended{next_seq_});
        sign(entry, to_sign.recorded_at.value_or(situation_.clock));
    }

    SignedBatch take() { return std::move(batch_); }

  private:
    void begin_chain() {
        if (!keys_.has(key_id_)) {
            throw SetupError(
                fmt::format("the chain of tenant {} is signed with key {}, which is not in the keyring: use "
                            "the keyring that has it",
                            keys_.tenant().text(), key_id_));
        }
        prev_mac_ = situation_.head.mac ? *situation_.head.mac : keys_.genesis(key_id_);
    }

    void rotate() {
        const std::string& active = keys_.keyring().active_id();
        AuditEntry rotation;
        rotation.action = std::string(rotation_action);
        rotation.object = active;
        sign(rotation, situation_.clock);
        key_id_ = active;
    }

    void sign(const AuditEntry& entry, std::int64_t recorded_at) {
        SignedRow row{next_seq_, recorded_at, entry, key_id_, prev_mac_, {}};
        SignedEntry signed_entry;
        signed_entry.seq = row.seq;
        signed_entry.entry_id = entry.id.bytes();
        signed_entry.recorded_at = row.recorded_at;
        signed_entry.actor = entry.actor;
        signed_entry.action = entry.action;
        signed_entry.object = entry.object;
        signed_entry.data = entry.data;
        signed_entry.key_id = key_id_;
        signed_entry.prev_mac = prev_mac_;
        row.mac = keys_.mac(signed_entry);
        prev_mac_ = row.mac;
        ++next_seq_;
        batch_.rows.push_back(std::move(row));
    }

    ChainKeys& keys_;
    const SigningSituation& situation_;
    std::map<EntryId, std::pair<std::int64_t, const AuditEntry*>> taken_;
    SignedBatch batch_;
    std::int64_t next_seq_ = 1;
    std::string key_id_;
    Mac prev_mac_{};
};

}  // namespace

SignedBatch sign_entries(ChainKeys& keys, const SigningSituation& situation, const std::vector<EntryToSign>& entries) {
    Signer signer(keys, situation);
    for (const EntryToSign& entry : entries) signer.add(entry);
    return signer.take();
}

}  // namespace rowlock
