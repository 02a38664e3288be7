-- The only way in for entries: functions that run as rowlock_owner and take an entry only if it follows the head.
--
-- SECURITY DEFINER, so search_path is pinned (pg_temp last: a caller's temporary table must not stand in for ours) and
-- everything of ours is named with its schema. Row-level security still applies inside, since it is forced.
--
-- SQLSTATEs of our own:
--   RL001  the entry does not follow the head of its tenant's chain (seq or previous MAC), or there is no state row
--   RL002  a change that the log never allows (UPDATE, DELETE, TRUNCATE)
--   RL003  the entry names another key than the chain's
--   RL004  the arrays of append_entries are empty, or differ in length or shape
-- and 42501 where the tenant is not the transaction's: the same words whether that tenant exists or not.

SET LOCAL ROLE rowlock_owner;

CREATE FUNCTION rowlock.refuse_tenant(p_tenant text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'tenant % is not the tenant of this transaction', coalesce(quote_literal(p_tenant), 'NULL')
        USING ERRCODE = 'insufficient_privilege',
              DETAIL = format('rowlock.tenant is %s.', coalesce(
                  quote_literal(NULLIF(current_setting('rowlock.tenant', true), '')), 'not set')),
              HINT = 'In the same transaction, first: SELECT set_config(''rowlock.tenant'', ''…'', true)';
END
$$;
REVOKE ALL ON FUNCTION rowlock.refuse_tenant(text) FROM PUBLIC;

-- Says why an entry was not taken. Takes no lock.
CREATE FUNCTION rowlock.refuse_entry(p_tenant text, p_seq bigint, p_key_id text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    head rowlock.tenant_seq;
BEGIN
    SELECT * INTO head FROM rowlock.tenant_seq WHERE tenant_id = p_tenant;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'entry % does not follow the head: tenant % has no state row', p_seq, quote_literal(p_tenant)
            USING ERRCODE = 'RL001',
                  HINT = 'INSERT INTO rowlock.tenant_seq (tenant_id) VALUES (…) ON CONFLICT DO NOTHING, then lock the row.';
    END IF;
    IF head.last_seq = p_seq - 1 AND head.key_id IS DISTINCT FROM p_key_id AND head.last_seq > 0 THEN
        RAISE EXCEPTION 'entry % is signed with key %, the chain with key %', p_seq,
                        coalesce(quote_literal(p_key_id), 'NULL'), quote_literal(head.key_id)
            USING ERRCODE = 'RL003',
                  HINT = 'Sign with the key of the state row; another key is introduced by a rowlock.key_rotation entry.';
    END IF;
    RAISE EXCEPTION 'entry % does not follow the head, which is entry %', coalesce(p_seq::text, 'NULL'), head.last_seq
        USING ERRCODE = 'RL001',
              HINT = 'Lock the state row FOR UPDATE, read last_seq and head_mac, and sign again, all in one transaction.';
END
$$;
REVOKE ALL ON FUNCTION rowlock.refuse_entry(text, bigint, text) FROM PUBLIC;

CREATE FUNCTION rowlock.refuse_nameless_key(p_seq bigint) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'entry % is a key rotation that names no key, which would leave the chain with none', p_seq
        USING ERRCODE = 'check_violation', HINT = 'The object of a rowlock.key_rotation entry is the new key''s id.';
END
$$;
REVOKE ALL ON FUNCTION rowlock.refuse_nameless_key(bigint) FROM PUBLIC;

-- Appends one entry. The caller holds the state row FOR UPDATE (else it may be told RL001 after a wait).
-- p_recorded_us: microseconds since 1970-01-01 UTC.
-- An entry with action rowlock.key_rotation is still signed with the old key; p_object is the chain's key from then on.
CREATE FUNCTION rowlock.append_entry(
    p_tenant text, p_seq bigint, p_entry_id uuid, p_recorded_us bigint, p_actor text, p_action text, p_object text,
    p_data json, p_key_id text, p_prev_mac bytea, p_mac bytea) RETURNS void
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF (p_tenant = NULLIF(current_setting('rowlock.tenant', true), '')) IS NOT TRUE THEN
        PERFORM rowlock.refuse_tenant(p_tenant);
    END IF;
    IF p_action = 'rowlock.key_rotation' AND coalesce(p_object, '') = '' THEN
        PERFORM rowlock.refuse_nameless_key(p_seq);
    END IF;

    -- Lock: the tenant's row of tenant_seq, FOR NO KEY UPDATE, until the transaction ends.
    UPDATE rowlock.tenant_seq
       SET last_seq = p_seq,
           head_mac = p_mac,
           key_id = CASE WHEN p_action = 'rowlock.key_rotation' THEN p_object ELSE p_key_id END
     WHERE tenant_id = p_tenant
       AND last_seq = p_seq - 1
       AND (last_seq = 0 OR (head_mac = p_prev_mac AND key_id = p_key_id));
    IF NOT FOUND THEN
        PERFORM rowlock.refuse_entry(p_tenant, p_seq, p_key_id);
    END IF;

    -- Hours and the rest apart: each product is then exact in the double that interval multiplication goes through.
    -- Lock: none beyond ROW EXCLUSIVE on audit_log, which every INSERT takes.
    INSERT INTO rowlock.audit_log
           (tenant_id, seq, entry_id, recorded_at, actor, action, object, data, key_id, prev_mac, mac)
    VALUES (p_tenant, p_seq, p_entry_id,
            timestamptz 'epoch' + p_recorded_us / 3600000000 * interval '1 hour'
                                + p_recorded_us % 3600000000 * interval '1 microsecond',
            p_actor, p_action, p_object, p_data, p_key_id, p_prev_mac, p_mac);
END
$$;
COMMENT ON FUNCTION rowlock.append_entry IS
    'Appends one entry that follows the head of the transaction''s tenant, and moves the head';
REVOKE ALL ON FUNCTION rowlock.append_entry FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rowlock.append_entry TO rowlock_app, rowlock_sealer;

-- Throws unless each entry of a batch follows the one before it; the first is for the caller to check against the head.
CREATE FUNCTION rowlock.refuse_broken_batch(
    p_seqs bigint[], p_key_ids text[], p_actions text[], p_objects text[], p_prev_macs bytea[], p_macs bytea[])
    RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    broken record;
BEGIN
    -- Lock: none; neither this nor the next reads a table.
    PERFORM rowlock.refuse_nameless_key(entry.seq)
       FROM unnest(p_seqs, p_actions, p_objects) AS entry (seq, action, object)
      WHERE entry.action = 'rowlock.key_rotation' AND coalesce(entry.object, '') = '';
    SELECT chain.seq, chain.seq_before, chain.key_id, chain.key_expected,
           (chain.seq = chain.seq_before + 1 AND chain.prev_mac = chain.mac_before) IS NOT TRUE AS unlinked
      INTO broken
      FROM (SELECT entry.*, lag(seq) OVER in_order AS seq_before, lag(mac) OVER in_order AS mac_before,
                   lag(CASE WHEN action = 'rowlock.key_rotation' THEN object ELSE key_id END) OVER in_order
                       AS key_expected
              FROM unnest(p_seqs, p_prev_macs, p_macs, p_key_ids, p_actions, p_objects) WITH ORDINALITY
                       AS entry (seq, prev_mac, mac, key_id, action, object, place)
            WINDOW in_order AS (ORDER BY place)) AS chain
     WHERE chain.place > 1
       AND (chain.seq = chain.seq_before + 1 AND chain.prev_mac = chain.mac_before
            AND chain.key_id = chain.key_expected) IS NOT TRUE
     ORDER BY chain.place
     LIMIT 1;
    IF FOUND AND broken.unlinked THEN
        RAISE EXCEPTION 'entry % does not follow entry % before it in the arrays', broken.seq, broken.seq_before
            USING ERRCODE = 'RL001', HINT = 'Number and sign the entries in the order of the arrays.';
    ELSIF FOUND THEN
        RAISE EXCEPTION 'entry % is signed with key %, the chain with key %', broken.seq,
                        coalesce(quote_literal(broken.key_id), 'NULL'), coalesce(quote_literal(broken.key_expected), 'NULL')
            USING ERRCODE = 'RL003';
    END IF;
END
$$;
REVOKE ALL ON FUNCTION rowlock.refuse_broken_batch FROM PUBLIC;

-- The same for many entries of one tenant, in the order of the arrays: all of them or none.
-- Arrays and not COPY: the server refuses COPY FROM under row-level security.
CREATE FUNCTION rowlock.append_entries(
    p_tenant text, p_seqs bigint[], p_entry_ids uuid[], p_recorded_us bigint[], p_actors text[], p_actions text[],
    p_objects text[], p_data json[], p_key_ids text[], p_prev_macs bytea[], p_macs bytea[]) RETURNS void
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    entries int := cardinality(p_seqs);
BEGIN
    IF (p_tenant = NULLIF(current_setting('rowlock.tenant', true), '')) IS NOT TRUE THEN
        PERFORM rowlock.refuse_tenant(p_tenant);
    END IF;

    -- One dimension, counted from 1, all of one length: else [1] below would not be the first entry that unnest gives.
    IF (format('[1:%s]', entries) = ALL (ARRAY[
            array_dims(p_seqs), array_dims(p_entry_ids), array_dims(p_recorded_us), array_dims(p_actors),
            array_dims(p_actions), array_dims(p_objects), array_dims(p_data), array_dims(p_key_ids),
            array_dims(p_prev_macs), array_dims(p_macs)])) IS NOT TRUE THEN
        RAISE EXCEPTION 'the arrays of append_entries are empty, or differ in length or shape'
            USING ERRCODE = 'RL004', HINT = 'Give ten arrays with one element for each entry, at least one.';
    END IF;

    PERFORM rowlock.refuse_broken_batch(p_seqs, p_key_ids, p_actions, p_objects, p_prev_macs, p_macs);

    -- Lock: the tenant's row of tenant_seq, FOR NO KEY UPDATE, until the transaction ends.
    UPDATE rowlock.tenant_seq
       SET last_seq = p_seqs[entries],
           head_mac = p_macs[entries],
           key_id = CASE WHEN p_actions[entries] = 'rowlock.key_rotation' THEN p_objects[entries]
                         ELSE p_key_ids[entries] END
     WHERE tenant_id = p_tenant
       AND last_seq = p_seqs[1] - 1
       AND (last_seq = 0 OR (head_mac = p_prev_macs[1] AND key_id = p_key_ids[1]));
    IF NOT FOUND THEN
        PERFORM rowlock.refuse_entry(p_tenant, p_seqs[1], p_key_ids[1]);
    END IF;

    -- Hours and the rest apart: see append_entry.
    -- Lock: none beyond ROW EXCLUSIVE on audit_log, which every INSERT takes.
    INSERT INTO rowlock.audit_log
           (tenant_id, seq, entry_id, recorded_at, actor, action, object, data, key_id, prev_mac, mac)
    SELECT p_tenant, seq, entry_id,
           timestamptz 'epoch' + recorded_us / 3600000000 * interval '1 hour'
                               + recorded_us % 3600000000 * interval '1 microsecond',
           actor, action, object, data, key_id, prev_mac, mac
      FROM unnest(p_seqs, p_entry_ids, p_recorded_us, p_actors, p_actions, p_objects, p_data, p_key_ids, p_prev_macs,
                  p_macs) WITH ORDINALITY
               AS entry (seq, entry_id, recorded_us, actor, action, object, data, key_id, prev_mac, mac, place)
     ORDER BY place;
END
$$;
COMMENT ON FUNCTION rowlock.append_entries IS
    'Appends entries that follow the head and each other, in the order of the arrays: all of them or none';
REVOKE ALL ON FUNCTION rowlock.append_entries FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rowlock.append_entries TO rowlock_app, rowlock_sealer;

INSERT INTO rowlock.schema_version (version, name) VALUES (3, 'append');
RESET ROLE;
