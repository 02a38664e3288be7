-- The schema spread over the servers of a Citus cluster, by tenant: what `rowlock schema install --distributed` runs behind
-- the migrations, in their transaction, on the coordinator, as a superuser. No migration: another layout of the same tables.
--
-- Citus refuses triggers and grants by column on a distributed table. So
--   - what a trigger refuses elsewhere (RL002), missing privileges refuse here (42501), also to rowlock_owner; a superuser is
--     not refused, and what he changes is found by `rowlock verify`;
--   - the tenant's state row is locked through rowlock.lock_head, and not by the application's own SELECT … FOR UPDATE;
--   - change capture (rowlock.track) can't be had.
-- Every function that has a tenant runs as a whole on the server that has the tenant (force_delegation). A setting reaches
-- that server only by SET LOCAL, never by set_config(): from SQL, SELECT rowlock.tell_nodes('acme', '5s').

-- Off for the migrations: what they make is sent on below, with the tables that need it.
SET LOCAL citus.enable_ddl_propagation = on;
-- One connection for each server, so that it sees the roles and types that this transaction has just made there.
SET LOCAL citus.multi_shard_modify_mode = 'sequential';
-- The rows that are there already stay in the local table, out of sight; there are two, and the notice frightens.
SET LOCAL client_min_messages = warning;

-- Citus connects to the other servers as the role that runs the statement. They have no password: let them in from the
-- cluster's own servers in pg_hba.conf, and from nowhere else.
--
-- Only rowlock_retirer may delete from the log, only drop_retired_entries runs as it, and nobody is a member of it.
-- Roles are the whole server's: to lose a race with another database's installer is as good as to win it (001_roles.sql).
DO $roles$
DECLARE
    role_name text;
BEGIN
    FOREACH role_name IN ARRAY ARRAY['rowlock_owner', 'rowlock_app', 'rowlock_auditor', 'rowlock_sealer',
                                     'rowlock_backup'] LOOP
        CONTINUE WHEN EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = role_name AND rolcanlogin);
        BEGIN
            EXECUTE format('ALTER ROLE %I LOGIN', role_name);
        EXCEPTION WHEN internal_error THEN
            NULL;  -- "tuple concurrently updated"
        END;
    END LOOP;
    IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'rowlock_retirer') THEN
        BEGIN
            CREATE ROLE rowlock_retirer NOLOGIN;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;
        END;
    END IF;
END
$roles$;

DO $undo$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT tgname, tgrelid::regclass AS name FROM pg_catalog.pg_trigger AS t
                 JOIN pg_catalog.pg_class AS c ON c.oid = t.tgrelid
                WHERE c.relnamespace = 'rowlock'::regnamespace AND NOT t.tgisinternal LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', one.tgname, one.name);
    END LOOP;
END
$undo$;

-- The tenant as text: Citus finds the server of a parameter only where the column has the parameter's own type, not a domain
-- over it. Policies and the view name the column, so they are made anew around the change.
DROP VIEW rowlock.audit_entries;
DO $text$
DECLARE
    one record;
BEGIN
    CREATE TEMPORARY TABLE rowlock_policies ON COMMIT DROP AS
        SELECT tablename, policyname, cmd, roles, qual, with_check FROM pg_catalog.pg_policies WHERE schemaname = 'rowlock';
    FOR one IN SELECT * FROM rowlock_policies LOOP
        EXECUTE format('DROP POLICY %I ON rowlock.%I', one.policyname, one.tablename);
    END LOOP;
    FOR one IN SELECT DISTINCT tablename FROM rowlock_policies LOOP
        EXECUTE format('ALTER TABLE rowlock.%1$I ALTER COLUMN tenant_id TYPE text COLLATE "C",'
                       ' ADD CONSTRAINT tenant_length CHECK (octet_length(tenant_id) BETWEEN 1 AND 256)', one.tablename);
    END LOOP;
    FOR one IN SELECT * FROM rowlock_policies LOOP
        EXECUTE format('CREATE POLICY %I ON rowlock.%I FOR %s TO %s%s%s', one.policyname, one.tablename, one.cmd,
                       (SELECT string_agg(CASE role WHEN 'public' THEN 'PUBLIC' ELSE quote_ident(role) END, ', ')
                          FROM unnest(one.roles) AS role),
                       ' USING (' || one.qual || ')', ' WITH CHECK (' || one.with_check || ')');
    END LOOP;
