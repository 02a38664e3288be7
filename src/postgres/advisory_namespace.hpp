// Every namespace of advisory locks, in one place, so that no two features pick the same.
//
// rowlock takes advisory locks by the two-part key (namespace, key) alone and for the transaction alone: the one-part
// keys are the application's, and a session-level lock would meet the next user of a pooled connection.
// Source: https://www.postgresql.org/docs/15/explicit-locking.html#ADVISORY-LOCKS
#pragma once

#include <array>
#include <string_view>

namespace rowlock {

struct AdvisoryNamespace {
    int id;                 ///< The first half of the key: four letters in ASCII, beginning with "rl".
    std::string_view name;  ///< Who takes it.
};

inline constexpr AdvisoryNamespace audit_queue_namespace{0x726c6171, "the queue of an audit log's writers"};  // rlaq
inline constexpr AdvisoryNamespace lifecycle_gate_namespace{0x726c6c67,
                                                            "the gate before a lifecycle's parent"};        // rllg
inline constexpr AdvisoryNamespace schema_installer_namespace{0x726c7363, "the installers of the schema"};  // rlsc

inline constexpr std::array advisory_namespaces{audit_queue_namespace, lifecycle_gate_namespace,
                                                schema_installer_namespace};

static_assert(
    [] {
        for (std::size_t i = 0; i < advisory_namespaces.size(); ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                if (advisory_namespaces[i].id == advisory_namespaces[j].id) return false;
            }
        }
        return true;
    }(),
    "two features must not share a namespace of advisory locks");

}  // namespace rowlock
