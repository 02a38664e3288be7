-- The audit log and the state row that each tenant's chain hangs from.
--
-- Who writes: nobody directly. Entries go in through rowlock.append_entry and rowlock.append_entries (next file), which
-- run as rowlock_owner. The app may lock its own state row, and read.
--
-- The tenant is the setting rowlock.tenant, made for one transaction with set_config('rowlock.tenant', …, true). After
-- such a transaction the setting is '' and not NULL, hence the NULLIF: '' counts as no tenant, and no tenant sees nothing.

SET LOCAL ROLE rowlock_owner;

-- One state row per tenant, locked FOR UPDATE by whoever appends. A row of its own and not the tenant's business row:
-- foreign keys to a locked business row would queue behind every append.
-- fillfactor 50 and no second index: the row is rewritten by each append, in its own page (a HOT update).
CREATE TABLE rowlock.tenant_seq (
    tenant_id  rowlock.tenant NOT NULL CONSTRAINT tenant_seq_pkey PRIMARY KEY,
    last_seq   bigint NOT NULL DEFAULT 0,
    -- Both NULL before the first entry, and never after it: only the append functions write here.
    head_mac   rowlock.mac,
    key_id     rowlock.key_name,
    -- Always NULL. The server asks for UPDATE on some column before it gives SELECT … FOR UPDATE; this is the column that
    -- the app may "update", so that it can lock the row and change nothing.
    lock_dummy rowlock.always_null
) WITH (fillfactor = 50);
COMMENT ON TABLE rowlock.tenant_seq IS 'The end of each tenant''s chain; its row is locked by whoever appends';
COMMENT ON COLUMN rowlock.tenant_seq.key_id IS 'The key that the next entry must be signed with; NULL before the first';

-- No third index: a unique prev_mac cost two thirds of the rate; the functions stop forks.
CREATE TABLE rowlock.audit_log (
    tenant_id   rowlock.tenant   NOT NULL,
    seq         bigint           NOT NULL,
    entry_id    uuid             NOT NULL,
    recorded_at timestamptz      NOT NULL,
    actor       text,
    action      text,
    object      text,
    data        rowlock.json_for_jsonb,
    format      smallint         NOT NULL DEFAULT 1,
    key_id      rowlock.key_name NOT NULL,
    prev_mac    rowlock.mac      NOT NULL,
    mac         rowlock.mac      NOT NULL,
    CONSTRAINT audit_log_pkey PRIMARY KEY (tenant_id, seq),
    CONSTRAINT audit_log_entry_id_key UNIQUE (tenant_id, entry_id)
) /* PARTITION BY HASH (tenant_id) if partitions are asked for */;
COMMENT ON TABLE rowlock.audit_log IS 'Entries 1, 2, 3 … per tenant, each with a MAC over its columns and the MAC before it';
COMMENT ON COLUMN rowlock.audit_log.recorded_at IS
    'Signed as microseconds since 1970: (extract(epoch FROM recorded_at) * 1000000)::bigint is exact';

-- security_invoker: the reader's own row-level security applies. Without it the view would show all tenants, or none.
CREATE VIEW rowlock.audit_entries WITH (security_invoker = true) AS
    SELECT tenant_id, seq, entry_id, recorded_at, actor, action, object, data::jsonb AS data, format, key_id, prev_mac, mac
      FROM rowlock.audit_log;
COMMENT ON VIEW rowlock.audit_entries IS 'audit_log with data as jsonb, for queries that look into it';

-- Only one's own tenant, for everybody; FORCE includes the owner, and so the functions that run as the owner.
ALTER TABLE rowlock.tenant_seq ENABLE ROW LEVEL SECURITY;
ALTER TABLE rowlock.tenant_seq FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON rowlock.tenant_seq
    USING (tenant_id = NULLIF(current_setting('rowlock.tenant', true), ''))
    WITH CHECK (tenant_id = NULLIF(current_setting('rowlock.tenant', true), ''));
CREATE POLICY read_all ON rowlock.tenant_seq FOR SELECT TO rowlock_auditor, rowlock_sealer, rowlock_backup
    USING (true);

ALTER TABLE rowlock.audit_log ENABLE ROW LEVEL SECURITY;
ALTER TABLE rowlock.audit_log FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON rowlock.audit_log
    USING (tenant_id = NULLIF(current_setting('rowlock.tenant', true), ''))
    WITH CHECK (tenant_id = NULLIF(current_setting('rowlock.tenant', true), ''));
CREATE POLICY read_all ON rowlock.audit_log FOR SELECT TO rowlock_auditor, rowlock_sealer, rowlock_backup
    USING (true);

-- What was written stays, also for the owner. For each statement and not for each row: TRUNCATE passes row triggers, and
-- so does a statement that happens to hit nothing, which should be told all the same.
CREATE FUNCTION rowlock.refuse_change() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION '% on %.% is refused', TG_OP, TG_TABLE_SCHEMA, TG_TABLE_NAME
        USING ERRCODE = 'RL002',
              DETAIL = 'The log only grows: a changed or removed row would break its tenant''s chain of MACs.',
              HINT = 'To correct an entry, append another that says so. To give up the whole ledger, uninstall the schema.';
END
$$;
REVOKE ALL ON FUNCTION rowlock.refuse_change() FROM PUBLIC;

CREATE TRIGGER only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON rowlock.audit_log
    FOR EACH STATEMENT EXECUTE FUNCTION rowlock.refuse_change();
CREATE TRIGGER stays BEFORE DELETE OR TRUNCATE ON rowlock.tenant_seq
    FOR EACH STATEMENT EXECUTE FUNCTION rowlock.refuse_change();
CREATE TRIGGER stays BEFORE UPDATE OR DELETE OR TRUNCATE ON rowlock.ledger
    FOR EACH STATEMENT EXECUTE FUNCTION rowlock.refuse_change();
-- ALWAYS: also where session_replication_role = replica turns ordinary triggers off.
ALTER TABLE rowlock.audit_log ENABLE ALWAYS TRIGGER only_grows;
ALTER TABLE rowlock.tenant_seq ENABLE ALWAYS TRIGGER stays;
ALTER TABLE rowlock.ledger ENABLE ALWAYS TRIGGER stays;

-- The app makes and locks its state row, and reads. By column, since UPDATE on a whole table is also the right to LOCK it
-- against everybody, and UPDATE of last_seq the right to wedge a tenant for good.
GRANT SELECT, INSERT (tenant_id), UPDATE (lock_dummy) ON rowlock.tenant_seq TO rowlock_app;
GRANT SELECT ON rowlock.audit_log, rowlock.audit_entries TO rowlock_app;

GRANT SELECT ON rowlock.tenant_seq, rowlock.audit_log, rowlock.audit_entries TO rowlock_auditor, rowlock_backup;

-- The sealer writes batches itself (COPY, or INSERT where it lacks BYPASSRLS) and moves the heads that it holds locked.
GRANT SELECT, INSERT (tenant_id), UPDATE (last_seq, head_mac, key_id, lock_dummy) ON rowlock.tenant_seq
    TO rowlock_sealer;
GRANT SELECT, INSERT ON rowlock.audit_log TO rowlock_sealer;
GRANT SELECT ON rowlock.audit_entries TO rowlock_sealer;

INSERT INTO rowlock.schema_version (version, name) VALUES (2, 'audit_log');
RESET ROLE;