END
$text$;

-- In place of grants by column, which Citus would leave out in silence. The state row is locked through lock_head, below. The cost
-- for quota: an application may LOCK this table, against all tenants.
REVOKE ALL ON rowlock.tenant_seq FROM rowlock_app, rowlock_sealer;
GRANT SELECT ON rowlock.tenant_seq TO rowlock_app, rowlock_sealer;
REVOKE ALL ON rowlock.quota FROM rowlock_app;
GRANT SELECT, INSERT, UPDATE ON rowlock.quota TO rowlock_app;

SELECT create_distributed_table('rowlock.tenant_seq', 'tenant_id', colocate_with => 'none');
SELECT create_distributed_table('rowlock.audit_log', 'tenant_id', colocate_with => 'rowlock.tenant_seq');
SELECT create_distributed_table('rowlock.audit_staged', 'tenant_id', colocate_with => 'rowlock.tenant_seq');
SELECT create_distributed_table('rowlock.audit_quarantined', 'tenant_id', colocate_with => 'rowlock.tenant_seq');
SELECT create_distributed_table('rowlock.sequence_counter', 'tenant_id', colocate_with => 'rowlock.tenant_seq');
SELECT create_distributed_table('rowlock.quota', 'tenant_id', colocate_with => 'rowlock.tenant_seq');
-- Copies on every server; claimed_table and tracked_table stay on the coordinator alone.
SELECT create_reference_table('rowlock.ledger');
SELECT create_reference_table('rowlock.schema_version');

CREATE VIEW rowlock.audit_entries WITH (security_invoker = true) AS
    SELECT tenant_id, seq, entry_id, recorded_at, actor, action, object, data::jsonb AS data, format, key_id, prev_mac, mac
      FROM rowlock.audit_log;
ALTER VIEW rowlock.audit_entries OWNER TO rowlock_owner;
COMMENT ON VIEW rowlock.audit_entries IS 'audit_log with data as jsonb, for queries that look into it';
GRANT SELECT ON rowlock.audit_entries TO rowlock_app, rowlock_auditor, rowlock_backup, rowlock_sealer;

GRANT SELECT, DELETE ON rowlock.audit_log TO rowlock_retirer;
GRANT EXECUTE ON FUNCTION rowlock.refuse_tenant(text) TO rowlock_retirer;
ALTER FUNCTION rowlock.drop_retired_entries(text, bigint, bigint) OWNER TO rowlock_retirer;
GRANT EXECUTE ON FUNCTION rowlock.drop_retired_entries(text, bigint, bigint) TO rowlock_owner;

-- What C++ does by SELECT … FOR UPDATE and INSERT … ON CONFLICT elsewhere, for the same callers.
CREATE FUNCTION rowlock.lock_head(p_tenant text, p_make boolean, p_skip_locked boolean,
                                  OUT last_seq bigint, OUT head_mac bytea, OUT key_id text) RETURNS SETOF record
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF (p_tenant = NULLIF(current_setting('rowlock.tenant', true), '')) IS NOT TRUE THEN
        PERFORM rowlock.refuse_tenant(p_tenant);
    END IF;
    IF p_make THEN
        -- Lock: the new row; waits for another transaction that is making the same one.
        INSERT INTO rowlock.tenant_seq (tenant_id) VALUES (p_tenant) ON CONFLICT DO NOTHING;
    END IF;
    -- Lock: the tenant's row of tenant_seq, FOR UPDATE, until the transaction ends.
    IF p_skip_locked THEN
        RETURN QUERY SELECT s.last_seq, s.head_mac::bytea, s.key_id::text
                       FROM rowlock.tenant_seq AS s WHERE s.tenant_id = p_tenant FOR UPDATE SKIP LOCKED;
    ELSE
        RETURN QUERY SELECT s.last_seq, s.head_mac::bytea, s.key_id::text
                       FROM rowlock.tenant_seq AS s WHERE s.tenant_id = p_tenant FOR UPDATE;
    END IF;
