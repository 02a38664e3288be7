// Whatever is done to the log behind its back, verify names it: its kind and its number, and nothing else.
#include <fmt/core.h>

#include "postgres/audit_fixture.hpp"

namespace rowlock {
namespace {

/// Entries 1-6 under the first key, 7 is the rotation, 8-12 under the second.
constexpr std::int64_t entries = 12;
constexpr std::int64_t rotation = 7;

class AuditLogTampering : public AuditTest {
  protected:
    void SetUp() override {
        AuditTest::SetUp();
        for (const std::string tenant : {"acme", "globex"}) {
            append_many(tenant, rotation - 1);
            app_->transact(of(tenant), [&](Transaction& transaction) {
                std::vector<TenantEntry> more;
                for (std::int64_t seq = rotation + 1; seq <= entries; ++seq) {
                    more.push_back({TenantId(tenant),
                                    {.actor = "a", .action = "b", .object = "c", .data = fmt::format("[{}]", seq)}});
                }
                static_cast<void>(rotated_log_.append_all(transaction, more));
            });
        }
    }

    struct Undo {};
    /// Does this as a superuser with the triggers off, verifies in the same transaction, and undoes it.
    std::string after(const std::string& sql, const std::string& tenant = "acme", const VerifyOptions& options = {}) {
        std::string result;
        try {
            superuser_.transact({}, [&](Transaction& transaction) {
                transaction.execute_script({"test.triggers_off",
                                            "ALTER TABLE rowlock.audit_log DISABLE TRIGGER ALL;"
                                            "ALTER TABLE rowlock.tenant_seq DISABLE TRIGGER ALL"});
                transaction.execute_script({"test.tamper", sql});
                const Verification verification = rotated_log_.verify(transaction, TenantId(tenant), options);
                const bool clean = verification.findings.empty();
                EXPECT_EQ(verification.verdict == Verdict::tampered, !clean) << sql;
                EXPECT_EQ(verification.findings_total, static_cast<std::int64_t>(verification.findings.size())) << sql;
                result = told(verification);
                throw Undo{};
            });
        } catch (const Undo&) {
            return result;
        }
        return result;
    }
    static std::string change(std::int64_t seq, const std::string& assignments) {
        return fmt::format("UPDATE rowlock.audit_log SET {} WHERE tenant_id = 'acme' AND seq = {}", assignments, seq);
    }
    static std::string remove(const std::string& condition) {
        return fmt::format("DELETE FROM rowlock.audit_log WHERE tenant_id = 'acme' AND {}", condition);
    }
    static std::string state(const std::string& assignments) {
        return fmt::format("UPDATE rowlock.tenant_seq SET {} WHERE tenant_id = 'acme'", assignments);
    }
    /// A copy of an entry with some of its columns replaced.
    static std::string copy(std::int64_t seq, const std::string& tenant, const std::string& seq_there) {
        return fmt::format(
            "INSERT INTO rowlock.audit_log SELECT {}, {}, entry_id, recorded_at, actor, action, object,"
            " data, format, key_id, prev_mac, mac FROM rowlock.audit_log WHERE tenant_id = 'acme' AND seq = {}",
            tenant, seq_there, seq);
    }
    static std::string found(std::string_view kind, std::int64_t seq, std::int64_t read = entries) {
        return fmt::format("tampered {}, {} {}", read, kind, seq);
    }

