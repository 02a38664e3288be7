-- Totals with a cap over many rows of the user's own (seats, stock, coupons, confirmed children of all parents): one row
-- for each, which every writer of that total changes.
--
-- From SQL:
--     BEGIN;
--     SELECT set_config('rowlock.tenant', 'acme', true);
--     SELECT rowlock.reserve('acme', 'seats', 1);      -- true: go on and insert; false: full
--     INSERT INTO seat …;
--     COMMIT;
-- A rollback gives the amount back. Until then the next writer of this quota waits: reserve late.

SET LOCAL ROLE rowlock_owner;

-- fillfactor 50 and no second index: the row is rewritten by each reservation, in its own page (a HOT update).
-- No CHECK that used is at most cap: a cap may be lowered below what is used; then nothing new fits until enough is
-- released.
CREATE TABLE rowlock.quota (
    tenant_id  rowlock.tenant NOT NULL,
    name       text COLLATE "C" NOT NULL
               CONSTRAINT quota_name_length CHECK (octet_length(name) BETWEEN 1 AND 200),
    used       bigint NOT NULL DEFAULT 0 CONSTRAINT quota_used_range CHECK (used >= 0),
    cap        bigint NOT NULL CONSTRAINT quota_cap_range CHECK (cap >= 0),
    CONSTRAINT quota_pkey PRIMARY KEY (tenant_id, name)
) WITH (fillfactor = 50);
COMMENT ON TABLE rowlock.quota IS 'What is used of each quota, and its cap; the row is locked by whoever reserves or releases';

ALTER TABLE rowlock.quota ENABLE ROW LEVEL SECURITY;
ALTER TABLE rowlock.quota FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON rowlock.quota
    USING (tenant_id = NULLIF(current_setting('rowlock.tenant', true), ''))
    WITH CHECK (tenant_id = NULLIF(current_setting('rowlock.tenant', true), ''));
CREATE POLICY read_all ON rowlock.quota FOR SELECT TO rowlock_auditor, rowlock_backup
    USING (true);

-- The app changes what is used and the cap by statements of its own, each of which is conditional: no function stands
-- between, so a race of the same statements can be explored. By column, since UPDATE on a whole table is also the right to
-- LOCK it against everybody. DELETE is the owner's.
GRANT SELECT, INSERT (tenant_id, name, cap), UPDATE (used, cap) ON rowlock.quota TO rowlock_app;
GRANT SELECT ON rowlock.quota TO rowlock_auditor, rowlock_backup;

-- The second part of an advisory key: the first four bytes of the text's SHA-256, as a signed number with the highest byte
-- first. Any language can compute it.
CREATE FUNCTION rowlock.advisory_key(p_text text) RETURNS int
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    SET search_path = pg_catalog, pg_temp
AS $$
    SELECT ('x' || left(encode(sha256(convert_to(p_text, 'UTF8')), 'hex'), 8))::bit(32)::int
$$;
COMMENT ON FUNCTION rowlock.advisory_key IS
    'Which 32 bits stand for a text in a two-part advisory key: the first four bytes of its SHA-256';
REVOKE ALL ON FUNCTION rowlock.advisory_key FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rowlock.advisory_key TO rowlock_app;

-- True: reserved, and the row is locked until the transaction ends. False: it does not fit. A quota that does not exist is
-- an error here (RL005), since SQL has no third answer that nobody would take for one of the two.
CREATE FUNCTION rowlock.reserve(p_tenant text, p_name text, p_amount bigint DEFAULT 1) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF (p_tenant = NULLIF(current_setting('rowlock.tenant', true), '')) IS NOT TRUE THEN
        PERFORM rowlock.refuse_tenant(p_tenant);
    END IF;
    IF (p_amount >= 1) IS NOT TRUE THEN
        RAISE EXCEPTION 'an amount to reserve is 1 or more, not %', coalesce(p_amount::text, 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- Lock: the quota's row, FOR NO KEY UPDATE, until the transaction ends. Read again after a wait.
    UPDATE rowlock.quota SET used = used + p_amount
     WHERE tenant_id = p_tenant AND name = p_name AND used <= cap - p_amount;
    IF FOUND THEN
        RETURN true;
    END IF;
    -- Lock: none.
    IF NOT EXISTS (SELECT FROM rowlock.quota WHERE tenant_id = p_tenant AND name = p_name) THEN
        RAISE EXCEPTION 'tenant % has no quota %', quote_literal(p_tenant), coalesce(quote_literal(p_name), 'NULL')
            USING ERRCODE = 'RL005',
                  HINT = 'INSERT INTO rowlock.quota (tenant_id, name, cap) VALUES (…)';
    END IF;
    RETURN false;
END
$$;
COMMENT ON FUNCTION rowlock.reserve IS
    'Takes an amount of the transaction''s tenant''s quota if it fits under the cap; the row stays locked until COMMIT';
REVOKE ALL ON FUNCTION rowlock.reserve FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rowlock.reserve TO rowlock_app;

-- True: given back. False: less than that is used, so nothing was changed; a recount tells what is true.
CREATE FUNCTION rowlock.release(p_tenant text, p_name text, p_amount bigint DEFAULT 1) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF (p_tenant = NULLIF(current_setting('rowlock.tenant', true), '')) IS NOT TRUE THEN
        PERFORM rowlock.refuse_tenant(p_tenant);
    END IF;
    IF (p_amount >= 1) IS NOT TRUE THEN
        RAISE EXCEPTION 'an amount to release is 1 or more, not %', coalesce(p_amount::text, 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- Lock: the quota's row, FOR NO KEY UPDATE, until the transaction ends.
    UPDATE rowlock.quota SET used = used - p_amount
     WHERE tenant_id = p_tenant AND name = p_name AND used >= p_amount;
    RETURN FOUND;
END
$$;
COMMENT ON FUNCTION rowlock.release IS 'Gives an amount of a quota back';
REVOKE ALL ON FUNCTION rowlock.release FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rowlock.release TO rowlock_app;

INSERT INTO rowlock.schema_version (version, name) VALUES (5, 'quota');
RESET ROLE;
