-- Retention: dropping the oldest entries of a tenant, once the log itself says so.
--
-- An entry with action rowlock.retirement names, in its data, the last entry of a prefix and that entry's MAC. Only what
-- such an entry names can be dropped, and only by the function below, which only rowlock_owner may call. The server
-- can't check the retirement's own MAC, having no key; rowlock verify does, and takes a prefix for retired only if the
-- entry is authentic and what remains follows it.

SET LOCAL ROLE rowlock_owner;

-- What only_grows calls from here on. rowlock.retiring is set by drop_retired_entries around its one DELETE; a session
-- that sets it by hand and is not the owner gets no further than before.
CREATE FUNCTION rowlock.refuse_change_of_log() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('rowlock.retiring', true) = 'yes' AND current_user = 'rowlock_owner' THEN
        RETURN NULL;
    END IF;
    RAISE EXCEPTION '% on %.% is refused', TG_OP, TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'RL002',
              DETAIL = 'The log only grows: a changed or removed row would break its tenant''s chain of MACs.',
              HINT = 'To correct an entry, append another that says so. To drop old ones, rowlock retire-entries.';
END
$$;
REVOKE ALL ON FUNCTION rowlock.refuse_change_of_log() FROM PUBLIC;

CREATE OR REPLACE TRIGGER only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON rowlock.audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION rowlock.refuse_change_of_log();
ALTER TABLE rowlock.audit_log ENABLE ALWAYS TRIGGER only_grows;

-- Drops at most p_entries_max entries of the prefix that ends in p_through, oldest first, and returns how many.
-- Throws RL009 unless an entry behind the prefix retires exactly this prefix. Run it until it returns 0: each run is a
-- transaction of its own length, and none holds the tenant's state row.
CREATE FUNCTION rowlock.drop_retired_entries(p_tenant text, p_through bigint, p_entries_max bigint) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    first_seq bigint;
    dropped   bigint;
BEGIN
    IF (p_tenant = NULLIF(current_setting('rowlock.tenant', true), '')) IS NOT TRUE THEN
        PERFORM rowlock.refuse_tenant(p_tenant);
    END IF;
    -- Lock: none. The last entry of the prefix goes last, so the comparison with its MAC holds until the end.
    SELECT min(seq) INTO first_seq FROM rowlock.audit_log WHERE tenant_id = p_tenant;
    IF first_seq IS NULL OR first_seq > p_through THEN
        RETURN 0;
    END IF;
    -- Lock: none.
    PERFORM FROM rowlock.audit_log AS retirement
       JOIN rowlock.audit_log AS last ON last.tenant_id = p_tenant AND last.seq = p_through
      WHERE retirement.tenant_id = p_tenant
        AND retirement.seq > p_through
        AND retirement.action = 'rowlock.retirement'
        AND retirement.data->>'through' = p_through::text
        AND retirement.data->>'mac' = encode(last.mac, 'hex');
    IF NOT FOUND THEN
        RAISE EXCEPTION 'no entry retires the entries up to % of tenant %', p_through, quote_literal(p_tenant)
            USING ERRCODE = 'RL009', HINT = 'rowlock retire-entries appends one, and then drops them.';
    END IF;
    -- An error undoes the setting with everything else.
    PERFORM set_config('rowlock.retiring', 'yes', true);
    -- Lock: the dropped rows, FOR UPDATE, until the transaction ends. Nobody else locks rows of the log.
    DELETE FROM rowlock.audit_log
     WHERE tenant_id = p_tenant AND seq <= least(p_through, first_seq - 1 + p_entries_max);
    GET DIAGNOSTICS dropped = ROW_COUNT;
    PERFORM set_config('rowlock.retiring', '', true);
    RETURN dropped;
END
$$;
COMMENT ON FUNCTION rowlock.drop_retired_entries IS
    'Drops the oldest entries of the transaction''s tenant that an entry of the log retires; for rowlock_owner alone';
REVOKE ALL ON FUNCTION rowlock.drop_retired_entries FROM PUBLIC;

-- pg_dump reads the last value of every sequence.
GRANT SELECT ON SEQUENCE rowlock.audit_staged_staged_id_seq TO rowlock_backup;

INSERT INTO rowlock.schema_version (version, name) VALUES (9, 'retention');
RESET ROLE;