    const Keyring rotated_ = keyring_.rotated();
    const AuditLog rotated_log_{rotated_};
    const std::string untouched_ = fmt::format("intact {}", entries);
    const std::string without_keys_ =
        "ALTER TABLE rowlock.audit_log DROP CONSTRAINT audit_log_pkey;"
        "ALTER TABLE rowlock.audit_log DROP CONSTRAINT audit_log_entry_id_key;";
};

TEST_F(AuditLogTampering, IsNotFoundWhereThereIsNone) {
    EXPECT_EQ(after("SELECT 1"), untouched_);
    EXPECT_EQ(after(without_keys_), untouched_);
    EXPECT_EQ(after("SELECT 1", "globex"), untouched_);
    EXPECT_EQ(after("SELECT 1", "nobody"), "empty 0");
    // What is written anew as it was is not a change.
    EXPECT_EQ(after(change(3, "actor = actor || '', data = data::text::json, recorded_at = recorded_at")), untouched_);
}

TEST_F(AuditLogTampering, WithAColumnOfAnyEntryIsFoundAtThatEntry) {
    const std::vector<std::string> changes{
        "entry_id = gen_random_uuid()",
        "recorded_at = recorded_at + interval '1 microsecond'",
        "recorded_at = 'infinity'",
        "recorded_at = '-infinity'",
        "actor = coalesce(actor, '') || ' '",
        "actor = CASE WHEN actor IS NULL THEN '' END",
        "object = coalesce(object, '') || 'x'",
        "object = CASE WHEN object IS NULL THEN 'x' ELSE upper(object) || ' ' END",
        "data = coalesce(data::text || ' ', 'null')::json",
        "data = CASE WHEN data IS NULL THEN '{}'::json END",
        "prev_mac = set_byte(prev_mac, 31, get_byte(prev_mac, 31) # 1)",
        "mac = set_byte(mac, 0, get_byte(mac, 0) # 128)",
        "mac = decode(repeat('00', 32), 'hex')",
        "actor = 'x', action = 'y', object = 'z', data = '0', recorded_at = now(), entry_id = gen_random_uuid()",
    };
    for (std::int64_t seq = 1; seq <= entries; ++seq) {
        for (const std::string& sql : changes) ASSERT_EQ(after(change(seq, sql)), found("changed", seq)) << sql;
        ASSERT_EQ(after(change(seq, "action = coalesce(action, '') || '.'")), found("changed", seq));
        if (seq == rotation) continue;
        ASSERT_EQ(after(change(seq, "action = NULL")), found("changed", seq));
        ASSERT_EQ(after(change(seq, "action = 'rowlock.key_rotation', object = 'k000000000000'")),
                  found("changed", seq));
    }
}

TEST_F(AuditLogTampering, WithAnyByteOfTheFixedColumnsIsFound) {
    for (const std::int64_t seq : {std::int64_t{1}, rotation, entries}) {
        for (int byte = 0; byte < 32; ++byte) {
            for (const std::string column : {"mac", "prev_mac"}) {
                const std::string sql = fmt::format("{0} = set_byte({0}, {1}, get_byte({0}, {1}) # 16)", column, byte);
                ASSERT_EQ(after(change(seq, sql)), found("changed", seq)) << sql;
            }
        }
        for (int byte = 0; byte < 16; ++byte) {
            const std::string sql = fmt::format(
                "entry_id = encode(set_byte(uuid_send(entry_id), {0},"
                " get_byte(uuid_send(entry_id), {0}) # 1), 'hex')::uuid",
                byte);
            ASSERT_EQ(after(change(seq, sql)), found("changed", seq)) << sql;
        }
        for (std::int64_t microseconds = 1; microseconds < 1'000'000'000'000'000; microseconds *= 10) {
            const std::string sql = fmt::format("recorded_at = recorded_at - interval '{} us'", microseconds);
            ASSERT_EQ(after(change(seq, sql)), found("changed", seq)) << sql;
        }
    }
}

TEST_F(AuditLogTampering, WithTheKeyIdOrTheFormatIsFound) {
    const std::string first_key = rotated_.ids().at(0);
    const std::string second_key = rotated_.ids().at(1);
    for (std::int64_t seq = 1; seq <= entries; ++seq) {
        for (const std::string& key : {seq <= rotation ? second_key : first_key, std::string("k000000000000")}) {
            ASSERT_EQ(after(change(seq, fmt::format("key_id = '{}'", key))), found("unknown_key", seq)) << key;
        }
        for (const int format : {0, 2, -1, 256, 257}) {
            ASSERT_EQ(after(change(seq, fmt::format("format = {}", format))), found("unknown_format", seq)) << format;
        }
    }
}

TEST_F(AuditLogTampering, ThatRemovesEntriesIsFound) {
    for (std::int64_t seq = 1; seq < entries; ++seq) {
        EXPECT_EQ(after(remove(fmt::format("seq = {}", seq))), found("missing", seq, entries - 1));
    }
    EXPECT_EQ(after(remove("seq = 12")), found("tail_missing", 12, 11));
    EXPECT_EQ(after(remove("seq BETWEEN 3 AND 5")), "tampered 9, missing 3-5");
    EXPECT_EQ(after(remove("seq <= 7")), "tampered 5, missing 1-7");
    EXPECT_EQ(after(remove("seq >= 6")), "tampered 5, tail_missing 6-12");
    EXPECT_EQ(after(remove("seq % 3 = 0")), "tampered 8, missing 3, missing 6, missing 9, tail_missing 12");
    EXPECT_EQ(after(remove("true")), "tampered 0, tail_missing 1-12");
    EXPECT_EQ(after(remove("true"), "globex"), untouched_) << "the other tenant's log is as it was";
}

TEST_F(AuditLogTampering, ThatSwapsTwoEntriesIsFound) {
    for (const auto& [one, other] :
         {std::pair<std::int64_t, std::int64_t>{1, 2}, {1, 12}, {3, 4}, {3, 9}, {6, 8}, {11, 12}}) {
        const std::string sql = change(one, "seq = 99") + ";" + change(other, fmt::format("seq = {}", one)) + ";" +
                                change(99, fmt::format("seq = {}", other));
        EXPECT_EQ(after(sql), fmt::format("tampered 12, displaced {0}>{1}, displaced {1}>{0}", one, other));
    }
}

TEST_F(AuditLogTampering, ThatRenumbersAnEntryIsFound) {
    EXPECT_EQ(after(change(5, "seq = 13")), "tampered 12, missing 5, displaced 13>5");
    EXPECT_EQ(after(change(12, "seq = 13")), "tampered 12, tail_missing 12, displaced 13>12");
    EXPECT_EQ(after(change(1, "seq = 9223372036854775807")), "tampered 12, missing 1, displaced 9223372036854775807>1");
    const std::string any_number = "ALTER TABLE rowlock.audit_log DROP CONSTRAINT audit_log_seq_range;";
    for (const std::string seq : {"0", "-1", "-9223372036854775808"}) {
        EXPECT_EQ(after(any_number + change(5, fmt::format("seq = {}", seq))),
                  fmt::format("tampered 12, displaced {}>5, missing 5", seq));
    }
    EXPECT_EQ(
        after(any_number + change(5, "seq = -9223372036854775808") + ";" + change(6, "seq = 9223372036854775807")),
        "tampered 12, displaced -9223372036854775808>5, missing 5-6, displaced 9223372036854775807>6");
    const std::string close_the_hole = "DELETE FROM rowlock.audit_log WHERE tenant_id = 'acme' AND seq = 10;" +
                                       change(11, "seq = 10") + ";" + change(12, "seq = 11");
    EXPECT_EQ(after(close_the_hole), "tampered 11, displaced 10>11, displaced 11>12, state_changed 11");
}

TEST_F(AuditLogTampering, ThatDuplicatesAnEntryIsFound) {
    for (std::int64_t seq = 1; seq <= entries; ++seq) {
        EXPECT_EQ(after(without_keys_ + copy(seq, "'acme'", std::to_string(seq))), found("duplicate", seq, 13));
    }
    EXPECT_EQ(after(without_keys_ + copy(3, "'acme'", "13")), "tampered 13, displaced 13>3");
    EXPECT_EQ(after(without_keys_ + copy(3, "'acme'", "8")), "tampered 13, duplicate 8, displaced 8>3");
}

TEST_F(AuditLogTampering, ThatMovesAnEntryToAnotherTenantIsFoundInBoth) {
    for (std::int64_t seq = 1; seq <= entries; ++seq) {
        const std::string replace =
            fmt::format("DELETE FROM rowlock.audit_log WHERE tenant_id = 'globex' AND seq = {};", seq) +
            change(seq, "tenant_id = 'globex'");
        EXPECT_EQ(after(replace, "globex"), fmt::format("tampered 12, foreign {0}>{0}", seq));
        EXPECT_EQ(after(replace, "acme"), found(seq == entries ? "tail_missing" : "missing", seq, entries - 1));
    }
    EXPECT_EQ(after(change(3, "tenant_id = 'globex', seq = 13"), "globex"), "tampered 13, foreign 13>3");
    EXPECT_EQ(after(without_keys_ + copy(3, "'globex'", "3"), "globex"), "tampered 13, duplicate 3, foreign 3>3");
    EXPECT_EQ(after(change(1, "tenant_id = 'new'"), "new"), "tampered 1, foreign 1>1, state_changed 1");
}

TEST_F(AuditLogTampering, WithTheStateRowIsFound) {
    EXPECT_EQ(after(state("last_seq = 13")), found("state_changed", 12));
    EXPECT_EQ(after(state("last_seq = 9223372036854775807")), found("state_changed", 12));
    EXPECT_EQ(after(state("last_seq = 11")), found("state_changed", 12));
    EXPECT_EQ(after(state("last_seq = 11, head_mac = (SELECT mac FROM rowlock.audit_log"
                          " WHERE tenant_id = 'acme' AND seq = 11)")),
              found("state_changed", 12));
    EXPECT_EQ(after(state("last_seq = 0, head_mac = NULL, key_id = NULL")), "tampered 12, state_changed 1-12");
    EXPECT_EQ(after(state("head_mac = decode(repeat('00', 32), 'hex')")), found("state_changed", 12));
    for (int byte = 0; byte < 32; ++byte) {
        EXPECT_EQ(after(state(fmt::format("head_mac = set_byte(head_mac, {0}, get_byte(head_mac, {0}) # 2)", byte))),
                  found("state_changed", 12));
    }
    EXPECT_EQ(after(state(fmt::format("key_id = '{}'", rotated_.ids().at(0)))), found("state_changed", 12));
    EXPECT_EQ(after(state("key_id = 'other'")), found("state_changed", 12));
    EXPECT_EQ(after("DELETE FROM rowlock.tenant_seq WHERE tenant_id = 'acme'"), found("state_changed", 12));
    EXPECT_EQ(after("UPDATE rowlock.tenant_seq SET tenant_id = 'new' WHERE tenant_id = 'acme'", "new"),
              "tampered 0, tail_missing 1-12");
}

TEST_F(AuditLogTampering, IsReportedInFullAndNotOnlyTheFirstOfIt) {
    EXPECT_EQ(after(change(2, "actor = 'x'") + ";" + remove("seq = 4") + ";" + change(6, "format = 2") + ";" +
                    change(9, "mac = prev_mac") + ";" + state("key_id = 'other'")),
              "tampered 11, changed 2, missing 4, unknown_format 6, changed 9, state_changed 12");
    EXPECT_EQ(after(change(3, "actor = 'x'") + ";" + change(4, "actor = 'y'")), "tampered 12, changed 3-4");
}

TEST_F(AuditLogTampering, IsFoundAtEveryPlaceWhateverTheChunksAre) {
    for (const std::int64_t chunk : {1, 2, 7, 11, 12, 13}) {
        const VerifyOptions options{.progress = {}, .chunk_entries = chunk};
        const auto in_chunks = [&](const std::string& sql) { return after(sql, "acme", options); };
        ASSERT_EQ(in_chunks("SELECT 1"), untouched_) << chunk;
        for (std::int64_t seq = 1; seq <= entries; ++seq) {
            ASSERT_EQ(in_chunks(change(seq, "actor = 'x'")), found("changed", seq)) << chunk;
            ASSERT_EQ(in_chunks(change(seq, "prev_mac = mac")), found("changed", seq)) << chunk;
            ASSERT_EQ(in_chunks(remove(fmt::format("seq = {}", seq))),
                      found(seq == entries ? "tail_missing" : "missing", seq, entries - 1))
                << chunk;
            ASSERT_EQ(in_chunks(without_keys_ + copy(seq, "'acme'", std::to_string(seq))),
                      found("duplicate", seq, entries + 1))
                << chunk;
        }
        ASSERT_EQ(in_chunks(remove("seq BETWEEN 2 AND 11")), "tampered 2, missing 2-11") << chunk;
    }
}

}  // namespace
}  // namespace rowlock