END
$$;
COMMENT ON FUNCTION rowlock.lock_head IS 'Locks the end of a tenant''s chain and gives it back; makes it first, if asked';

-- The tenant and the limit of each wait for a lock, for this transaction, here and on the servers that it reaches.
CREATE FUNCTION rowlock.tell_nodes(p_tenant text, p_lock_timeout text) RETURNS void
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    EXECUTE format('SET LOCAL rowlock.tenant = %L', p_tenant);
    EXECUTE format('SET LOCAL lock_timeout = %L', p_lock_timeout);
END
$$;
COMMENT ON FUNCTION rowlock.tell_nodes IS 'Sets the tenant and lock_timeout until the transaction ends, on every server';

-- The same as in 003_append.sql but for the hint: set_config() would not be seen by the server that asks.
CREATE OR REPLACE FUNCTION rowlock.refuse_tenant(p_tenant text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'tenant % is not the tenant of this transaction', coalesce(quote_literal(p_tenant), 'NULL')
        USING ERRCODE = 'insufficient_privilege',
              DETAIL = format('rowlock.tenant is %s.', coalesce(
                  quote_literal(NULLIF(current_setting('rowlock.tenant', true), '')), 'not set on this server')),
              HINT = 'In the same transaction, first: SELECT rowlock.tell_nodes(''…'', ''5s'')';
END
$$;

-- The same statement as in 007_staging.sql, where the reasons stand. Citus plans none with parameters in an SQL function, and
-- lets RETURNING call nothing that is not immutable.
CREATE OR REPLACE FUNCTION rowlock.take_staged(
    p_tenant text, p_entries_max bigint, p_bytes_max bigint, p_transaction xid8 DEFAULT NULL)
    RETURNS TABLE (transaction_id xid8, staged_id bigint, entry_id uuid, staged_us bigint, actor text, action text,
                   object text, data json)
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
    SET enable_seqscan = off
    SET enable_bitmapscan = off
    SET enable_sort = off
AS $$
#variable_conflict use_column
DECLARE
    p_staged_at timestamptz;
BEGIN
    FOR transaction_id, staged_id, entry_id, p_staged_at, actor, action, object, data IN
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
        RETURNING transaction_id, staged_id, entry_id, staged_at, actor, action, object, data LOOP
        staged_us := (extract(epoch FROM p_staged_at) * 1000000)::bigint;
        RETURN NEXT;
    END LOOP;
END
$$;

-- The same as in 005_quota.sql. Citus must see the tenant in each statement of a function that it runs elsewhere, and does not
-- see it in IF NOT EXISTS (…).
CREATE OR REPLACE FUNCTION rowlock.reserve(p_tenant text, p_name text, p_amount bigint DEFAULT 1) RETURNS boolean
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
    PERFORM FROM rowlock.quota WHERE tenant_id = p_tenant AND name = p_name;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'tenant % has no quota %', quote_literal(p_tenant), coalesce(quote_literal(p_name), 'NULL')
            USING ERRCODE = 'RL005',
                  HINT = 'INSERT INTO rowlock.quota (tenant_id, name, cap) VALUES (…)';
    END IF;
    RETURN false;
END
$$;

CREATE OR REPLACE FUNCTION rowlock.track(p_table regclass, p_tenant_column name, p_exclude name[] DEFAULT '{}',
                                         p_mask name[] DEFAULT '{}', p_actor_setting text DEFAULT 'rowlock.actor') RETURNS text
    LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    RAISE EXCEPTION 'table % can''t be tracked: the schema is distributed, and Citus has no triggers', p_table
        USING ERRCODE = 'RL008', HINT = 'Stage entries where the rows are written: SELECT rowlock.stage(…).';
END
$$;

-- Taking an expired claim over compares and sets the clock in an UPDATE, which Citus refuses; said here, before a winner dies.
-- claimed_table itself is not distributed, so it may have a trigger.
CREATE FUNCTION rowlock.refuse_distributed_claims() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid IN (NEW.table_name, NEW.used_keys)) THEN
        RAISE EXCEPTION 'rows of % can''t be claimed by key: the table is distributed', NEW.table_name
            USING ERRCODE = 'RL006', HINT = 'Keep the table and its used keys on the coordinator, or lock its rows instead.';
    END IF;
    RETURN NEW;
