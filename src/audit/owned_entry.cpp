#include "audit/owned_entry.hpp"

namespace rowlock {

OwnedEntry::OwnedEntry(const SignedEntry& entry)
    : seq(entry.seq),
      entry_id(entry.entry_id),
      recorded_at(entry.recorded_at),
      actor(entry.actor),
      action(entry.action),
      object(entry.object),
      data(entry.data),
      format(entry.format),
      key_id(entry.key_id),
      prev_mac(entry.prev_mac.begin(), entry.prev_mac.end()),
      mac(entry.mac.begin(), entry.mac.end()) {}

SignedEntry OwnedEntry::view() const {
    return {seq, entry_id, recorded_at, actor, action, object, data, format, key_id, prev_mac, mac};
}

}  // namespace rowlock
