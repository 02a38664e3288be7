-- Staged entries: what any transaction, in any language, leaves for the sealer, and locks nothing for.
--
-- rowlock.stage inserts one row in the caller's transaction. `rowlock seal` numbers and signs staged rows later, in an
-- order that keeps the rows of one transaction together and in their order, and takes them away in the transaction that
-- puts the entries into the log. No NOTIFY: it would make the commits of the whole server wait for each other.

SET LOCAL ROLE rowlock_owner;

-- The identity's order is the order within a transaction. Across transactions it says nothing: a lower one may be
-- committed later.
CREATE TABLE rowlock.audit_staged (
    tenant_id      rowlock.tenant NOT NULL,
    transaction_id xid8           NOT NULL DEFAULT pg_current_xact_id(),
    staged_id      bigint         NOT NULL GENERATED ALWAYS AS IDENTITY (CACHE 32),
    entry_id       uuid           NOT NULL,
    staged_at      timestamptz    NOT NULL DEFAULT clock_timestamp(),
    actor          text,
    action         text,
    object         text,
    data           rowlock.json_for_jsonb,
    CONSTRAINT audit_staged_pkey PRIMARY KEY (tenant_id, transaction_id, staged_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.2);
COMMENT ON TABLE rowlock.audit_staged IS 'Entries that wait for the sealer; they have no number and no MAC yet';
COMMENT ON COLUMN rowlock.audit_staged.staged_at IS 'Becomes recorded_at of the entry: the clock when the row was staged';

-- Never empties by itself: a person looks at what stands here.
CREATE TABLE rowlock.audit_quarantined (
    tenant_id      rowlock.tenant NOT NULL,
    staged_id      bigint         NOT NULL,
    transaction_id xid8           NOT NULL,
    entry_id       uuid           NOT NULL,
    staged_at      timestamptz    NOT NULL,
    actor          text,
    action         text,
    object         text,
    data           rowlock.json_for_jsonb,
    reason         text           NOT NULL,
    quarantined_at timestamptz    NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT audit_quarantined_pkey PRIMARY KEY (tenant_id, staged_id)
);
COMMENT ON TABLE rowlock.audit_quarantined IS
    'Staged entries that can''t be sealed: their entry_id stands in the log with other content';

-- The functions that stage run as rowlock_owner, for the tenant that they have checked; nobody else may insert.
ALTER TABLE rowlock.audit_staged ENABLE ROW LEVEL SECURITY;
ALTER TABLE rowlock.audit_staged FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON rowlock.audit_staged
    USING (tenant_id = NULLIF(current_setting('rowlock.tenant', true), ''))
    WITH CHECK (tenant_id = NULLIF(current_setting('rowlock.tenant', true), ''));
CREATE POLICY read_all ON rowlock.audit_staged FOR SELECT TO rowlock_auditor, rowlock_sealer, rowlock_backup
    USING (true);
CREATE POLICY stage_any ON rowlock.audit_staged FOR INSERT TO rowlock_owner WITH CHECK (true);

ALTER TABLE rowlock.audit_quarantined ENABLE ROW LEVEL SECURITY;
ALTER TABLE rowlock.audit_quarantined FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON rowlock.audit_quarantined
    USING (tenant_id = NULLIF(current_setting('rowlock.tenant', true), ''))
    WITH CHECK (tenant_id = NULLIF(current_setting('rowlock.tenant', true), ''));
CREATE POLICY read_all ON rowlock.audit_quarantined FOR SELECT TO rowlock_auditor, rowlock_sealer, rowlock_backup
    USING (true);

-- Stages one entry for the transaction's tenant, and returns its id. Locks: none beyond ROW EXCLUSIVE on audit_staged.
-- The same p_entry_id twice: sealed once if the content is the same, else the later one is quarantined.
CREATE FUNCTION rowlock.stage(
    p_tenant text, p_action text, p_object text DEFAULT NULL, p_data json DEFAULT NULL, p_actor text DEFAULT NULL,
    p_entry_id uuid DEFAULT NULL) RETURNS uuid
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    -- Time-ordered (version 7, RFC 9562): milliseconds since 1970, then random bits. In place and not a function of its
    -- own, which would cost as much again as the whole insert.
    id uuid := coalesce(p_entry_id, (lpad(to_hex((date_part('epoch', clock_timestamp()) * 1000)::bigint), 12, '0')
                                     || '-7' || substr(gen_random_uuid()::text, 16))::uuid);
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
COMMENT ON FUNCTION rowlock.stage IS
    'Leaves one entry for the sealer, in the caller''s transaction; locks nothing that another writer needs';
REVOKE ALL ON FUNCTION rowlock.stage FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rowlock.stage TO rowlock_app, rowlock_sealer;

-- Takes the next staged rows of a tenant away, in the order of the primary key: up to a number of them, and up to the row
-- that reaches a number of bytes; those of one transaction alone if p_transaction names it. The answer is in no order.
-- For the sealer, which holds the tenant's head: nobody else deletes here. Locks: the rows that it takes.
-- The settings pin the plan. Statistics of a table that fills and empties all the time are always wrong, and by them the
-- server would read and sort everything that waits, for each batch anew. By ctid, since rows are never updated.
CREATE FUNCTION rowlock.take_staged(
    p_tenant text, p_entries_max bigint, p_bytes_max bigint, p_transaction xid8 DEFAULT NULL)
    RETURNS TABLE (transaction_id xid8, staged_id bigint, entry_id uuid, staged_us bigint, actor text, action text,
                   object text, data json)
    LANGUAGE sql VOLATILE
    SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET enable_sort = off
AS $$
    DELETE FROM rowlock.audit_staged AS staged
     WHERE staged.tenant_id = p_tenant
       AND staged.ctid = ANY (ARRAY(
           SELECT place
             FROM (SELECT place, sum(bytes) OVER (ORDER BY transaction_id, staged_id) - bytes AS bytes_before
                     FROM (SELECT ctid AS place, transaction_id, staged_id,
                                  coalesce(octet_length(data::text), 0) AS bytes
                             FROM rowlock.audit_staged
                            WHERE tenant_id = p_tenant
                              AND transaction_id >= coalesce(p_transaction, '0'::xid8)
                              AND transaction_id <= coalesce(p_transaction, '18446744073709551615'::xid8)
                            ORDER BY transaction_id, staged_id
                            LIMIT p_entries_max) AS next) AS counted
            WHERE bytes_before < p_bytes_max))
    RETURNING transaction_id, staged_id, entry_id, (extract(epoch FROM staged_at) * 1000000)::bigint, actor, action,
              object, data::json
$$;
COMMENT ON FUNCTION rowlock.take_staged IS 'Takes the next staged rows of a tenant away, for the sealer';
REVOKE ALL ON FUNCTION rowlock.take_staged FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rowlock.take_staged TO rowlock_sealer;

GRANT SELECT ON rowlock.audit_staged, rowlock.audit_quarantined TO rowlock_app, rowlock_auditor, rowlock_backup;
GRANT SELECT, DELETE ON rowlock.audit_staged TO rowlock_sealer;
GRANT SELECT, INSERT ON rowlock.audit_quarantined TO rowlock_sealer;

INSERT INTO rowlock.schema_version (version, name) VALUES (7, 'staging');
RESET ROLE;
