-- Dropping retired entries without looking for the entry that retires them.
--
-- drop_retired_entries is run once for each batch, and looked through the tenant's whole log for a fitting entry each time,
-- since the log has no index by action. It is told the number of that entry now, and reads the rest from there.

SET LOCAL ROLE rowlock_owner;

DROP FUNCTION rowlock.drop_retired_entries(text, bigint, bigint);

-- Drops at most p_entries_max entries of the prefix that entry p_retired_by retires, oldest first, and returns how many.
-- Throws RL009 unless that entry retires a prefix that ends before it. Run it until it returns 0: each run is a
-- transaction of its own length, and none holds the tenant's state row.
-- The setting pins the plan. A tenant that is most of the log, or one that statistics don't know yet, would else have the
-- server read all tenants' entries for each batch.
CREATE FUNCTION rowlock.drop_retired_entries(p_tenant text, p_retired_by bigint, p_entries_max bigint) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off
AS $$
DECLARE
    through     bigint;
    through_mac text;
    first_seq   bigint;
    dropped     bigint;
BEGIN
    IF (p_tenant = NULLIF(current_setting('rowlock.tenant', true), '')) IS NOT TRUE THEN
        PERFORM rowlock.refuse_tenant(p_tenant);
    END IF;
    -- Lock: none. The pattern: an application may append such an entry with anything in it.
    SELECT CASE WHEN data->>'through' ~ '^[0-9]{1,18}$' THEN data->>'through' END::bigint, data->>'mac'
      INTO through, through_mac
      FROM rowlock.audit_log
     WHERE tenant_id = p_tenant AND seq = p_retired_by AND action = 'rowlock.retirement';
    -- Lock: none.
    SELECT min(seq) INTO first_seq FROM rowlock.audit_log WHERE tenant_id = p_tenant;
    IF first_seq > through AND through < p_retired_by THEN
        RETURN 0;
    END IF;
    -- Lock: none. The last entry of the prefix goes last, so the comparison with its MAC holds until the end.
    PERFORM FROM rowlock.audit_log
      WHERE tenant_id = p_tenant AND seq = through AND seq < p_retired_by AND encode(mac, 'hex') = through_mac;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'entry % of tenant % retires no entries', coalesce(p_retired_by::text, 'NULL'),
                        quote_literal(p_tenant)
            USING ERRCODE = 'RL009', HINT = 'rowlock retire-entries appends an entry that does, and then drops them.';
    END IF;
    -- An error undoes the setting with everything else.
    PERFORM set_config('rowlock.retiring', 'yes', true);
    -- Lock: the dropped rows, FOR UPDATE, until the transaction ends. Nobody else locks rows of the log.
    DELETE FROM rowlock.audit_log
     WHERE tenant_id = p_tenant AND seq <= least(through, first_seq - 1 + p_entries_max);
    GET DIAGNOSTICS dropped = ROW_COUNT;
    PERFORM set_config('rowlock.retiring', '', true);
    RETURN dropped;
END
$$;
COMMENT ON FUNCTION rowlock.drop_retired_entries IS
    'Drops the oldest entries that an entry of the log retires, for the transaction''s tenant; for rowlock_owner alone';
REVOKE ALL ON FUNCTION rowlock.drop_retired_entries FROM PUBLIC;

INSERT INTO rowlock.schema_version (version, name) VALUES (10, 'retirement_by_seq');
RESET ROLE;
