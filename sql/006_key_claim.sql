-- Key claims from SQL, for writers in other languages: the same rows and locks as rowlock::KeyClaim in C++, so both may
-- claim rows of one table.
--
-- Once, as the owner:
--     INSERT INTO rowlock.claimed_table (name, table_name, id_columns, key_column, used_keys)
--     VALUES ('rooms', 'public.room', '{room_id}', 'room_key', 'public.used_room_keys');
-- Then, at READ COMMITTED:
--     SELECT * FROM rowlock.claim('rooms', '{7}', p_owner => 'ann');   -- outcome claimed: with a key and an epoch
--     BEGIN;
--     SELECT rowlock.hold_claim('rooms', '{7}', :key, :epoch);         -- false: fenced, roll back
--     UPDATE …;                                                        -- any tables
--     SELECT rowlock.complete_claim('rooms', '{7}', :key, :epoch);     -- NULL: fenced, roll back
--     COMMIT;
-- All of it in one transaction is fine, too: a crash then undoes the claim.
--
-- SECURITY INVOKER: they do to the user's tables what the caller may do. search_path is pinned all the same, so that the
-- operators and functions in the statements are PostgreSQL's own.

SET LOCAL ROLE rowlock_owner;

CREATE TABLE rowlock.claimed_table (
    name          text COLLATE "C" NOT NULL CONSTRAINT claimed_table_pkey PRIMARY KEY,
    table_name    regclass NOT NULL,
    id_columns    name[]   NOT NULL CONSTRAINT claimed_table_id CHECK (cardinality(id_columns) >= 1),
    key_column    name     NOT NULL,
    used_keys     regclass NOT NULL,
    tenant_column name,
    lease_max     interval NOT NULL DEFAULT '60 seconds' CONSTRAINT claimed_table_lease CHECK (lease_max >= '1 ms')
);
COMMENT ON TABLE rowlock.claimed_table IS 'Tables whose rows are claimed by key, as rowlock.claim knows them';
-- The description is the owner's: who could change it would send the others' claims to another table.
GRANT SELECT ON rowlock.claimed_table TO rowlock_app, rowlock_auditor, rowlock_backup;

-- The parts that the statements below are put together from; every name quoted, every value a literal.
CREATE TYPE rowlock.claim_parts AS (
    claimed text, used text, columns text, key text, t_columns text, u_columns text, t_is_row text, u_is_row text,
    t_is_u text, lock_key text, is_bytea boolean, lease_max interval);

CREATE FUNCTION rowlock.claim_parts_of(p_name text, p_row text[]) RETURNS rowlock.claim_parts
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    described rowlock.claimed_table;
    columns name[];
    row_values text[];
    parts rowlock.claim_parts;
    full_name text;
BEGIN
    -- Lock: none, nor below.
    SELECT * INTO described FROM rowlock.claimed_table WHERE name = p_name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no claimed table %', coalesce(quote_literal(p_name), 'NULL')
            USING ERRCODE = 'RL006', HINT = 'The owner describes it: INSERT INTO rowlock.claimed_table …';
    END IF;
    -- Above READ COMMITTED the snapshot is older than the claim. READ UNCOMMITTED is READ COMMITTED to PostgreSQL.
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE EXCEPTION 'keys are claimed at READ COMMITTED, not at %', upper(current_setting('transaction_isolation'))
            USING ERRCODE = 'invalid_transaction_state';
    END IF;
    IF p_row IS NOT NULL AND cardinality(p_row) <> cardinality(described.id_columns) THEN
        RAISE EXCEPTION 'a row of % has % value(s) in its id, not %', described.table_name,
                        cardinality(described.id_columns), cardinality(p_row)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    columns := described.tenant_column || described.id_columns;
    row_values := NULLIF(current_setting('rowlock.tenant', true), '') || p_row;
    IF described.tenant_column IS NULL THEN
        columns := described.id_columns;
        row_values := p_row;
    ELSIF NULLIF(current_setting('rowlock.tenant', true), '') IS NULL THEN
        RAISE EXCEPTION 'rows of % belong to tenants, and the transaction has none', described.table_name
            USING ERRCODE = 'insufficient_privilege',
                  HINT = 'In the same transaction, first: SELECT set_config(''rowlock.tenant'', ''…'', true)';
    END IF;
    SELECT format('%I.%I', n.nspname, c.relname), n.nspname || '.' || c.relname INTO STRICT parts.claimed, full_name
      FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = described.table_name;
    SELECT format('%I.%I', n.nspname, c.relname) INTO STRICT parts.used
      FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = described.used_keys;
    parts.key := quote_ident(described.key_column);
    parts.lease_max := described.lease_max;
    SELECT atttypid = 'bytea'::regtype INTO parts.is_bytea
      FROM pg_attribute WHERE attrelid = described.table_name AND attname = described.key_column;
    SELECT string_agg(quote_ident(name), ', ' ORDER BY place), string_agg(format('t.%I', name), ', ' ORDER BY place),
           string_agg(format('u.%I', name), ', ' ORDER BY place),
           string_agg(format('t.%I = %L', name, value), ' AND ' ORDER BY place),
           string_agg(format('u.%I = %L', name, value), ' AND ' ORDER BY place),
           string_agg(format('t.%1$I = u.%1$I', name), ' AND ' ORDER BY place),
           format('rowlock.advisory_key(concat_ws(chr(31), %L, %s))', full_name,
                  string_agg(format('t.%I::text', name), ', ' ORDER BY place))
      INTO parts.columns, parts.t_columns, parts.u_columns, parts.t_is_row, parts.u_is_row, parts.t_is_u, parts.lock_key
      FROM unnest(columns, row_values) WITH ORDINALITY AS one (name, value, place);
    RETURN parts;