END
$$;
REVOKE ALL ON FUNCTION rowlock.refuse_distributed_claims() FROM PUBLIC;
ALTER FUNCTION rowlock.refuse_distributed_claims() OWNER TO rowlock_owner;
CREATE TRIGGER on_one_server BEFORE INSERT OR UPDATE ON rowlock.claimed_table
    FOR EACH ROW EXECUTE FUNCTION rowlock.refuse_distributed_claims();

ALTER FUNCTION rowlock.lock_head(text, boolean, boolean) OWNER TO rowlock_owner;
ALTER FUNCTION rowlock.tell_nodes(text, text) OWNER TO rowlock_owner;
REVOKE ALL ON FUNCTION rowlock.lock_head, rowlock.tell_nodes FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rowlock.lock_head TO rowlock_app, rowlock_sealer;
GRANT EXECUTE ON FUNCTION rowlock.tell_nodes TO PUBLIC;

-- Functions go to every server; those with a tenant are run by the one that has it, whole and as their owner there: sent one
-- by one from here, their statements would need a connection as the owner, which Citus refuses in a transaction that has
-- written the tenant's rows as somebody else.
SELECT create_distributed_function(oid::regprocedure)
  FROM pg_catalog.pg_proc
 WHERE pronamespace = 'rowlock'::regnamespace
   AND proname IN ('refuse_tenant', 'refuse_entry', 'refuse_nameless_key', 'refuse_broken_batch');
SELECT create_distributed_function(oid::regprocedure, 'p_tenant', colocate_with => 'rowlock.tenant_seq',
                                   force_delegation => true)
  FROM pg_catalog.pg_proc
 WHERE pronamespace = 'rowlock'::regnamespace
   AND proname IN ('append_entry', 'append_entries', 'lock_head', 'stage', 'take_staged', 'lock_counter', 'next_number',
                   'set_next_number', 'reserve', 'release', 'drop_retired_entries');

-- Takes away what Citus gives: the owner gets all rights on a new shard, and on another server everybody each function, since
-- Citus repeats there what was granted here, but not that EXECUTE was taken from PUBLIC; nor does it ask for that privilege
-- here where it sends a call on. For a superuser, again after a server was added or shards were moved.
CREATE FUNCTION rowlock.close_nodes() RETURNS void
    LANGUAGE plpgsql VOLATILE
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    one record;
BEGIN
    -- In place of the triggers that refuse changes elsewhere.
    REVOKE UPDATE, DELETE, TRUNCATE, TRIGGER ON rowlock.audit_log FROM rowlock_owner;
    REVOKE DELETE, TRUNCATE, TRIGGER ON rowlock.tenant_seq FROM rowlock_owner;
    REVOKE UPDATE, DELETE, TRUNCATE, TRIGGER ON rowlock.ledger FROM rowlock_owner;
    FOR one IN SELECT oid::regprocedure AS name FROM pg_proc
                WHERE pronamespace = 'rowlock'::regnamespace AND proname <> 'tell_nodes' LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', one.name);
    END LOOP;
END
$$;
COMMENT ON FUNCTION rowlock.close_nodes IS
    'Takes away rights that Citus gives on new servers and shards: run it as a superuser after each';
ALTER FUNCTION rowlock.close_nodes() OWNER TO rowlock_owner;
SELECT rowlock.close_nodes();

-- For every session from the next one on.
DO $propagate$
BEGIN
    EXECUTE format('ALTER DATABASE %I SET citus.propagate_set_commands = ''local''', current_database());
END
$propagate$;
