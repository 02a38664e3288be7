-- A batch with a NULL for a MAC, or numbers up to the last of all, is refused by rowlock's own words (RL001) again.
--
-- The quick look of migration 016 took two NULLs in a row for whole, which the column then refused as a NULL, and added one
-- too many to the largest number. Nothing wrong was ever let in.

SET LOCAL ROLE rowlock_owner;

-- Throws unless each entry of a batch follows the one before it; the first is for the caller to check against the head.
CREATE OR REPLACE FUNCTION rowlock.refuse_broken_batch(
    p_seqs bigint[], p_key_ids text[], p_actions text[], p_objects text[], p_prev_macs bytea[], p_macs bytea[])
    RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    broken record;
BEGIN
    -- Lock: none; nothing here reads a table. NULLs and key rotations are for the slow way.
    IF p_prev_macs[2:] = p_macs[:cardinality(p_macs) - 1] AND array_position(p_macs, NULL) IS NULL
       AND p_seqs = ARRAY(SELECT generate_series(p_seqs[1], p_seqs[1] + (cardinality(p_seqs) - 1)))
       AND p_key_ids[1] = ALL (p_key_ids)
       AND 'rowlock.key_rotation' <> ALL (p_actions) THEN
        RETURN;
    END IF;

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

INSERT INTO rowlock.schema_version (version, name) VALUES (19, 'broken_batches');
RESET ROLE;