END
$$;
REVOKE ALL ON FUNCTION rowlock.claim_parts_of FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rowlock.claim_parts_of TO rowlock_app;

-- outcome: claimed (key and epoch say with what) · lost_being_claimed, by a transaction that is still open ·
-- lost_claimed, by owner until leased_until · lost_completed, the key given does not stand any more · missing.
-- Waits for nobody. Without p_key the key of this moment is claimed; then read after the claim.
CREATE FUNCTION rowlock.claim(
    p_name text, p_row text[], p_key text DEFAULT NULL, p_owner text DEFAULT '', p_lease interval DEFAULT '30 seconds',
    OUT outcome text, OUT key text, OUT epoch bigint, OUT owner text, OUT leased_until timestamptz)
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    parts rowlock.claim_parts := rowlock.claim_parts_of(p_name, p_row);
    is_free boolean;
    stands boolean;
BEGIN
    IF (p_lease BETWEEN '1 ms' AND parts.lease_max) IS NOT TRUE THEN
        RAISE EXCEPTION 'a lease is 1 ms to %, not %', parts.lease_max, coalesce(p_lease::text, 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    BEGIN
        -- Lock: the row's advisory lock (1919705963 is "rlck"), if it is free, until the transaction ends. A statement of
        -- its own: the snapshot of the next is then no older than the lock.
        EXECUTE format('SELECT coalesce(%L, t.%s::text), pg_try_advisory_xact_lock(1919705963, %s) FROM %s AS t WHERE %s',
                       p_key, parts.key, parts.lock_key, parts.claimed, parts.t_is_row)
           INTO key, is_free;
        IF is_free THEN
            -- Lock: the new row of the used keys, until the transaction ends. It looks before it inserts, since ON CONFLICT
            -- would wait for whoever is completing or renewing this very claim.
            EXECUTE format('INSERT INTO %s AS u (%s, %s, owner, claimed_at, leased_until)'
                           ' SELECT %s, t.%s, %L, clock_timestamp(), clock_timestamp() + %L::interval'
                           ' FROM %s AS t WHERE %s AND t.%s = %L'
                           ' AND NOT EXISTS (SELECT FROM %s AS u WHERE %s AND u.%s = t.%s)'
                           ' ON CONFLICT (%s, %s) DO NOTHING RETURNING u.epoch',
                           parts.used, parts.columns, parts.key, parts.t_columns, parts.key, p_owner, p_lease,
                           parts.claimed, parts.t_is_row, parts.key, key, parts.used, parts.t_is_u, parts.key, parts.key,
                           parts.columns, parts.key)
               INTO epoch;
            IF epoch IS NULL THEN
                -- Lock: the claim's row, FOR UPDATE, until the transaction ends; skipped where its holder is writing.
                EXECUTE format('WITH expired AS MATERIALIZED (SELECT FROM %s AS u WHERE %s AND u.%s = %L'
                               ' AND u.leased_until < clock_timestamp() AND u.completed_at IS NULL'
                               ' FOR UPDATE OF u SKIP LOCKED)'
                               ' UPDATE %s AS u SET epoch = u.epoch + 1, owner = %L, claimed_at = clock_timestamp(),'
                               ' leased_until = clock_timestamp() + %L::interval'
                               ' FROM expired WHERE %s AND u.%s = %L RETURNING u.epoch',
                               parts.used, parts.u_is_row, parts.key, key, parts.used, p_owner, p_lease,
                               parts.u_is_row, parts.key, key)
                   INTO epoch;
            END IF;
        END IF;
        IF epoch IS NOT NULL THEN
            outcome := 'claimed';
            RETURN;
        END IF;
        -- Undoes the block, and gives the advisory lock back: a loser leaves no lock behind.
        RAISE EXCEPTION USING ERRCODE = 'RL007';
    EXCEPTION WHEN SQLSTATE 'RL007' THEN
        NULL;
    END;
    -- Lock: none.
    EXECUTE format('SELECT t.%s = %L, u.owner, u.leased_until FROM %s AS t LEFT JOIN %s AS u ON %s AND u.%s = t.%s'
                   ' WHERE %s', parts.key, key, parts.claimed, parts.used, parts.t_is_u, parts.key, parts.key,
                   parts.t_is_row)
       INTO stands, owner, leased_until;
    outcome := CASE WHEN stands IS NULL THEN 'missing'
                    WHEN NOT stands THEN 'lost_completed'
                    WHEN leased_until IS NULL THEN 'lost_being_claimed'
                    ELSE 'lost_claimed' END;
    key := NULL;
    IF NOT stands THEN
        owner := NULL;
        leased_until := NULL;
    END IF;
END
$$;
COMMENT ON FUNCTION rowlock.claim IS 'Claims a row by its key, or takes an expired claim over; waits for nobody';
REVOKE ALL ON FUNCTION rowlock.claim FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rowlock.claim TO rowlock_app;

-- True: the claim is the caller's, and nobody takes it over before this transaction ends; write then, in statements of
-- their own. False: fenced.
CREATE FUNCTION rowlock.hold_claim(p_name text, p_row text[], p_key text, p_epoch bigint) RETURNS boolean
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    parts rowlock.claim_parts := rowlock.claim_parts_of(p_name, p_row);
    is_own boolean;
BEGIN
    -- Lock: the claim's row, FOR SHARE, until the transaction ends.
    EXECUTE format('SELECT true FROM %s AS u WHERE %s AND u.%s = %L AND u.epoch = %L AND u.completed_at IS NULL FOR SHARE',
                   parts.used, parts.u_is_row, parts.key, p_key, p_epoch)
       INTO is_own;
    RETURN coalesce(is_own, false);
END
$$;
COMMENT ON FUNCTION rowlock.hold_claim IS 'Is the claim still the caller''s? If so it stays so until the transaction ends';
REVOKE ALL ON FUNCTION rowlock.hold_claim FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rowlock.hold_claim TO rowlock_app;

-- The fresh key, or NULL: fenced, nothing was written. Two random UUIDs hold 244 random bits, of which 128 are kept.
CREATE FUNCTION rowlock.complete_claim(p_name text, p_row text[], p_key text, p_epoch bigint) RETURNS text
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    parts rowlock.claim_parts := rowlock.claim_parts_of(p_name, p_row);
    fresh text := left(encode(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'hex'), 32);
    completed text;
BEGIN
    -- Lock: the claim's row, then the row itself, FOR NO KEY UPDATE, until the transaction ends.
    EXECUTE format('WITH claim AS MATERIALIZED (UPDATE %s AS u SET completed_at = clock_timestamp()'
                   ' WHERE %s AND u.%s = %L AND u.epoch = %L RETURNING u.%s)'
                   ' UPDATE %s AS t SET %s = %L FROM claim WHERE %s AND t.%s = claim.%s RETURNING t.%s::text',
                   parts.used, parts.u_is_row, parts.key, p_key, p_epoch, parts.key, parts.claimed, parts.key,
                   CASE WHEN parts.is_bytea THEN '\x' ELSE '' END || fresh, parts.t_is_row, parts.key, parts.key,
                   parts.key)
       INTO completed;
    RETURN completed;
END
$$;
COMMENT ON FUNCTION rowlock.complete_claim IS 'Puts in a fresh key if the old one stands and the claim is the caller''s';
REVOKE ALL ON FUNCTION rowlock.complete_claim FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rowlock.complete_claim TO rowlock_app;

INSERT INTO rowlock.schema_version (version, name) VALUES (6, 'key_claim');
RESET ROLE;
