-- Gapless numbers by name (invoice, ticket, "invoice 2026") for rows of the user's own, one series per tenant.
--
-- From SQL:
--     BEGIN;
--     SELECT set_config('rowlock.tenant', 'acme', true);
--     INSERT INTO invoice (tenant_id, number, …) VALUES ('acme', rowlock.next_number('acme', 'invoice'), …);
--     COMMIT;
-- A rollback gives the number back. Until then the next writer of this tenant and name waits: take the number late.

SET LOCAL ROLE rowlock_owner;

-- fillfactor 50 and no second index: the row is rewritten for each number, in its own page (a HOT update).
CREATE TABLE rowlock.sequence_counter (
    tenant_id    rowlock.tenant NOT NULL,
    name         text COLLATE "C" NOT NULL
                 CONSTRAINT sequence_counter_name_length CHECK (octet_length(name) BETWEEN 1 AND 200),
    first_number bigint NOT NULL DEFAULT 1 CONSTRAINT sequence_counter_first_range CHECK (first_number >= 1),
    -- first_number - 1 (or more) where nothing was taken yet: only from first_number on is it a number that was taken.
    last_taken   bigint NOT NULL DEFAULT 0 CONSTRAINT sequence_counter_last_range CHECK (last_taken >= first_number - 1),
    CONSTRAINT sequence_counter_pkey PRIMARY KEY (tenant_id, name)
) WITH (fillfactor = 50);
COMMENT ON TABLE rowlock.sequence_counter IS 'The last number taken, per tenant and name; locked by whoever takes the next';

ALTER TABLE rowlock.sequence_counter ENABLE ROW LEVEL SECURITY;
ALTER TABLE rowlock.sequence_counter FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON rowlock.sequence_counter
    USING (tenant_id = NULLIF(current_setting('rowlock.tenant', true), ''))
    WITH CHECK (tenant_id = NULLIF(current_setting('rowlock.tenant', true), ''));
CREATE POLICY read_all ON rowlock.sequence_counter FOR SELECT TO rowlock_auditor, rowlock_backup
    USING (true);

-- Numbers come through the functions alone. Who could UPDATE the counter could hand out a number twice.
GRANT SELECT ON rowlock.sequence_counter TO rowlock_app, rowlock_auditor, rowlock_backup;

-- Makes the counter at first use, locks it until the transaction ends, and gives back the last number taken, 0 if none.
-- Statements of their own, since at READ COMMITTED each has its own snapshot: the one that locks must see the row that
-- another first user has just committed.
CREATE FUNCTION rowlock.lock_counter(p_tenant text, p_name text) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    counter rowlock.sequence_counter;
BEGIN
    IF (p_tenant = NULLIF(current_setting('rowlock.tenant', true), '')) IS NOT TRUE THEN
        PERFORM rowlock.refuse_tenant(p_tenant);
    END IF;
    -- Lock: the counter's row, FOR UPDATE, until the transaction ends.
    SELECT * INTO counter FROM rowlock.sequence_counter WHERE tenant_id = p_tenant AND name = p_name FOR UPDATE;
    IF NOT FOUND THEN
        -- Lock: the new row; waits for another transaction that is making the same one. Only at first use: done each time
        -- it would leave the lock to chance.
        INSERT INTO rowlock.sequence_counter (tenant_id, name) VALUES (p_tenant, p_name) ON CONFLICT DO NOTHING;
        -- Lock: the counter's row, FOR UPDATE, until the transaction ends.
        SELECT * INTO STRICT counter FROM rowlock.sequence_counter
         WHERE tenant_id = p_tenant AND name = p_name FOR UPDATE;
    END IF;
    RETURN CASE WHEN counter.last_taken >= counter.first_number THEN counter.last_taken ELSE 0 END;
END
$$;
COMMENT ON FUNCTION rowlock.lock_counter IS
    'Makes the counter at first use, locks it until the transaction ends, gives back the last number taken (0: none)';
REVOKE ALL ON FUNCTION rowlock.lock_counter FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rowlock.lock_counter TO rowlock_app;

CREATE FUNCTION rowlock.next_number(p_tenant text, p_name text) RETURNS bigint
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    number bigint;
BEGIN
    -- Lock: the counter's row, FOR UPDATE, until the transaction ends.
    PERFORM rowlock.lock_counter(p_tenant, p_name);
    -- Lock: none that is not held by now.
    UPDATE rowlock.sequence_counter SET last_taken = last_taken + 1
     WHERE tenant_id = p_tenant AND name = p_name
    RETURNING last_taken INTO STRICT number;
    RETURN number;
END
$$;
COMMENT ON FUNCTION rowlock.next_number IS
    'The next number of the transaction''s tenant: 1, 2, 3 … with no gap; the counter stays locked until COMMIT';
REVOKE ALL ON FUNCTION rowlock.next_number FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rowlock.next_number TO rowlock_app;

-- Makes p_next the next number, and gives back the number that is next now. Once a number has been taken the counter
-- only rises (a smaller p_next changes nothing), so no number comes twice.
-- p_adopted: numbers up to p_next - 1 are in use already, in a table of the user's; the counter only rises from then on.
CREATE FUNCTION rowlock.set_next_number(p_tenant text, p_name text, p_next bigint, p_adopted boolean DEFAULT false)
    RETURNS bigint
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    unused boolean;
    number bigint;
BEGIN
    -- The limit leaves room: a counter at the end of bigint could never give another number.
    IF (p_next BETWEEN 1 AND 1000000000000000000) IS NOT TRUE THEN
        RAISE EXCEPTION 'the next number must be from 1 to 10^18, not %', coalesce(p_next::text, 'NULL')
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- Lock: the counter's row, FOR UPDATE, until the transaction ends.
    unused := rowlock.lock_counter(p_tenant, p_name) = 0;
    -- Lock: none that is not held by now.
    UPDATE rowlock.sequence_counter
       SET first_number = CASE WHEN p_adopted THEN least(first_number, greatest(p_next - 1, 1))
                               WHEN unused THEN p_next
                               ELSE first_number END,
           last_taken = CASE WHEN unused AND NOT p_adopted THEN p_next - 1 ELSE greatest(last_taken, p_next - 1) END
     WHERE tenant_id = p_tenant AND name = p_name
    RETURNING last_taken + 1 INTO STRICT number;
    RETURN number;
END
$$;
COMMENT ON FUNCTION rowlock.set_next_number IS
    'Sets where an unused counter starts, or raises a used one; gives back the number that is next now';
REVOKE ALL ON FUNCTION rowlock.set_next_number FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rowlock.set_next_number TO rowlock_app;

INSERT INTO rowlock.schema_version (version, name) VALUES (4, 'sequence_counter');
RESET ROLE;
