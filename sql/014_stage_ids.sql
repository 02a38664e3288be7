-- Ids of staged entries from the server's own generator of random numbers.
--
-- gen_random_uuid asks OpenSSL each time, which took a tenth of the rate of short transactions that stage. An entry's id is
-- no secret: it has to be unique in its tenant. random() is seeded for each session by the system; where a session
-- seeds it itself, the microsecond keeps its ids apart. Two that meet all the same are told, and quarantined, not lost.

SET LOCAL ROLE rowlock_owner;

-- Stages one entry for the transaction's tenant, and returns its id. Locks: none beyond ROW EXCLUSIVE on audit_staged.
-- The same p_entry_id twice: sealed once if the content is the same, else the later one is quarantined.
CREATE OR REPLACE FUNCTION rowlock.stage(
    p_tenant text, p_action text, p_object text DEFAULT NULL, p_data json DEFAULT NULL, p_actor text DEFAULT NULL,
    p_entry_id uuid DEFAULT NULL) RETURNS uuid
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    us bigint := (date_part('epoch', clock_timestamp()) * 1000000)::bigint;
    -- Version 7 of RFC 9562: 48 bits of milliseconds, 12 of the fraction, then random bits. In place and not a function of
    -- its own, which would cost as much again as the whole insert.
    id uuid := coalesce(p_entry_id, (lpad(to_hex(us / 1000), 12, '0')
                                     || '7' || lpad(to_hex(us % 1000 * 4096 / 1000), 3, '0')
                                     || '8' || lpad(to_hex((random() * 268435455)::bigint), 7, '0')
                                     || lpad(to_hex((random() * 4294967295)::bigint), 8, '0'))::uuid);
BEGIN
    IF (p_tenant = NULLIF(current_setting('rowlock.tenant', true), '')) IS NOT TRUE THEN
        PERFORM rowlock.refuse_tenant(p_tenant);
    END IF;
    IF starts_with(p_action, 'rowlock.') THEN
        RAISE EXCEPTION 'action % begins with "rowlock.", which is the log''s own', quote_literal(p_action)
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO rowlock.audit_staged (tenant_id, entry_id, actor, action, object, data)
    VALUES (p_tenant, id, p_actor, p_action, p_object, p_data);
    RETURN id;
END
$$;

INSERT INTO rowlock.schema_version (version, name) VALUES (14, 'stage_ids');
RESET ROLE;
